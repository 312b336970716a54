/* transport.h - what a message-passing library must offer to carry collectives (host.h).
 *
 * Modules (comm/mpi) are built apart and opened at run time, so this header needs nothing of the rest
 * of the program. Functions return 0 or the library's own error code, which error_text explains.
 *
 * Order    messages of one pair of ranks with one tag arrive in the order of their sends.
 * Threads  one thread at a time, not always the same one.
 */
#ifndef TG_COMM_HOST_TRANSPORT_H
#define TG_COMM_HOST_TRANSPORT_H

#include <stddef.h>

/* Changed with every change of this file: a module of another version is refused. */
enum { TG_TRANSPORT_VERSION = 1 };
enum { TG_TRANSPORT_LIBRARY_BYTES = 96 };

typedef struct tg_transport_request {
    void *slot[2]; /* the module's own */
} tg_transport_request;

typedef struct tg_transport tg_transport;
struct tg_transport {
    int rank, size;
    char library[TG_TRANSPORT_LIBRARY_BYTES];
    void *state;
    /* Start a message of at most 1 MiB; data must stay until test says done. tag in 0..32767. */
    int (*send)(tg_transport *transport, const void *data, size_t bytes, int peer, int tag,
                tg_transport_request *out);
    int (*receive)(tg_transport *transport, void *data, size_t bytes, int peer, int tag,
                   tg_transport_request *out);
    /* *out_done 1 when the message is done; the request is then gone. */
    int (*test)(tg_transport *transport, tg_transport_request *request, int *out_done);
    void (*error_text)(tg_transport *transport, int code, char *out, size_t bytes);
    /* orderly: every rank closes now; else the others are not waited for. */
    void (*close)(tg_transport *transport, int orderly);
};

/* The one symbol of a module, "tagine_transport_open". Fills *out; returns 0, or -1 with a reason. */
typedef int (*tg_transport_open_function)(int version, tg_transport *out, char *out_reason,
                                          size_t reason_bytes);

#endif
