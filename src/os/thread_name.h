/* thread_name.h - what a thread does, as its name says it: for the monitor (monitor/threads.h), top -H and debuggers.
 *
 * Each is set where the thread begins. A process's first thread keeps the program's name; it computes. Threads that
 * libraries start (MPI's, say) have the name of the one that started them, or one of their own.
 * Threads: sets the calling one's. Errors none: a name that could not be set is missed by nobody but watchers.
 */
#ifndef TG_OS_THREAD_NAME_H
#define TG_OS_THREAD_NAME_H

/* At most 15 bytes, which is all that the kernel keeps. */
#define TG_THREAD_COMPUTE "tg-compute"
#define TG_THREAD_LOADER "tg-loader"
#define TG_THREAD_COMM "tg-comm"
#define TG_THREAD_MONITOR "tg-monitor"

void tg_thread_name_set(const char *name);

#endif
