/* What ranks say to one another outside of collectives: that they leave, or end. */
#include "comm/host/host_state.h"

#include "os/clock.h"

#include <string.h>
#include <time.h>

enum {
    CONTROL_TAG = 0,
    FAREWELL_NS = 500 * 1000 * 1000,
    LOOK_NS = 20 * 1000,
    SIGNS_IN_SILENCE = 5, /* signs of life in the time after which their absence counts */
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
        return tg_host_report_broken(&h->transport, h->peers, NULL, peer, true, code);
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
                return tg_host_report_broken(&h->transport, h->peers, NULL, r, true, code);
        }
        if (!done)
            continue;
        line->listening = false;
        line->heard_ns = tg_clock_ns();
        line->heard.reason[TG_HOST_CONTROL_BYTES - 1] = '\0';
        if (strcmp(line->heard.reason, TG_HOST_ALIVE) == 0) {
            TG_TRY(tg_host_listen(h, r));
            continue;
        }
        line->ended = true;
        if (line->heard.reason[0] == TG_HOST_SEEN[0])
            return tg_fail(TG_ERROR_PEER, "%s (seen by rank %d on %s)", line->heard.reason + 1, r,
                           h->peers[r].host);
        if (line->heard.reason[0])
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

/* Whether the last word to a peer is out; one that fails to go out is given up. */
static bool is_sent(tg_host *h, tg_host_line *line)
{
    int done = 0;
    if (line->sending && (h->transport.test(&h->transport, &line->out, &done) != 0 || done))
        line->sending = false;
    return !line->sending;
}

tg_status tg_host_tell_alive(tg_host *h)
{
    const int64_t now = tg_clock_ns();
    if (now - h->alive_ns < h->silence_ns / SIGNS_IN_SILENCE)
        return TG_OK;
    h->alive_ns = now;
    for (int r = 0; r < h->base.size; r++) {
        tg_host_line *line = &h->lines[r];
        if (r == h->base.rank || line->ended || !is_sent(h, line))
            continue;
        int code = h->transport.send(&h->transport, &h->alive, sizeof h->alive, r, CONTROL_TAG,
                                     &line->out);
        if (code)
            return tg_host_report_broken(&h->transport, h->peers, NULL, r, false, code);
        line->sending = true;
    }
    return TG_OK;
}

bool tg_host_is_quiet(const tg_host *h, int peer, int64_t now)
{
    return peer != h->base.rank && !h->lines[peer].ended &&
           now - h->lines[peer].heard_ns >= h->silence_ns * 2 / SIGNS_IN_SILENCE;
}

int tg_host_find_silent(const tg_host *h, int64_t now)
{
    for (int r = 0; r < h->base.size; r++)
        if (r != h->base.rank && !h->lines[r].ended && now - h->lines[r].heard_ns >= h->silence_ns)
            return r;
    return -1;
}

/* Hears a peer out to its last word. */
static bool has_ended(tg_host *h, int peer)
{
    tg_host_line *line = &h->lines[peer];
    int done = 0;
    if (line->listening && (h->transport.test(&h->transport, &line->in, &done) != 0 || done)) {
        line->listening = false;
        if (done && strcmp(line->heard.reason, TG_HOST_ALIVE) == 0)
            (void)!tg_host_listen(h, peer);
    }
    return !line->listening;
}

static void say_last_word(tg_host *h)
{
    for (int r = 0; r < h->base.size; r++)
        h->lines[r].sending = r != h->base.rank && !h->lines[r].lost &&
                              h->transport.send(&h->transport, &h->said, sizeof h->said, r,
                                                CONTROL_TAG, &h->lines[r].out) == 0;
}

void tg_host_farewell(tg_host *h, bool hear)
{
    const int64_t end = tg_clock_ns() + (hear ? h->stall_ns : FAREWELL_NS);
    for (bool said = false; tg_clock_ns() < end; tg_host_sleep(LOOK_NS)) {
        bool out = true, heard = true;
        for (int r = 0; r < h->base.size; r++) {
            if (r == h->base.rank || h->lines[r].lost)
                continue;
            out = is_sent(h, &h->lines[r]) && out;
            heard = (!hear || has_ended(h, r)) && heard;
        }
        if (said && out && heard)
            return;
        if (!said && out) { /* after what was still on its way */
            say_last_word(h);
            said = true;
        }
    }
}
