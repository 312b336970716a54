/* The progress thread and its queue. The caller's thread only queues work and waits for tickets. */
#include "comm/host/peers.h"

#include "os/clock.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NS_PER_S 1000000000.0

enum {
    QUEUE = 1024, /* collectives that wait to begin */
    CONTROL_TAG = 0,
    CONTROL_BYTES = 1024,
    CONTROL_LOOK_NS = 20 * 1000 * 1000, /* between looks at what peers say */
    LIVENESS_NS = 200 * 1000 * 1000,    /* standing still that long is reason to look at peers */
    IDLE_NS = 50 * 1000 * 1000,         /* between looks while nothing is under way */
    SLEEP_MIN_NS = 20 * 1000,           /* while the caller computes, and nothing moves */
    SLEEP_MAX_NS = 300 * 1000,
    FAREWELL_NS = 500 * 1000 * 1000, /* for the messages of leave and close */
};

/* What a rank says outside of collectives. */
typedef struct control {
    char reason[CONTROL_BYTES]; /* "" : an orderly end */
} control;

typedef struct control_line {
    tg_transport_request in, out;
    control heard;
    bool listening, sending, ended;
} control_line;

/* What the caller wants, until the thread takes it up. */
typedef struct order {
    tg_comm_work work;
    const void *mine;
    void *all;
    size_t meet_bytes;
} order;

typedef struct host {
    tg_comm base;
    tg_transport transport;
    tg_host_peer *peers;
    control_line *lines; /* [size] */
    control said;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;               /* queue, tickets, failure, waiting */
    tg_host_exchange ring[TG_HOST_DEPTH]; /* ticket % depth: what is under way; the thread's own */
    /* under the lock */
    order orders[QUEUE];        /* ticket % queue */
    tg_comm_ticket first, next; /* oldest not done, next to be given */
    bool waiting, closing, leaving, failed;
    int64_t stall_ns;
    char error[TG_ERROR_BYTES];
    tg_status status;
    tg_comm_traffic traffic;
    size_t bytes;
    bool started, joined; /* the thread */
} host;

static host *host_of(tg_comm *comm)
{
    return (host *)(void *)comm;
}

static tg_host_exchange *exchange_of(host *h, tg_comm_ticket ticket)
{
    return &h->ring[ticket % TG_HOST_DEPTH];
}

static void take_up(host *h, tg_comm_ticket ticket)
{
    const order *o = &h->orders[ticket % QUEUE];
    tg_host_exchange *x = exchange_of(h, ticket);
    x->work = o->work;
    x->mine = o->mine;
    x->all = o->all;
    x->meet_bytes = o->meet_bytes;
    x->ticket = ticket;
}

static void sleep_ns(int64_t ns)
{
    struct timespec t = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    nanosleep(&t, NULL);
}

/* Lock held. The first failure stays. */
static void record_failure(host *h, tg_status status)
{
    if (!h->failed) {
        h->failed = true;
        h->status = status;
        memcpy(h->error, tg_error_message(), strnlen(tg_error_message(), sizeof h->error - 1) + 1);
    }
    pthread_cond_broadcast(&h->changed);
}

/* ---- what peers say outside of collectives ---- */

static tg_status listen_to(host *h, int peer)
{
    control_line *line = &h->lines[peer];
    int code = h->transport.receive(&h->transport, &line->heard, sizeof line->heard, peer,
                                    CONTROL_TAG, &line->in);
    if (code)
        return tg_host_transport_failed(&h->transport, "receiving from", peer, code);
    line->listening = true;
    return TG_OK;
}

