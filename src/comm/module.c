#include "comm/module.h"

#include "comm/host/host.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

/* The first folder that has the module. */
static bool find_module(const tg_comm_choice *choice, char *out, size_t bytes)
{
    for (const char *const *folder = choice->folders; *folder; folder++) {
        snprintf(out, bytes, "%s/tagine-comm-%s.so", *folder, choice->promise.library);
        if (access(out, R_OK) == 0)
            return true;
    }
    return false;
}

static tg_status find_open(const char *path, tg_transport_open_function *out)
{
    /* Open MPI's own plug-ins look for its symbols in what is global. */
    void *module = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!module)
        return tg_fail(TG_ERROR_MACHINE, "--comm mpi: cannot open %s: %s", path, dlerror());
    void *symbol = dlsym(module, "tagine_transport_open");
    if (!symbol)
        return tg_fail(TG_ERROR_MACHINE, "--comm mpi: %s is no module of tagine", path);
    memcpy(out, &symbol, sizeof symbol);
    return TG_OK;
}

tg_status tg_comm_open_mpi(const tg_comm_choice *choice, tg_comm **out)
{
    const tg_comm_promise *promise = &choice->promise;
    char path[PATH_BYTES], reason[256] = "";
    tg_transport_open_function open_transport = NULL;
    tg_transport transport;
    if (!promise->library)
        return tg_fail(TG_ERROR_USAGE,
                       "--comm mpi: this process was not started by an MPI launcher; start it as "
                       "'mpirun -np N tagine ...' or 'srun --mpi=pmix tagine ...'");
    if (!find_module(choice, path, sizeof path))
        return tg_fail(
            TG_ERROR_MACHINE,
            "--comm mpi: no module tagine-comm-%s.so beside the program; it is built when "
            "%s is installed (lib%s-dev): install it and build again",
            promise->library, promise->library, promise->library);
    TG_TRY(find_open(path, &open_transport));
    if (open_transport(TG_TRANSPORT_VERSION, &transport, reason, sizeof reason) != 0)
        return tg_fail(TG_ERROR_MACHINE, "--comm mpi: %s: %s", path, reason);
    if (promise->size && promise->size != transport.size) {
        int size = transport.size;
        transport.close(&transport, size == 1);
        return tg_fail(
            TG_ERROR_FAILED,
            "--comm mpi: the launcher started %lld ranks (%s) and %s sees %d: they do not "
            "belong together, and each would train for itself. Use the mpirun of this MPI, "
            "or 'srun --mpi=pmix'",
            (long long)promise->size, promise->variable, transport.library, size);
    }
    return tg_host_open(&transport, choice->host, choice->stall_s, out);
}
