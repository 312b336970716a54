/* What plain TCP sockets give where ranks exchange: each rank sends every other one some bytes, and gets as
 * many from it. The yardstick of `tagine bench comm` on the same hosts (links.sh).
 *
 *   bench_sockets RANK ADDRESSES REPEATS PART BYTES...
 *
 * PART: ranks go by turns, in each so many bytes to one peer and from another; 0: all at once. ADDRESSES: IPv4, of
 * rank 0, 1, .. with commas between; every rank listens at PORT + RANK. One connection a pair, used both ways. Before an exchange ranks meet. The first one prints, a line for each BYTES (what goes
 * to each peer): bytes, and the median over repeats of the slowest rank's seconds.
 */
#include "os/clock.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <math.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PORT = 7300, RANKS_MAX = 16, REPEATS_MAX = 1000, TRIES = 200 };

typedef struct mesh {
    int rank, size;
    struct sockaddr_in addresses[RANKS_MAX];
    int sockets[RANKS_MAX]; /* -1 for oneself */
} mesh;

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void read_addresses(mesh *m, char *list, int rank)
{
    m->rank = rank;
    for (char *at = strtok(list, ","); at && m->size < RANKS_MAX; at = strtok(NULL, ",")) {
        struct sockaddr_in *a = &m->addresses[m->size];
        *a = (struct sockaddr_in){.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)(PORT + m->size))};
        if (inet_pton(AF_INET, at, &a->sin_addr) != 1)
            die(at);
        m->sockets[m->size++] = -1;
    }
    if (rank < 0 || rank >= m->size)
        die("rank");
}

static int new_socket(void)
{
    int s = socket(AF_INET, SOCK_STREAM, 0);
    if (s < 0)
        die("socket");
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    return s;
}

/* To a peer of a lower rank, which may not listen yet. */
static int connect_to(const mesh *m, int peer)
{
    for (int tries = 0; tries < TRIES; tries++) {
        int s = new_socket();
        if (connect(s, (const struct sockaddr *)&m->addresses[peer], sizeof *m->addresses) == 0) {
            if (write(s, &m->rank, sizeof m->rank) != sizeof m->rank)
                die("write");
            return s;
        }
        close(s);
        usleep(50000);
    }
    die("connect");
    return -1;
}

static void connect_all(mesh *m)
{
    int listener = new_socket(), peer;
    if (bind(listener, (const struct sockaddr *)&m->addresses[m->rank], sizeof *m->addresses) ||
        listen(listener, RANKS_MAX))
        die("listen");
    for (int r = 0; r < m->rank; r++)
        m->sockets[r] = connect_to(m, r);
    for (int left = m->size - m->rank - 1; left > 0; left--) {
        int s = accept(listener, NULL, NULL);
        if (s < 0 || recv(s, &peer, sizeof peer, MSG_WAITALL) != sizeof peer || peer <= m->rank ||
            peer >= m->size)
            die("accept");
        m->sockets[peer] = s;
    }
    close(listener);
    for (int r = 0; r < m->size; r++)
        if (r != m->rank) {
            setsockopt(m->sockets[r], IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
            fcntl(m->sockets[r], F_SETFL, O_NONBLOCK);
        }
}

/* Moves what a socket takes or has; how much. */
static size_t move(int s, char *data, size_t bytes, bool in)
{
    ssize_t n = bytes ? (in ? read(s, data, bytes) : write(s, data, bytes)) : 0;
    return n > 0 ? (size_t)n : 0;
}

/* `bytes` of out[to] go to rank `to`, as many come from rank `from`; -1: all at once. */
static void exchange_with(const mesh *m, int to, int from, size_t bytes, char *const *out,
                          char *const *in)
{
    size_t sent[RANKS_MAX] = {0}, got[RANKS_MAX] = {0};
    for (bool open = true; open;) {
        struct pollfd polls[RANKS_MAX];
        open = false;
        for (int r = 0; r < m->size; r++) {
            polls[r] = (struct pollfd){.fd = m->sockets[r]};
            if (r == m->rank)
                continue;
            if (to < 0 || r == to) {
                sent[r] += move(m->sockets[r], out[r] + sent[r], bytes - sent[r], false);
                polls[r].events |= sent[r] < bytes ? POLLOUT : 0;
            }
            if (from < 0 || r == from) {
                got[r] += move(m->sockets[r], in[r] + got[r], bytes - got[r], true);
                polls[r].events |= got[r] < bytes ? POLLIN : 0;
            }
            if (!polls[r].events)
                polls[r].fd = -1;
            open = open || polls[r].events;
        }
        if (open)
            poll(polls, (nfds_t)m->size, 1000);
    }
}

/* By turns of `part` bytes a pair; 0: all at once. */
static void exchange(const mesh *m, size_t bytes, size_t part, char *const *out, char *const *in)
{
    char *from[RANKS_MAX], *to[RANKS_MAX];
    if (!part) {
        exchange_with(m, -1, -1, bytes, out, in);
        return;
    }
    for (size_t at = 0; at < bytes; at += part) {
        const size_t n = bytes - at < part ? bytes - at : part;
        for (int r = 0; r < m->size; r++) {
            from[r] = out[r] + at;
            to[r] = in[r] + at;
        }
        for (int d = 1; d < m->size; d++)
            exchange_with(m, (m->rank + d) % m->size, (m->rank + m->size - d) % m->size, n, from,
                          to);
    }
}

/* Each rank's number to all; the largest. */
static double meet(const mesh *m, double mine)
{
    double all[RANKS_MAX], most = mine;
    char *out[RANKS_MAX], *in[RANKS_MAX];
    for (int r = 0; r < m->size; r++) {
        all[r] = mine;
        out[r] = (char *)&mine;
        in[r] = (char *)&all[r];
    }
    exchange(m, sizeof mine, 0, out, in);
    for (int r = 0; r < m->size; r++)
        most = fmax(most, all[r]);
    return most;
}

static double measure_once(const mesh *m, size_t bytes, size_t part, char *const *out,
                           char *const *in)
{
    meet(m, 0);
    int64_t begin = tg_clock_ns();
    exchange(m, bytes, part, out, in);
    return meet(m, tg_clock_seconds(tg_clock_ns() - begin));
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(const mesh *m, size_t bytes, size_t part, int repeats)
{
    double times[REPEATS_MAX];
    char *out[RANKS_MAX], *in[RANKS_MAX];
    for (int r = 0; r < m->size; r++) {
        out[r] = calloc(1, bytes + 1);
        in[r] = calloc(1, bytes + 1);
        if (!out[r] || !in[r])
            die("calloc");
    }
    measure_once(m, bytes, part, out, in);
    for (int i = 0; i < repeats; i++)
        times[i] = measure_once(m, bytes, part, out, in);
    qsort(times, (size_t)repeats, sizeof *times, compare);
    if (m->rank == 0)
        printf("%zu %.6f\n", bytes, times[repeats / 2]);
    for (int r = 0; r < m->size; r++) {
        free(out[r]);
        free(in[r]);
    }
}

int main(int argc, char **argv)
{
    mesh m = {0};
    int repeats = argc > 5 ? atoi(argv[3]) : 0;
    if (repeats < 1 || repeats > REPEATS_MAX) {
        fprintf(stderr, "usage: bench_sockets RANK ADDRESSES REPEATS PART BYTES...\n");
        return 2;
    }
    read_addresses(&m, argv[2], atoi(argv[1]));
    connect_all(&m);
    for (int i = 5; i < argc; i++)
        measure(&m, strtoull(argv[i], NULL, 10), strtoull(argv[4], NULL, 10), repeats);
    return 0;
}
