/* signal.h - a wish to stop, asked for by signal, seen by the program when it suits.
 *
 * SIGINT, SIGTERM, SIGHUP (a lost terminal) and SIGUSR1 (which job schedulers send some time before
 * the end) set a flag and make a descriptor readable; loops look at one of them between steps, save
 * and leave. SIGINT and SIGHUP are left alone where the process was started with them ignored, as by
 * a shell's "&" in a script and by nohup. A second
 * SIGINT, SIGTERM or SIGHUP that comes 3 s or more after the first ends the process at once, as if the
 * signal had not been caught: the way out when saving hangs. Earlier repeats (a terminal and a
 * launcher often both send one) and SIGUSR1 never do that.
 *
 * State   one for the process, as signals are; async-signal-safe atomics.
 * Errors  TG_ERROR_MACHINE when the pipe cannot be made.
 */
#ifndef TG_CLI_SIGNAL_H
#define TG_CLI_SIGNAL_H

#include "base/status.h"

/* Catches these signals, and ignores SIGPIPE and SIGXFSZ, whose writes fail instead. Once per process, before threads start. */
tg_status tg_signal_install(void) TG_MUST_CHECK;
/* The first signal that asked to stop, or 0. */
int tg_signal_stop(void);
/* Exit code of a program that such a signal stopped: 130 for SIGINT, 143 for the others; 0 without one. */
int tg_signal_exit_code(void);
/* Readable from the moment a stop is asked for; -1 before install. For poll(); do not read it. */
int tg_signal_fd(void);
/* Takes a signal that another rank got for one of this process, unless it has one. */
void tg_signal_adopt(int number);
/* Forgets a request (tests, and a service that starts its next job). */
void tg_signal_clear(void);

#endif
