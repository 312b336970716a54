/* The caller's side: queues work for the progress thread and waits for tickets. */
#include "comm/host/host_state.h"

#include "os/clock.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NS_PER_S 1000000000.0

static tg_host *host_of(tg_comm *comm)
{
    return (tg_host *)(void *)comm;
}

/* After this the thread touches nothing. It ends by itself after a failure, else when it is told to. */
static void join(tg_host *h)
{
    if (h->started && !h->joined)
        pthread_join(h->thread, NULL);
    h->joined = true;
}

static tg_status failure(tg_host *h)
{
    return tg_fail(h->status, "%s", h->error);
}

/* Waits for room, hands the work over; lock held. */
static tg_status queue(tg_host *h, const tg_comm_work *work, const void *mine, size_t meet_bytes,
                       void *all, tg_comm_ticket *out)
{
    h->waiting = true;
    while (!h->failed && h->next - h->first >= TG_HOST_QUEUE)
        pthread_cond_wait(&h->changed, &h->lock);
    h->waiting = false;
    if (h->failed)
        return failure(h);
    h->orders[h->next % TG_HOST_QUEUE] = (tg_host_order){.work = *work,
                                                         .mine = mine,
                                                         .all = all,
                                                         .meet_bytes = meet_bytes,
                                                         .ticket = h->next,
                                                         .queued_ns = tg_clock_ns()};
    *out = h->next++;
    pthread_cond_broadcast(&h->changed);
    return TG_OK;
}

static tg_status await(tg_host *h, tg_comm_ticket ticket)
{
    h->waiting = true;
    while (!h->failed && h->first <= ticket)
        pthread_cond_wait(&h->changed, &h->lock);
    h->waiting = false;
    return h->first > ticket ? TG_OK : failure(h);
}

static tg_status begin(tg_comm *comm, const tg_comm_work *work, tg_comm_ticket *out)
{
    tg_host *h = host_of(comm);
    pthread_mutex_lock(&h->lock);
    tg_status status = queue(h, work, NULL, 0, NULL, out);
    pthread_mutex_unlock(&h->lock);
    return status;
}

static tg_status wait_for(tg_comm *comm, tg_comm_ticket ticket)
{
    tg_host *h = host_of(comm);
    pthread_mutex_lock(&h->lock);
    tg_status status = await(h, ticket);
    pthread_mutex_unlock(&h->lock);
    return status;
}

/* Before what the caller gives goes a word that says which meeting this is: a rank that came to
 * another one is found out. */
typedef struct meeting {
    uint64_t ticket, bytes;
    char name[64];
} meeting;

static void print_name(const meeting *m, char out[sizeof m->name])
{
    snprintf(out, sizeof m->name, "%.*s", (int)strnlen(m->name, sizeof m->name - 1), m->name);
}

static tg_status compare_meetings(const tg_host *h, const char *what, const meeting *own,
                                  const char *all, size_t stride)
{
    for (int r = 0; r < h->base.size; r++) {
        meeting theirs;
        char name[sizeof theirs.name];
        memcpy(&theirs, all + (size_t)r * stride, sizeof theirs);
        print_name(&theirs, name);
        if (memcmp(&theirs, own, sizeof theirs) != 0)
            return tg_fail(
                TG_ERROR_PEER,
                "ranks have parted: this one is at '%s' (collective %llu, %llu bytes), rank %d on "
                "%s is at '%s' (collective %llu, %llu bytes)",
                what, (unsigned long long)own->ticket, (unsigned long long)own->bytes, r,
                h->peers[r].host, name, (unsigned long long)theirs.ticket,
                (unsigned long long)theirs.bytes);
    }
    return TG_OK;
}

/* Messages of a meeting have one of few lengths, so that a rank at another one is found by its head. */
enum { MEETING_GRAIN = 256 };

