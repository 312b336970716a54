#include "support/ranks.h"

#include "support/check.h"

#include "os/clock.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* After a failure messages may still be under way, so what they point to stays (comm/host/host.c), and
 * bodies that fail leave their buffers: no leaks to report. */
const char *__lsan_default_suppressions(void);

const char *__lsan_default_suppressions(void)
{
    return "leak:tg_host_\nleak:comm/host/\nleak:support/ranks.c\nleak:new_data\n";
}

enum { TAGS = 32768 };

typedef struct letter {
    struct letter *next;
    int from, to, tag;
    size_t bytes;
    const void *data; /* of the sender; read when it is taken */
    int64_t due_ns;
    uint32_t number; /* of its pair and tag */
    bool taken, lost;
} letter;

typedef struct slot {
    letter *sent; /* a send: done when taken */
    void *into;   /* a receive */
    size_t bytes;
    int from, tag;
    uint32_t number;
} slot;

struct tg_test_world {
    pthread_mutex_t lock;
    letter *first, *last;
    bool muted[TG_TEST_RANKS], cut[TG_TEST_RANKS][TG_TEST_RANKS];
    int broken[TG_TEST_RANKS]; /* which calls */
    int64_t delay_ns[TG_TEST_RANKS];
    /* [from][to][tag]: how many there were; a receive gets the letter of its own number */
    uint32_t sends[TG_TEST_RANKS][TG_TEST_RANKS][TAGS],
        receives[TG_TEST_RANKS][TG_TEST_RANKS][TAGS];
};

typedef struct port {
    tg_test_world *world;
    int rank;
} port;

static tg_test_world *world_of(tg_transport *t)
{
    return ((port *)t->state)->world;
}

static bool is_broken(tg_transport *t, int call)
{
    tg_test_world *w = world_of(t);
    pthread_mutex_lock(&w->lock);
    bool broken = w->broken[t->rank] & call;
    pthread_mutex_unlock(&w->lock);
    return broken;
}

static int send_letter(tg_transport *t, const void *data, size_t bytes, int peer, int tag,
                       tg_transport_request *out)
{
    tg_test_world *w = world_of(t);
    if (is_broken(t, TG_TEST_SENDS))
        return 7;
    letter *l = calloc(1, sizeof *l);
    slot *s = calloc(1, sizeof *s);
    if (!l || !s)
        abort();
    *l = (letter){.from = t->rank, .to = peer, .tag = tag, .bytes = bytes, .data = data};
    s->sent = l;
    pthread_mutex_lock(&w->lock);
    l->due_ns = tg_clock_ns() + w->delay_ns[t->rank];
    l->lost = w->muted[t->rank] || w->muted[peer];
    l->taken = w->cut[t->rank][peer];
    l->number = w->sends[t->rank][peer][tag]++;
    if (w->last)
        w->last->next = l;
    else
        w->first = l;
    w->last = l;
    pthread_mutex_unlock(&w->lock);
    out->slot[0] = s;
    return 0;
}

static int receive_letter(tg_transport *t, void *data, size_t bytes, int peer, int tag,
                          tg_transport_request *out)
{
    if (is_broken(t, TG_TEST_RECEIVES))
        return 8;
    slot *s = calloc(1, sizeof *s);
    if (!s)
        abort();
    tg_test_world *w = world_of(t);
    *s = (slot){.into = data, .bytes = bytes, .from = peer, .tag = tag};
    pthread_mutex_lock(&w->lock);
    s->number = w->receives[peer][t->rank][tag]++;
    pthread_mutex_unlock(&w->lock);
    out->slot[0] = s;
    return 0;
}

static letter *find_letter(tg_test_world *w, int rank, const slot *s)
{
    for (letter *l = w->first; l; l = l->next)
        if (!l->taken && l->to == rank && l->from == s->from && l->tag == s->tag &&
            l->number == s->number)
            return l->lost || l->due_ns > tg_clock_ns() ? NULL : l;
    return NULL;
}

