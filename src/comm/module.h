/* module.h - the MPI that a job was started under, found and opened at run time.
 *
 * A program that never asks for other ranks needs no MPI. Modules lie where the program was built or
 * installed: "tagine-comm-openmpi.so", "tagine-comm-mpich.so". Which one: the caller's word, or the one
 * whose launcher left its traces in the environment.
 */
#ifndef TG_COMM_MODULE_H
#define TG_COMM_MODULE_H

#include "comm/comm.h"

/* What the launcher promised (cli/ reads the environment). */
typedef struct tg_comm_promise {
    const char *library;  /* "openmpi", "mpich"; NULL: no launcher that is known */
    const char *variable; /* that says how many ranks there are, for messages; NULL: none does */
    int64_t size;         /* ranks it speaks of; 0: not said */
} tg_comm_promise;

typedef struct tg_comm_choice {
    tg_comm_promise promise;
    const char *const *folders; /* where modules may lie, in order; NULL-terminated */
    const char *host;           /* this machine's name */
    double stall_s;
} tg_comm_choice;

/* Opens the module and joins its ranks. TG_ERROR_USAGE when no launcher started this process;
 * TG_ERROR_MACHINE when the module is missing or does not open (says what to install or build);
 * TG_ERROR_FAILED when MPI's number of ranks is not what the launcher promised: then every process
 * would be a first rank of its own. */
tg_status tg_comm_open_mpi(const tg_comm_choice *choice, tg_comm **out) TG_MUST_CHECK;

#endif
