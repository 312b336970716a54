/* What ranks say to one another outside of collectives: that they leave, or end. */
#include "comm/host/host_state.h"

#include "os/clock.h"

#include <time.h>

enum {
    CONTROL_TAG = 0,
    FAREWELL_NS = 500 * 1000 * 1000,
    LOOK_NS = 20 * 1000,
};

void tg_host_sleep(int64_t ns)
{
    struct timespec t = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    nanosleep(&t, NULL);
}

tg_status tg_host_listen(tg_host *h, int peer)
{
    tg_host_line *line = &h->lines[peer];
    int code = h->transport.receive(&h->transport, &line->heard, sizeof line->heard, peer,
                                    CONTROL_TAG, &line->in);
    if (code)
        return tg_host_transport_failed(&h->transport, "receiving from", peer, code);
    line->listening = true;
    return TG_OK;
}

tg_status tg_host_hear(tg_host *h, bool busy)
{
    for (int r = 0; r < h->base.size; r++) {
        tg_host_line *line = &h->lines[r];
        int done = 0;
        if (line->listening) {
            int code = h->transport.test(&h->transport, &line->in, &done);
            if (code)
                return tg_host_transport_failed(&h->transport, "receiving from", r, code);
        }
        if (done) {
            line->listening = false;
            line->ended = true;
            line->heard.reason[TG_HOST_CONTROL_BYTES - 1] = '\0';
        }
        if (done && line->heard.reason[0])
            return tg_fail(TG_ERROR_PEER, "rank %d on %s left: %s", r, h->peers[r].host,
                           line->heard.reason);
    }
    for (int r = 0; r < h->base.size && busy; r++)
        if (h->lines[r].ended)
            return tg_fail(TG_ERROR_PEER,
                           "rank %d on %s has ended its work while this rank has not: they do not "
                           "run the same job",
                           r, h->peers[r].host);
    return TG_OK;
}

void tg_host_farewell(tg_host *h, bool hear)
{
    int64_t end = tg_clock_ns() + (hear ? h->stall_ns : FAREWELL_NS);
    for (int r = 0; r < h->base.size; r++)
        h->lines[r].sending =
            r != h->base.rank && h->transport.send(&h->transport, &h->said, sizeof h->said, r,
                                                   CONTROL_TAG, &h->lines[r].out) == 0;
    while (tg_clock_ns() < end) {
        bool all = true;
        for (int r = 0; r < h->base.size; r++) {
            tg_host_line *line = &h->lines[r];
            int done = 0;
            if (line->sending && (h->transport.test(&h->transport, &line->out, &done) != 0 || done))
                line->sending = false;
            done = 0;
            if (hear && line->listening &&
                (h->transport.test(&h->transport, &line->in, &done) != 0 || done))
                line->listening = false;
            all = all && !line->sending && !(hear && line->listening);
        }
        if (all)
            break;
        tg_host_sleep(LOOK_NS);
    }
}