static int test_letter(tg_transport *t, tg_transport_request *request, int *out_done)
{
    tg_test_world *w = world_of(t);
    slot *s = request->slot[0];
    int code = 0;
    *out_done = 0;
    if (is_broken(t, TG_TEST_TESTS))
        return 9;
    pthread_mutex_lock(&w->lock);
    if (s->sent) {
        *out_done = s->sent->taken;
    } else {
        letter *l = find_letter(w, t->rank, s);
        if (l && l->bytes > s->bytes)
            code = 10;
        else if (l) {
            memcpy(s->into, l->data, l->bytes);
            l->taken = true;
            *out_done = 1;
        }
    }
    pthread_mutex_unlock(&w->lock);
    if (*out_done)
        free(s);
    return code;
}

static void letter_error(tg_transport *t, int code, char *out, size_t bytes)
{
    (void)t;
    snprintf(out, bytes, "letter error %d", code);
}

static void close_port(tg_transport *t, int orderly)
{
    (void)t, (void)orderly;
}

typedef struct rank_thread {
    pthread_t thread;
    port port;
    int size;
    double stall_s;
    tg_test_rank_body body;
    void *user;
    tg_status status;
    char text[512];
} rank_thread;

static void *run_rank(void *user)
{
    rank_thread *r = user;
    tg_transport transport = {.rank = r->port.rank,
                              .size = r->size,
                              .library = "letters",
                              .state = &r->port,
                              .send = send_letter,
                              .receive = receive_letter,
                              .test = test_letter,
                              .error_text = letter_error,
                              .close = close_port};
    char host[16];
    snprintf(host, sizeof host, "host%d", r->port.rank);
    tg_comm *comm = NULL;
    r->status = tg_host_open(&transport, host, r->stall_s, &comm);
    if (r->status == TG_OK) {
        r->status = r->body(comm, r->port.world, r->user);
        snprintf(r->text, sizeof r->text, "%s", r->status < 0 ? tg_error_message() : "");
        tg_comm_close(comm);
    } else {
        snprintf(r->text, sizeof r->text, "%s", tg_error_message());
    }
    return NULL;
}

void tg_test_ranks_run(int size, double stall_s, tg_test_rank_body body, void *user,
                       tg_status out_status[TG_TEST_RANKS], char out_text[TG_TEST_RANKS][512])
{
    tg_test_world *world = calloc(1, sizeof *world);
    rank_thread threads[TG_TEST_RANKS];
    if (!world)
        abort();
    pthread_mutex_init(&world->lock, NULL);
    for (int r = 0; r < size; r++) {
        threads[r] = (rank_thread){
            .port = {world, r}, .size = size, .stall_s = stall_s, .body = body, .user = user};
        if (pthread_create(&threads[r].thread, NULL, run_rank, &threads[r]) != 0)
            abort();
    }
    for (int r = 0; r < size; r++) {
        pthread_join(threads[r].thread, NULL);
        out_status[r] = threads[r].status;
        memcpy(out_text[r], threads[r].text, sizeof threads[r].text);
    }
    for (letter *l = world->first, *next; l; l = next) {
        next = l->next;
        free(l);
    }
    pthread_mutex_destroy(&world->lock);
    free(world);
}

void tg_test_world_mute(tg_test_world *world, int rank)
{
    pthread_mutex_lock(&world->lock);
    world->muted[rank] = true;
    pthread_mutex_unlock(&world->lock);
}

void tg_test_world_cut(tg_test_world *world, int from, int to)
{
    pthread_mutex_lock(&world->lock);
    world->cut[from][to] = true;
    pthread_mutex_unlock(&world->lock);
}

void tg_test_world_delay(tg_test_world *world, int rank, int64_t delay_ns)
{
    pthread_mutex_lock(&world->lock);
    world->delay_ns[rank] = delay_ns;
    pthread_mutex_unlock(&world->lock);
}

void tg_test_world_break(tg_test_world *world, int rank, int calls)
{
    pthread_mutex_lock(&world->lock);
    world->broken[rank] |= calls;
    pthread_mutex_unlock(&world->lock);
}

void tg_test_ranks_all_ok(int size, double stall_s, tg_test_rank_body body, void *user)
{
    tg_status status[TG_TEST_RANKS];
    char text[TG_TEST_RANKS][512];
    tg_test_ranks_run(size, stall_s, body, user, status, text);
    for (int r = 0; r < size; r++) {
        if (status[r] != TG_OK)
            print_error("rank %d: %s\n", r, text[r]);
        assert_int_equal(status[r], TG_OK);
    }
}