static tg_status meet(tg_comm *comm, const char *what, const void *mine, size_t bytes,
                      void *out_all)
{
    tg_host *h = host_of(comm);
    meeting head = {.bytes = bytes};
    const size_t whole = (sizeof head + bytes + MEETING_GRAIN - 1) / MEETING_GRAIN * MEETING_GRAIN;
    const tg_comm_work work = {.kind = TG_COMM_MEET, .what = what};
    if (bytes > TG_COMM_SMALL_BYTES)
        return tg_fail(TG_ERROR_FAILED, "meeting '%s': %zu bytes are too many", what, bytes);
    memcpy(head.name, what, strnlen(what, sizeof head.name - 1));
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
        join(h); /* nothing more comes or goes from here */
    if (status == TG_OK)
        status = compare_meetings(h, what, &head, all, whole);
    for (int r = 0; r < h->base.size && status == TG_OK; r++)
        memcpy((char *)out_all + (size_t)r * bytes, all + (size_t)r * whole + sizeof head, bytes);
    if (!abandoned) /* else a peer may yet take what was sent from here, as with any message under way */
        free(own);
    return status;
}

static void set_stall(tg_comm *comm, double seconds)
{
    tg_host *h = host_of(comm);
    pthread_mutex_lock(&h->lock);
    h->stall_ns = (int64_t)(seconds * NS_PER_S);
    pthread_mutex_unlock(&h->lock);
}

static const char *host_name(const tg_comm *comm, int rank)
{
    return ((const tg_host *)(const void *)comm)->peers[rank].host;
}

static size_t bytes_of(const tg_comm *comm)
{
    tg_host *h = host_of((tg_comm *)(uintptr_t)comm);
    pthread_mutex_lock(&h->lock);
    size_t bytes = h->bytes;
    pthread_mutex_unlock(&h->lock);
    return bytes;
}

static tg_comm_traffic traffic_of(const tg_comm *comm)
{
    tg_host *h = host_of((tg_comm *)(uintptr_t)comm);
    pthread_mutex_lock(&h->lock);
    tg_comm_traffic traffic = h->traffic;
    pthread_mutex_unlock(&h->lock);
    clockid_t clock;
    struct timespec used;
    if (h->started && !h->joined && pthread_getcpuclockid(h->thread, &clock) == 0 &&
        clock_gettime(clock, &used) == 0)
        traffic.cpu_ns = used.tv_sec * 1000000000LL + used.tv_nsec;
    return traffic;
}

static bool record_of(tg_comm *comm, tg_comm_ticket ticket, tg_comm_record *out)
{
    tg_host *h = host_of(comm);
    pthread_mutex_lock(&h->lock);
    const tg_host_order *o = &h->orders[ticket % TG_HOST_QUEUE];
    const bool known = ticket < h->first && o->ticket == ticket;
    if (known)
        *out = (tg_comm_record){.kind = o->work.kind,
                                .what = o->work.what,
                                .bytes = o->work.count * sizeof(float),
                                .queued_ns = o->queued_ns,
                                .begun_ns = o->begun_ns,
                                .done_ns = o->done_ns};
    pthread_mutex_unlock(&h->lock);
    return known;
}

/* Waits until nothing is under way; lock held. */
static void await_idle(tg_host *h)
{
    h->waiting = true;
    while (!h->failed && h->first < h->next)
        pthread_cond_wait(&h->changed, &h->lock);
    h->waiting = false;
}

/* The thread looks at exchanges that are under way alone, and there is none while the lock is held. */
static tg_status reserve(tg_comm *comm, size_t count, tg_dtype wire)
{
    tg_host *h = host_of(comm);
    pthread_mutex_lock(&h->lock);
    await_idle(h);
    tg_status status = h->failed ? failure(h) : TG_OK;
    for (int i = 0; i < TG_HOST_DEPTH && status == TG_OK; i++)
        status = tg_host_exchange_reserve(&h->ring[i], &h->transport, count, wire);
    if (!h->failed)
        h->bytes = tg_host_count_bytes(h);
    pthread_mutex_unlock(&h->lock);
    return status;
}

