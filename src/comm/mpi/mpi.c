/* The module that carries messages over MPI (MPI-3, messages only). Built once against each MPI that
 * is installed, because their binary interfaces differ; the program opens the one it was started by.
 * Uses nothing of the program, so that a module needs no library of ours. */
#include "comm/host/transport.h"

#include <mpi.h>
#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(MPI_Request) <= sizeof(tg_transport_request), "a request fits its slot");

static MPI_Request load(const tg_transport_request *request)
{
    MPI_Request r;
    memcpy(&r, request, sizeof r);
    return r;
}

static void store(tg_transport_request *request, MPI_Request r)
{
    memcpy(request, &r, sizeof r);
}

static int send_message(tg_transport *transport, const void *data, size_t bytes, int peer, int tag,
                        tg_transport_request *out)
{
    (void)transport;
    MPI_Request r;
    int code = MPI_Isend(data, (int)bytes, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &r);
    store(out, r);
    return code;
}

static int receive_message(tg_transport *transport, void *data, size_t bytes, int peer, int tag,
                           tg_transport_request *out)
{
    (void)transport;
    MPI_Request r;
    int code = MPI_Irecv(data, (int)bytes, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &r);
    store(out, r);
    return code;
}

static int test_message(tg_transport *transport, tg_transport_request *request, int *out_done)
{
    (void)transport;
    MPI_Request r = load(request);
    int code = MPI_Test(&r, out_done, MPI_STATUS_IGNORE);
    store(request, r);
    return code;
}

static void error_text(tg_transport *transport, int code, char *out, size_t bytes)
{
    (void)transport;
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    if (MPI_Error_string(code, text, &length) != MPI_SUCCESS)
        snprintf(text, sizeof text, "MPI error %d", code);
    snprintf(out, bytes, "%s", text);
}

/* A finalize after a failure would wait for those who are gone. */
static void close_mpi(tg_transport *transport, int orderly)
{
    (void)transport;
    if (orderly)
        MPI_Finalize();
}

/* First line of what the library says of itself, without its comments. */
static void name_library(char *out, size_t bytes)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    MPI_Get_library_version(text, &length);
    text[strcspn(text, ",\n")] = '\0';
    for (char *at = text; *at; at++)
        if (*at == '\t')
            *at = ' ';
    snprintf(out, bytes, "%s", text);
}

/* Found by name (transport.h). */
int tagine_transport_open(int version, tg_transport *out, char *out_reason, size_t reason_bytes);

int tagine_transport_open(int version, tg_transport *out, char *out_reason, size_t reason_bytes)
{
    int provided = 0, begun = 0;
    if (version != TG_TRANSPORT_VERSION) {
        snprintf(out_reason, reason_bytes,
                 "built for version %d of the program's interface, not %d", TG_TRANSPORT_VERSION,
                 version);
        return -1;
    }
    MPI_Initialized(&begun);
    if (begun) {
        snprintf(out_reason, reason_bytes, "MPI is in use in this process already");
        return -1;
    }
    int code = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided);
    if (code != MPI_SUCCESS || provided < MPI_THREAD_SERIALIZED) {
        snprintf(out_reason, reason_bytes,
                 "MPI_Init_thread gives thread level %d, needed is %d (code %d)", provided,
                 MPI_THREAD_SERIALIZED, code);
        return -1;
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    *out = (tg_transport){.send = send_message,
                          .receive = receive_message,
                          .test = test_message,
                          .error_text = error_text,
                          .close = close_mpi};
    MPI_Comm_rank(MPI_COMM_WORLD, &out->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &out->size);
    name_library(out->library, sizeof out->library);
    return 0;
}