static tg_status hear_peers(host *h, bool busy)
{
    for (int r = 0; r < h->base.size; r++) {
        control_line *line = &h->lines[r];
        int done = 0;
        if (line->listening) {
            int code = h->transport.test(&h->transport, &line->in, &done);
            if (code)
                return tg_host_transport_failed(&h->transport, "receiving from", r, code);
        }
        if (done) {
            line->listening = false;
            line->ended = true;
            line->heard.reason[CONTROL_BYTES - 1] = '\0';
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

/* Sends `said` to all and gives it a moment to go out; for orderly ends also hears the others'. */
static void say_farewell(host *h, bool hear)
{
    int64_t end = tg_clock_ns() + (hear ? h->stall_ns : FAREWELL_NS);
    for (int r = 0; r < h->base.size; r++)
        h->lines[r].sending =
            r != h->base.rank && h->transport.send(&h->transport, &h->said, sizeof h->said, r,
                                                   CONTROL_TAG, &h->lines[r].out) == 0;
    while (tg_clock_ns() < end) {
        bool all = true;
        for (int r = 0; r < h->base.size; r++) {
            control_line *line = &h->lines[r];
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
        sleep_ns(SLEEP_MIN_NS);
    }
}

/* ---- the progress thread ---- */

typedef struct progress {
    int64_t moved_ns, heard_ns, checked_ns, sleep_ns;
    tg_comm_ticket begun; /* tickets below have been posted */
} progress;

/* One look at everything under way, [first, next) as the thread knows them. */
static tg_status look(host *h, tg_comm_ticket first, tg_comm_ticket next, progress *p,
                      tg_comm_traffic *traffic, bool *out_moved, tg_comm_ticket *out_first)
{
    bool in_order = true;
    *out_moved = false;
    *out_first = first;
    for (tg_comm_ticket ticket = first; ticket < next; ticket++) {
        tg_host_exchange *x = exchange_of(h, ticket);
        tg_host_look seen = {0};
        if (ticket >= p->begun) {
            take_up(h, ticket);
            TG_TRY(tg_host_exchange_begin(x, &h->transport));
            p->begun = ticket + 1;
            *out_moved = true;
        }
        TG_TRY(tg_host_exchange_look(x, &h->transport, &seen));
        traffic->sent_bytes += seen.sent_bytes;
        traffic->received_bytes += seen.received_bytes;
        *out_moved = *out_moved || seen.moved;
        in_order = in_order && seen.done;
        if (in_order) {
            *out_first = ticket + 1;
            traffic->calls += x->work.kind != TG_COMM_MEET;
        }
    }
    return TG_OK;
}

/* Nothing has moved: is a peer gone, or has it been too long? */
static tg_status judge(host *h, tg_comm_ticket first, progress *p, int64_t now, int64_t stall_ns)
{
    const tg_host_exchange *x = exchange_of(h, first);
    if (now - p->moved_ns >= LIVENESS_NS && now - p->checked_ns >= LIVENESS_NS) {
        p->checked_ns = now;
        int dead = tg_host_find_dead(x, &h->transport, h->peers);
        if (dead >= 0)
            return tg_host_report_dead(x, h->peers, dead);
    }
    if (now - p->moved_ns >= stall_ns)
        return tg_host_blame(x, &h->transport, h->peers, (double)(now - p->moved_ns) / NS_PER_S);
    return TG_OK;
}

/* One round; false ends the thread. */
static bool round_of(host *h, progress *p)
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
        p->moved_ns = tg_clock_ns();
    }
    tg_comm_ticket first = h->first, next = h->next, done = first;
    if (next > first + TG_HOST_DEPTH)
        next = first + TG_HOST_DEPTH;
    bool end = h->failed || h->leaving || (h->closing && first == next), waiting = h->waiting,
         moved = false;
    int64_t stall_ns = h->stall_ns;
    pthread_mutex_unlock(&h->lock);
    if (end)
        return false;
    int64_t begin = tg_clock_ns();
    tg_comm_traffic traffic = {0};
    tg_status status = look(h, first, next, p, &traffic, &moved, &done);
    int64_t now = tg_clock_ns();
    if (moved || first == next)
        p->moved_ns = now;
    if (status == TG_OK && now - p->heard_ns >= CONTROL_LOOK_NS) {
        p->heard_ns = now;
        status = hear_peers(h, done < next && now - p->moved_ns >= LIVENESS_NS);
    }
    if (status == TG_OK && done < next && !moved)
        status = judge(h, done, p, now, stall_ns);
    pthread_mutex_lock(&h->lock);
    if (status < 0)
        record_failure(h, status);
    h->traffic.calls += traffic.calls;
    h->traffic.sent_bytes += traffic.sent_bytes;
    h->traffic.received_bytes += traffic.received_bytes;
    if (done > first) {
        h->first = done;
        h->bytes = 0;
        for (int i = 0; i < TG_HOST_DEPTH; i++)
            h->bytes += tg_host_exchange_bytes(&h->ring[i]);
        pthread_cond_broadcast(&h->changed);
    }
    pthread_mutex_unlock(&h->lock);
    if (status < 0)
        return false;
    if (moved) {
        p->sleep_ns = SLEEP_MIN_NS;
    } else if (waiting) {
        sched_yield();
    } else if (first < next) {
        sleep_ns(p->sleep_ns);
        p->sleep_ns = p->sleep_ns * 2 < SLEEP_MAX_NS ? p->sleep_ns * 2 : SLEEP_MAX_NS;
    }
    if (first < next) {
        pthread_mutex_lock(&h->lock);
        h->traffic.busy_ns += tg_clock_ns() - begin;
        pthread_mutex_unlock(&h->lock);
    }
    return true;
}

static void *run(void *user)
{
    host *h = user;
    int64_t now = tg_clock_ns();
    progress p = {
        .moved_ns = now, .heard_ns = now, .checked_ns = now, .sleep_ns = SLEEP_MIN_NS, .begun = 1};
    while (round_of(h, &p))
        ;
    pthread_mutex_lock(&h->lock);
    bool leaving = h->leaving, failed = h->failed;
    pthread_mutex_unlock(&h->lock);
    if (leaving)
        say_farewell(h, false);
    else if (!failed)
        say_farewell(h, true);
    return NULL;
}

/* ---- the caller's side ---- */

/* After this the thread touches nothing. It ends by itself after a failure, else when it is told to. */
static void join(host *h)
{
    if (h->started && !h->joined)
        pthread_join(h->thread, NULL);
    h->joined = true;
}

static tg_status failure(host *h)
{
    return tg_fail(h->status, "%s", h->error);
}

/* Waits for room, hands the work over; lock held. */
static tg_status queue(host *h, const tg_comm_work *work, const void *mine, size_t meet_bytes,
                       void *all, tg_comm_ticket *out)
{
    h->waiting = true;
    while (!h->failed && h->next - h->first >= QUEUE)
        pthread_cond_wait(&h->changed, &h->lock);
    h->waiting = false;
    if (h->failed)
        return failure(h);
    h->orders[h->next % QUEUE] =
        (order){.work = *work, .mine = mine, .all = all, .meet_bytes = meet_bytes};
    *out = h->next++;
    pthread_cond_broadcast(&h->changed);
    return TG_OK;
}

static tg_status await(host *h, tg_comm_ticket ticket)
{
    h->waiting = true;
    while (!h->failed && h->first <= ticket)
        pthread_cond_wait(&h->changed, &h->lock);
    h->waiting = false;
    return h->first > ticket ? TG_OK : failure(h);
}

static tg_status begin(tg_comm *comm, const tg_comm_work *work, tg_comm_ticket *out)
{
    host *h = host_of(comm);
    pthread_mutex_lock(&h->lock);
    tg_status status = queue(h, work, NULL, 0, NULL, out);
    pthread_mutex_unlock(&h->lock);
    return status;
}

static tg_status wait_for(tg_comm *comm, tg_comm_ticket ticket)
{
    host *h = host_of(comm);
    pthread_mutex_lock(&h->lock);
    tg_status status = await(h, ticket);
    pthread_mutex_unlock(&h->lock);
    return status;
}

/* Before what the caller gives goes a word that says which meeting this is: a rank that came to
 * another one is found out. */
typedef struct meeting {
    uint64_t ticket, name, bytes;
} meeting;

static uint64_t hash_of(const char *text)
{
    uint64_t hash = 14695981039346656037u;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 1099511628211u;
    return hash;
}

static tg_status compare_meetings(const host *h, const char *what, const meeting *own,
                                  const char *all, size_t stride)
{
    for (int r = 0; r < h->base.size; r++) {
        meeting theirs;
        memcpy(&theirs, all + (size_t)r * stride, sizeof theirs);
        if (memcmp(&theirs, own, sizeof theirs) != 0)
            return tg_fail(
                TG_ERROR_PEER,
                "ranks have parted: this one is at '%s' (collective %llu), rank %d on %s "
                "is elsewhere (collective %llu)",
                what, (unsigned long long)own->ticket, r, h->peers[r].host,
                (unsigned long long)theirs.ticket);
    }
    return TG_OK;
}

/* Messages of a meeting have one of few lengths, so that a rank at another one is found by its head. */
enum { MEETING_GRAIN = 256 };

static tg_status meet(tg_comm *comm, const char *what, const void *mine, size_t bytes,
                      void *out_all)
{
    host *h = host_of(comm);
    meeting head = {.name = hash_of(what), .bytes = bytes};
    const size_t whole = (sizeof head + bytes + MEETING_GRAIN - 1) / MEETING_GRAIN * MEETING_GRAIN;
    const tg_comm_work work = {.kind = TG_COMM_MEET, .what = what};
    if (bytes > TG_COMM_SMALL_BYTES)
        return tg_fail(TG_ERROR_FAILED, "meeting '%s': %zu bytes are too many", what, bytes);
    char *own = calloc((size_t)h->base.size + 1, whole), *all = own + whole;
    if (!own)
        return tg_fail(TG_ERROR_MACHINE, "out of memory to meet %d ranks", h->base.size);
    tg_comm_ticket ticket;
    pthread_mutex_lock(&h->lock);
    head.ticket = h->next;
    memcpy(own, &head, sizeof head);
    memcpy(own + sizeof head, mine, bytes);
    tg_status status = queue(h, &work, own, whole, all, &ticket);
    if (status == TG_OK)
        status = await(h, ticket);
    bool abandoned = status != TG_OK;
    pthread_mutex_unlock(&h->lock);
    if (abandoned)
        join(h); /* the thread may still look at what is freed below */
    if (status == TG_OK)
        status = compare_meetings(h, what, &head, all, whole);
    for (int r = 0; r < h->base.size && status == TG_OK; r++)
        memcpy((char *)out_all + (size_t)r * bytes, all + (size_t)r * whole + sizeof head, bytes);
    free(own);
    return status;
}

static void set_stall(tg_comm *comm, double seconds)
{
    host *h = host_of(comm);
    pthread_mutex_lock(&h->lock);
    h->stall_ns = (int64_t)(seconds * NS_PER_S);
    pthread_mutex_unlock(&h->lock);
}

static const char *host_name(const tg_comm *comm, int rank)
{
    return ((const host *)(const void *)comm)->peers[rank].host;
}

static size_t bytes_of(const tg_comm *comm)
{
    host *h = host_of((tg_comm *)(uintptr_t)comm);
    pthread_mutex_lock(&h->lock);
    size_t bytes = h->bytes;
    pthread_mutex_unlock(&h->lock);
    return bytes;
}

static tg_comm_traffic traffic_of(const tg_comm *comm)
{
    host *h = host_of((tg_comm *)(uintptr_t)comm);
    pthread_mutex_lock(&h->lock);
    tg_comm_traffic traffic = h->traffic;
    pthread_mutex_unlock(&h->lock);
    return traffic;
}

static void leave(tg_comm *comm, const char *reason)
{
    host *h = host_of(comm);
    pthread_mutex_lock(&h->lock);
    if (!h->failed && !h->leaving) {
        snprintf(h->said.reason, sizeof h->said.reason, "%s", *reason ? reason : "no reason given");
        h->leaving = true;
        tg_fail(TG_ERROR_PEER, "this rank has left: %s", h->said.reason);
        record_failure(h, TG_ERROR_PEER);
    }
    pthread_mutex_unlock(&h->lock);
    join(h);
}

static void free_host(host *h)
{
    for (int i = 0; i < TG_HOST_DEPTH; i++)
        tg_host_exchange_done(&h->ring[i]);
    pthread_cond_destroy(&h->changed);
    pthread_mutex_destroy(&h->lock);
    free(h->lines);
    free(h->peers);
    free(h);
}

/* After a failure messages may be under way for ever, and the transport may write where they point:
 * what it knows stays until the process ends. */
static void close_host(tg_comm *comm)
{
    host *h = host_of(comm);
    pthread_mutex_lock(&h->lock);
    h->closing = true;
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
    join(h);
    bool orderly = !h->failed;
    h->transport.close(&h->transport, orderly);
    if (orderly)
        free_host(h);
}

static tg_status start_thread(host *h)
{
    pthread_condattr_t monotonic;
    sigset_t all, before;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&h->lock, NULL);
    pthread_cond_init(&h->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    for (int r = 0; r < h->base.size; r++)
        if (r != h->base.rank)
            TG_TRY(listen_to(h, r));
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(&h->thread, NULL, run, h);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code != 0)
        return tg_fail(TG_ERROR_MACHINE, "cannot start the thread that talks to other ranks: %s",
                       strerror(code));
    h->started = true;
    return TG_OK;
}

static tg_status introduce(host *h, const char *name)
{
    tg_host_peer self = {.process = tg_process_self()};
    snprintf(self.host, sizeof self.host, "%s", name);
    for (int r = 0; r < h->base.size; r++) /* until they have said who they are */
        snprintf(h->peers[r].host, sizeof h->peers[r].host, "a host not known yet");
    tg_host_peer *all = calloc((size_t)h->base.size, sizeof *all);
    if (!all)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for %d ranks", h->base.size);
    tg_status status = meet(&h->base, "joining", &self, sizeof self, all);
    if (status == TG_OK) {
        pthread_mutex_lock(&h->lock);
        memcpy(h->peers, all, (size_t)h->base.size * sizeof *all);
        pthread_mutex_unlock(&h->lock);
        for (int r = 0; r < h->base.size; r++)
            h->peers[r].host[TG_COMM_HOST_BYTES - 1] = '\0';
    }
    free(all);
    return status;
}

tg_status tg_host_open(const tg_transport *transport, const char *host_name_of_self, double stall_s,
                       tg_comm **out)
{
    static const tg_comm_ops ops = {begin,    wait_for,   meet,  set_stall, host_name,
                                    bytes_of, traffic_of, leave, close_host};
    tg_transport copy = *transport;
    const size_t size = (size_t)copy.size;
    host *h = calloc(1, sizeof *h);
    control_line *lines = calloc(size, sizeof *lines);
    tg_host_peer *peers = calloc(size, sizeof *peers);
    if (!h || !lines || !peers) {
        free(h);
        free(lines);
        free(peers);
        copy.close(&copy, false);
        return tg_fail(TG_ERROR_MACHINE, "out of memory for %zu ranks", size);
    }
    h->transport = copy;
    h->base = (tg_comm){
        .ops = &ops, .rank = copy.rank, .size = copy.size, .library = h->transport.library};
    h->lines = lines;
    h->peers = peers;
    h->first = h->next = 1;
    h->stall_ns = (int64_t)(stall_s * NS_PER_S);
    tg_status status = start_thread(h);
    if (status == TG_OK)
        status = introduce(h, host_name_of_self);
    if (status != TG_OK) {
        pthread_mutex_lock(&h->lock);
        record_failure(h, status);
        pthread_mutex_unlock(&h->lock);
        close_host(&h->base);
        return status;
    }
    *out = &h->base;
    return TG_OK;
}