static void quiet(tg_comm *comm)
{
    tg_host *h = host_of(comm);
    pthread_mutex_lock(&h->lock);
    await_idle(h);
    bool failed = h->failed;
    pthread_mutex_unlock(&h->lock);
    if (failed)
        join(h);
}

static void leave(tg_comm *comm, const char *reason)
{
    tg_host *h = host_of(comm);
    pthread_mutex_lock(&h->lock);
    if (!h->failed && !h->leaving) {
        snprintf(h->said.reason, sizeof h->said.reason, "%s", *reason ? reason : "no reason given");
        h->leaving = true;
        h->failed = true; /* the caller's own message stays the one on record */
        h->status = TG_ERROR_PEER;
        snprintf(h->error, sizeof h->error, "this rank has left: %s", h->said.reason);
        pthread_cond_broadcast(&h->changed);
    }
    pthread_mutex_unlock(&h->lock);
    join(h);
}

static void free_host(tg_host *h)
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
    tg_host *h = host_of(comm);
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

static bool is_lost(tg_comm *comm, int rank)
{
    tg_host *h = host_of(comm);
    pthread_mutex_lock(&h->lock);
    bool lost = h->failed && h->lines[rank].lost;
    pthread_mutex_unlock(&h->lock);
    return lost;
}

static tg_status start_thread(tg_host *h)
{
    pthread_condattr_t monotonic;
    sigset_t all, before;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&h->lock, NULL);
    pthread_cond_init(&h->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    for (int r = 0; r < h->base.size; r++)
        if (r != h->base.rank) {
            h->lines[r].heard_ns = tg_clock_ns();
            TG_TRY(tg_host_listen(h, r));
        }
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(&h->thread, NULL, tg_host_run, h);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code != 0)
        return tg_fail(TG_ERROR_MACHINE, "cannot start the thread that talks to other ranks: %s",
                       strerror(code));
    h->started = true;
    return TG_OK;
}

static bool is_one_machine(const tg_host *h)
{
    for (int r = 1; r < h->base.size; r++)
        if (strcmp(h->peers[r].host, h->peers[0].host) != 0)
            return false;
    return true;
}

static tg_status introduce(tg_host *h, const char *name)
{
    tg_host_peer self = {.process = tg_process_self()};
    snprintf(self.host, sizeof self.host, "%s", name);
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
        pthread_mutex_lock(&h->lock);
        h->window = is_one_machine(h) ? SIZE_MAX / 2 : TG_HOST_WINDOW_BYTES;
        pthread_mutex_unlock(&h->lock);
    }
    free(all);
    return status;
}

tg_status tg_host_open(const tg_transport *transport, const char *host_name_of_self, double stall_s,
                       tg_comm **out)
{
    static const tg_comm_ops ops = {begin,    wait_for,   meet,   set_stall, host_name,
                                    bytes_of, traffic_of, quiet,  leave,     close_host,
                                    is_lost,  record_of,  reserve};
    tg_transport copy = *transport;
    const size_t size = (size_t)copy.size;
    tg_host *h = calloc(1, sizeof *h);
    tg_host_line *lines = calloc(size, sizeof *lines);
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
    h->window = TG_HOST_WINDOW_BYTES;
    for (size_t r = 0; r < size; r++) /* until they have said who they are */
        snprintf(peers[r].host, sizeof peers[r].host, "a host not known yet");
    h->first = h->next = 1;
    h->stall_ns = h->silence_ns = (int64_t)(stall_s * NS_PER_S);
    snprintf(h->alive.reason, sizeof h->alive.reason, "%s", TG_HOST_ALIVE);
    tg_status status = start_thread(h);
    if (status == TG_OK)
        status = introduce(h, host_name_of_self);
    if (status != TG_OK) {
        pthread_mutex_lock(&h->lock);
        tg_host_record_failure(h, status);
        pthread_mutex_unlock(&h->lock);
        close_host(&h->base);
        return status;
    }
    *out = &h->base;
    return TG_OK;
}
