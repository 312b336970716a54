/* The progress thread: posts, tests and adds while the caller computes, and judges when nothing moves. */
#include "comm/host/host_state.h"

#include "os/clock.h"
#include "os/thread_name.h"

#include <sched.h>
#include <string.h>
#include <time.h>

#define NS_PER_S 1000000000.0

enum {
    CONTROL_LOOK_NS = 20 * 1000 * 1000, /* between looks at what peers say */
    LIVENESS_NS = 200 * 1000 * 1000,    /* standing still that long is reason to look at peers */
    IDLE_NS = 50 * 1000 * 1000,         /* between looks while nothing is under way */
    SLEEP_MIN_NS = 20 * 1000,           /* while the caller computes, and nothing moves */
    SLEEP_MAX_NS = 300 * 1000,
};

/* As it is now: those who see the failure as well will soon be gone. One that said a last word is there,
 * whatever it said. */
static void note_lost(tg_host *h)
{
    const int64_t now = tg_clock_ns();
    for (int r = 0; r < h->base.size; r++) {
        tg_host_line *line = &h->lines[r];
        line->lost = r != h->base.rank && !line->ended &&
                     (tg_host_is_quiet(h, r, now) ||
                      !tg_process_alive(&h->peers[h->base.rank].process, &h->peers[r].process));
    }
}

void tg_host_record_failure(tg_host *h, tg_status status)
{
    if (!h->failed) {
        note_lost(h);
        h->failed = true;
        h->status = status;
        memcpy(h->error, tg_error_message(), strnlen(tg_error_message(), sizeof h->error - 1) + 1);
    }
    pthread_cond_broadcast(&h->changed);
}

static void take_up(tg_host *h, tg_comm_ticket ticket)
{
    tg_host_order *o = &h->orders[ticket % TG_HOST_QUEUE];
    tg_host_exchange *x = tg_host_exchange_of(h, ticket);
    x->work = o->work;
    x->peers = h->peers;
    x->window = h->window;
    x->mine = o->mine;
    x->all = o->all;
    x->meet_bytes = o->meet_bytes;
    x->ticket = ticket;
    o->begun_ns = tg_clock_ns();
}

static void note_done(tg_host *h, tg_comm_ticket ticket, bool done)
{
    tg_host_order *o = &h->orders[ticket % TG_HOST_QUEUE];
    if (done && !o->done_ns)
        o->done_ns = tg_clock_ns();
}

typedef struct progress {
    int64_t looked_ns, moved_ns, heard_ns, checked_ns, sleep_ns;
    tg_comm_ticket begun; /* tickets below have been posted */
    bool told;            /* of the failure, by another rank */
} progress;

/* One look at everything under way, [first, next) as the thread knows them. */
static tg_status look(tg_host *h, tg_comm_ticket first, tg_comm_ticket next, progress *p,
                      tg_comm_traffic *traffic, bool *out_moved, tg_comm_ticket *out_first)
{
    bool in_order = true;
    size_t ahead = 0;
    *out_moved = false;
    *out_first = first;
    for (tg_comm_ticket ticket = first; ticket < next; ticket++) {
        tg_host_exchange *x = tg_host_exchange_of(h, ticket);
        tg_host_look seen = {0};
        if (ticket >= p->begun) {
            take_up(h, ticket);
            TG_TRY(tg_host_exchange_begin(x, &h->transport));
            p->begun = ticket + 1;
            *out_moved = true;
        }
        TG_TRY(tg_host_exchange_look(x, &h->transport, ahead, &seen));
        ahead += x->ahead;
        traffic->sent_bytes += seen.sent_bytes;
        traffic->received_bytes += seen.received_bytes;
        *out_moved = *out_moved || seen.moved;
        note_done(h, ticket, seen.done);
        in_order = in_order && seen.done;
        if (in_order) {
            *out_first = ticket + 1;
            traffic->calls += x->work.kind != TG_COMM_MEET;
        }
    }
    return TG_OK;
}

/* Nothing has moved: is a peer gone, or has it been too long? */
static tg_status judge(tg_host *h, tg_comm_ticket first, progress *p, int64_t now, int64_t stall_ns)
{
    const tg_host_exchange *x = tg_host_exchange_of(h, first);
    if (now - p->moved_ns >= LIVENESS_NS && now - p->checked_ns >= LIVENESS_NS) {
        p->checked_ns = now;
        int dead = tg_host_find_dead(x, &h->transport, h->peers);
        if (dead >= 0)
            return tg_host_report_dead(x, h->peers, dead);
    }
    if (now - p->moved_ns >= stall_ns ||
        (now - p->moved_ns >= h->silence_ns && tg_host_find_silent(h, now) >= 0))
        return tg_host_blame(h, x, now, (double)(now - p->moved_ns) / NS_PER_S);
    return TG_OK;
}

/* What a round works on. */
typedef struct view {
    tg_comm_ticket first, next;
    bool end, waiting;
    int64_t stall_ns;
} view;

