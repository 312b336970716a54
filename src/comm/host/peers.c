#include "comm/host/host_state.h"

#include <stdio.h>

/* "all-reduce of 4.00 MiB (gradients 3)" */
static void describe(const tg_host_exchange *x, char *out, size_t bytes)
{
    static const char *const kinds[] = {"reduce-scatter", "all-gather", "all-reduce", "meeting"};
    if (x->work.kind == TG_COMM_MEET)
        snprintf(out, bytes, "the meeting '%s' of %zu bytes", x->work.what, x->meet_bytes);
    else
        snprintf(out, bytes, "the %s of %.2f MiB (%s)", kinds[x->work.kind],
                 (double)x->work.count * 4 / 1048576, x->work.what);
}

/* Bytes that a peer still owes this rank (receive) or has not taken (send). */
static size_t outstanding(const tg_host_exchange *x, int peer, bool receive)
{
    size_t bytes = 0;
    for (size_t i = 0; i < x->message_count; i++)
        if (!x->messages[i].done && x->messages[i].peer == peer &&
            x->messages[i].receive == receive)
            bytes += x->messages[i].bytes;
    return bytes;
}

bool tg_host_waits_for(const tg_host_exchange *x, int peer)
{
    return outstanding(x, peer, true) || outstanding(x, peer, false);
}

/* "rank 2 on b (process 123, 4096 bytes to come, 0 not taken, no sign of life for 5.1 s)" */
static void name_peer(const tg_host *h, const tg_host_exchange *x, int peer, int64_t now, char *out,
                      size_t bytes)
{
    char sign[64] = "";
    if (tg_host_is_quiet(h, peer, now))
        snprintf(sign, sizeof sign, ", no sign of life for %.1f s",
                 (double)(now - h->lines[peer].heard_ns) * 1e-9);
    snprintf(out, bytes, "rank %d on %s (process %lld, %zu bytes to come, %zu not taken%s)", peer,
             h->peers[peer].host, (long long)h->peers[peer].process.pid, outstanding(x, peer, true),
             outstanding(x, peer, false), sign);
}

/* A quiet one is named though the wait may be for another, which itself waits for it. */
tg_status tg_host_blame(const tg_host *h, const tg_host_exchange *x, int64_t now, double still_s)
{
    enum { NAMED = 4, NAME_BYTES = TG_COMM_HOST_BYTES + 160 };
    char what[160], name[NAME_BYTES], who[NAMED * NAME_BYTES] = "";
    size_t at = 0, count = 0;
    describe(x, what, sizeof what);
    for (int pass = 0; pass < 2; pass++)
        for (int r = 0; r < h->base.size; r++) {
            const bool quiet = tg_host_is_quiet(h, r, now);
            if ((pass == 0) != quiet || (!quiet && !tg_host_waits_for(x, r)) || count++ >= NAMED)
                continue;
            name_peer(h, x, r, now, name, sizeof name);
            at += (size_t)snprintf(who + at, sizeof who - at, "%s%s", at ? ", " : "", name);
        }
    return tg_fail(TG_ERROR_PEER,
                   "nothing has moved for %.1f s in %s; waiting for %s%s. A rank there is stopped, "
                   "dead, stuck or cut off",
                   still_s, what, who, count > NAMED ? " and others" : "");
}

int tg_host_find_dead(const tg_host_exchange *x, const tg_transport *t, const tg_host_peer *peers)
{
    for (int r = 0; r < t->size; r++)
        if (r != t->rank && tg_host_waits_for(x, r) &&
            !tg_process_alive(&peers[t->rank].process, &peers[r].process))
            return r;
    return -1;
}

tg_status tg_host_report_dead(const tg_host_exchange *x, const tg_host_peer *peers, int peer)
{
    char what[160];
    describe(x, what, sizeof what);
    return tg_fail(
        TG_ERROR_PEER,
        "rank %d on %s (process %lld) is gone: it died while others waited for %zu bytes "
        "of it in %s; killed for memory is the usual cause",
        peer, peers[peer].host, (long long)peers[peer].process.pid, outstanding(x, peer, true),
        what);
}

tg_status tg_host_report_broken(tg_transport *t, const tg_host_peer *peers,
                                const tg_host_exchange *x, int peer, bool receive, int code)
{
    char text[256], what[160] = "a word outside of collectives", bytes[96] = "";
    t->error_text(t, code, text, sizeof text);
    if (x) {
        describe(x, what, sizeof what);
        snprintf(bytes, sizeof bytes, ", with %zu bytes to come and %zu not taken",
                 outstanding(x, peer, true), outstanding(x, peer, false));
    }
    return tg_fail(TG_ERROR_PEER, "%s rank %d on %s (process %lld) failed in %s%s: %s",
                   receive ? "receiving from" : "sending to", peer, peers[peer].host,
                   (long long)peers[peer].process.pid, what, bytes, text);
}