/* Sleeps while there is nothing to do, but for a look at what peers say now and then. */
static view take_view(tg_host *h, progress *p)
{
    pthread_mutex_lock(&h->lock);
    while (h->first == h->next && !h->closing && !h->leaving && !h->failed &&
           tg_clock_ns() - p->heard_ns < IDLE_NS) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += IDLE_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&h->changed, &h->lock, &until);
        p->looked_ns = p->moved_ns = tg_clock_ns();
    }
    const view v = {.first = h->first,
                    .next = h->next < h->first + TG_HOST_DEPTH ? h->next : h->first + TG_HOST_DEPTH,
                    .end = h->failed || h->leaving || (h->closing && h->first == h->next),
                    .waiting = h->waiting,
                    .stall_ns = h->stall_ns};
    pthread_mutex_unlock(&h->lock);
    return v;
}

size_t tg_host_count_bytes(const tg_host *h)
{
    size_t bytes = 0;
    for (int i = 0; i < TG_HOST_DEPTH; i++)
        bytes += tg_host_exchange_bytes(&h->ring[i]);
    return bytes;
}

/* Tells the caller what a round has brought. */
static void publish(tg_host *h, const tg_comm_traffic *traffic, tg_comm_ticket done,
                    tg_status status)
{
    pthread_mutex_lock(&h->lock);
    if (status < 0)
        tg_host_record_failure(h, status);
    h->traffic.calls += traffic->calls;
    h->traffic.sent_bytes += traffic->sent_bytes;
    h->traffic.received_bytes += traffic->received_bytes;
    h->traffic.busy_ns += traffic->busy_ns;
    if (done > h->first) {
        h->first = done;
        h->bytes = tg_host_count_bytes(h);
        pthread_cond_broadcast(&h->changed);
    }
    pthread_mutex_unlock(&h->lock);
}

/* The core is the caller's while it computes, and nobody's while it waits. */
static void rest(const view *v, bool moved, progress *p)
{
    if (moved) {
        p->sleep_ns = SLEEP_MIN_NS;
    } else if (v->waiting) {
        sched_yield();
    } else if (v->first < v->next) {
        tg_host_sleep(p->sleep_ns);
        p->sleep_ns = p->sleep_ns * 2 < SLEEP_MAX_NS ? p->sleep_ns * 2 : SLEEP_MAX_NS;
    }
}

/* One round; false ends the thread. */
static bool round_of(tg_host *h, progress *p)
{
    const view v = take_view(h, p);
    if (v.end)
        return false;
    tg_comm_traffic traffic = {0};
    tg_comm_ticket done = v.first;
    bool moved = false;
    tg_status status = look(h, v.first, v.next, p, &traffic, &moved, &done);
    int64_t now = tg_clock_ns();
    if (v.first < v.next)
        traffic.busy_ns = now - p->looked_ns;
    p->looked_ns = now;
    if (moved || v.first == v.next)
        p->moved_ns = now;
    if (status == TG_OK && now - p->heard_ns >= CONTROL_LOOK_NS) {
        p->heard_ns = now;
        status = tg_host_hear(h, done < v.next && now - p->moved_ns >= LIVENESS_NS);
        p->told = status < 0;
        if (status == TG_OK)
            status = tg_host_tell_alive(h);
    }
    if (status == TG_OK && done < v.next && !moved)
        status = judge(h, done, p, now, v.stall_ns);
    if (status == TG_ERROR_PEER &&
        !p->told) /* others may have seen it first, and be gone as well */
        p->told = tg_host_hear(h, false) < 0;
    publish(h, &traffic, done, status);
    if (status < 0)
        return false;
    rest(&v, moved, p);
    return true;
}

/* A failure of this rank's own, or one that it has seen. */
static void tell_failure(tg_host *h)
{
    const char *mark = h->status == TG_ERROR_PEER ? TG_HOST_SEEN : "";
    const size_t begin = strlen(mark);
    memset(&h->said, 0, sizeof h->said);
    memcpy(h->said.reason, mark, begin);
    memcpy(h->said.reason + begin, h->error, strnlen(h->error, sizeof h->said.reason - 1 - begin));
    tg_host_farewell(h, false);
}

void *tg_host_run(void *user)
{
    tg_host *h = user;
    int64_t now = tg_clock_ns();
    tg_thread_name_set(TG_THREAD_COMM);
    progress p = {.looked_ns = now,
                  .moved_ns = now,
                  .heard_ns = now,
                  .checked_ns = now,
                  .sleep_ns = SLEEP_MIN_NS,
                  .begun = 1};
    while (round_of(h, &p))
        ;
    pthread_mutex_lock(&h->lock);
    bool leaving = h->leaving, failed = h->failed;
    pthread_mutex_unlock(&h->lock);
    if (leaving)
        tg_host_farewell(h, false);
    else if (!failed)
        tg_host_farewell(h, true);
    else if (!p.told)
        tell_failure(h);
    return NULL;
}
