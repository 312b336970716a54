/* The cores of a machine among its ranks: even and disjoint where all have the same ones, left alone where
 * they differ, within quotas, and as asked for. */
#include "support/check.h"
#include "support/ranks.h"

#include "base/log.h"
#include "train/cores.h"

#include <stdio.h>
#include <string.h>

enum { MOST = 8 };

static tg_cores_report rank_on(uint64_t machine, int first, int cores)
{
    tg_cores_report r = {.machine = machine, .possible = 16};
    for (int cpu = first; cpu < first + cores; cpu++)
        tg_cpu_set_add(&r.cores, cpu);
    return r;
}

static void even_and_disjoint(void **state)
{
    (void)state;
    for (int cores = 1; cores <= 13; cores++)
        for (int ranks = 1; ranks <= MOST; ranks++) {
            tg_cores_report all[MOST];
            int next = 0;
            for (int r = 0; r < ranks; r++)
                all[r] = rank_on(1, 3, cores);
            for (int r = 0; r < ranks; r++) {
                const tg_cores_part p = tg_cores_divide(all, ranks, r);
                assert_int_equal(p.divided, ranks > 1);
                assert_int_equal(p.bind, ranks > 1 && ranks <= cores);
                assert_int_equal(p.first, next);
                assert_in_range(p.count, cores / ranks, (cores + ranks - 1) / ranks);
                assert_int_equal(p.threads, p.count > 1 ? p.count : 1);
                next += p.count;
            }
            assert_int_equal(next, cores); /* none left over */
        }
}

/* Two machines with the same numbers of cores, ranks dealt out in turns. */
static void each_machine_alone(void **state)
{
    (void)state;
    tg_cores_report all[4] = {rank_on(1, 0, 4), rank_on(2, 0, 4), rank_on(1, 0, 4),
                              rank_on(2, 0, 4)};
    for (int r = 0; r < 4; r++) {
        const tg_cores_part p = tg_cores_divide(all, 4, r);
        assert_int_equal(p.first, r < 2 ? 0 : 2);
        assert_int_equal(p.count, 2);
        assert_true(p.bind);
    }
}

static void bound_by_the_launcher(void **state)
{
    (void)state;
    tg_cores_report all[3] = {rank_on(1, 0, 2), rank_on(1, 2, 2), rank_on(1, 3, 4)};
    for (int r = 0; r < 3; r++) {
        const tg_cores_part p = tg_cores_divide(all, 3, r);
        assert_false(p.divided || p.bind);
        assert_int_equal(p.count, r < 2 ? 2 : 4);
        assert_int_equal(p.threads, r < 2 ? 2 : 4);
    }
}

static void quotas(void **state)
{
    (void)state;
    tg_cores_report all[3] = {rank_on(1, 0, 12), rank_on(1, 0, 12), rank_on(1, 0, 12)};
    for (int r = 0; r < 3; r++) {
        all[r].quota = 5;
        all[r].quota_group = 7;
    }
    tg_cores_part p = tg_cores_divide(all, 3, 1);
    assert_int_equal(p.threads, 1); /* 5 cores for the three of them */
    assert_int_equal(p.count, 4);   /* on any of its part */
    for (int r = 0; r < 3; r++)
        all[r].quota_group = 7 + (uint64_t)r; /* each has a quota of its own */
    assert_int_equal(tg_cores_divide(all, 3, 1).threads, 4);
    all[1].quota = 2.9;
    assert_int_equal(tg_cores_divide(all, 3, 1).threads, 2);
    all[1].quota = 0.5;
    assert_int_equal(tg_cores_divide(all, 3, 1).threads, 1);
    all[1].quota = 0;
    all[1].scheduler = 3;
    assert_int_equal(tg_cores_divide(all, 3, 1).threads, 3);
}

static void as_asked_for(void **state)
{
    (void)state;
    tg_cores_report all[2] = {rank_on(1, 0, 4), rank_on(1, 0, 4)};
    all[0].threads = 2;
    all[1].threads = 1;
    assert_true(tg_cores_divide(all, 2, 0).bind);
    assert_int_equal(tg_cores_divide(all, 2, 0).threads, 2);
    assert_int_equal(tg_cores_divide(all, 2, 1).threads, 1);
    all[1].threads = 3; /* would not fit into its half: nobody is bound */
    for (int r = 0; r < 2; r++)
        assert_false(tg_cores_divide(all, 2, r).bind);
    assert_int_equal(tg_cores_divide(all, 2, 1).threads, 3);
    assert_int_equal(tg_cores_divide(all, 2, 0).threads, 2);
    all[1].threads = 0;
    all[0].placed = true; /* somebody binds threads himself */
    assert_false(tg_cores_divide(all, 2, 1).bind);
    assert_int_equal(tg_cores_divide(all, 2, 1).threads, 2);
}

typedef struct gathered {
    tg_cores_report reports[TG_TEST_RANKS];
    tg_cores_place places[TG_TEST_RANKS];
    tg_cpu_set after[TG_TEST_RANKS]; /* what each rank's thread may run on in the end */
} gathered;

static int half(const void *user, int threads)
{
    (void)user;
    return threads / 2 + 1;
}

static tg_status share(tg_comm *comm, tg_test_world *world, void *user)
{
    (void)world;
    gathered *g = user;
    tg_cpu_share cpu_share;
    tg_cores_report mine;
    tg_cores_report reports[TG_TEST_RANKS];
    tg_cores_place places[TG_TEST_RANKS];
    tg_cpu_share_read("", 0, 0, &cpu_share);
    tg_cores_report_read(&cpu_share, &mine);
    mine.quota = 0; /* a quota of this test's own machine is no matter here */
    TG_TRY(tg_cores_share(comm, &mine, half, NULL, places, reports));
    tg_affinity_get(&g->after[comm->rank]);
    if (comm->rank == 0) {
        memcpy(g->reports, reports, sizeof reports);
        memcpy(g->places, places, sizeof places);
    }
    return TG_OK;
}

static gathered shared_by(int size)
{
    gathered g = {0};
    tg_test_ranks_all_ok(size, 60, share, &g);
    return g;
}

/* On the machine of the test: ranks as threads, each bound to its part. */
static void for_real(void **state)
{
    (void)state;
    tg_cpu_set whole, together = {0};
    tg_affinity_get(&whole);
    const int cores = tg_cpu_set_count(&whole);
    assert_true(cores >= 1);
    const gathered g = shared_by(2);
    int sum = 0;
    for (int r = 0; r < 2; r++) {
        assert_int_equal(g.places[r].bound, cores >= 2);
        assert_true(tg_cpu_set_equal(&g.places[r].cores, &g.after[r]));
        assert_int_equal(g.places[r].workers, g.places[r].threads / 2 + 1);
        tg_cpu_set_join(&together, &g.after[r]);
        sum += tg_cpu_set_count(&g.after[r]);
    }
    assert_true(tg_cpu_set_equal(&together, &whole));
    assert_int_equal(sum, cores >= 2 ? cores : 2 * cores);
}

static void keep_line(void *user, tg_log_level level, const char *line)
{
    tg_text_append_format(user, "%s%s\n", level == TG_LOG_WARNING ? "warning: " : "", line);
}

/* What the log says of `ranks` with these reports, on hosts named after their machine. */
static const char *host_of(const tg_comm *comm, int rank)
{
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    (void)comm;
    return names[rank];
}

static void log_of(const tg_cores_report *reports, int ranks, tg_text *out)
{
    static const tg_comm_ops ops = {.host = host_of};
    const tg_comm comm = {.ops = &ops, .size = ranks};
    tg_cores_place places[MOST];
    for (int r = 0; r < ranks; r++) {
        const tg_cores_part p = tg_cores_divide(reports, ranks, r);
        places[r] = (tg_cores_place){
            .quota = reports[r].quota, .threads = p.threads, .workers = 1, .bound = p.bind};
        if (!p.bind)
            places[r].cores = reports[r].cores;
        for (int i = 0, at = 0; p.bind && i < TG_CPU_SET_CPUS; i++) {
            if (!tg_cpu_set_has(&reports[r].cores, i))
                continue;
            if (at >= p.first && at < p.first + p.count)
                tg_cpu_set_add(&places[r].cores, i);
            at++;
        }
    }
    tg_text_clear(out);
    tg_log_set(keep_line, out, TG_LOG_INFO);
    tg_cores_log(&comm, reports, places, "LAUNCH OTHERWISE");
    tg_log_set(NULL, NULL, TG_LOG_INFO);
}

static void what_is_said(void **state)
{
    (void)state;
    tg_text said = {0};
    tg_cores_report all[MOST];
    for (int r = 0; r < MOST; r++)
        all[r] = rank_on((uint64_t)r / 4, 0, 16);
    log_of(all, 8, &said); /* two hosts of the same shape */
    assert_string_equal(
        said.data, "cores: a, e: on each 4 ranks of 4 cores each, divided among them; each with 4 "
                   "compute threads, 1 loader worker; no cgroup quota\n");
    for (int r = 0; r < MOST; r++)
        all[r] = rank_on((uint64_t)r, 0, 16);
    log_of(all, 8, &said);
    assert_non_null(
        strstr(said.data, "cores: a, b, c and 5 more hosts, on each 1 rank of 16 cores"));
    all[0] = rank_on(1, 0, 1); /* the launcher's default for two ranks */
    all[1] = rank_on(1, 1, 1);
    log_of(all, 2, &said);
    assert_non_null(strstr(said.data, "2 ranks of 1 core each, as started"));
    assert_non_null(strstr(said.data, "warning: a: 2 ranks run on 2 of 16 cores"));
    assert_non_null(strstr(said.data, "LAUNCH OTHERWISE"));
    all[0].quota = all[1].quota = 2; /* more than these two would be of no use */
    log_of(all, 2, &said);
    assert_null(strstr(said.data, "warning"));
    assert_non_null(strstr(said.data, "cgroup quota 2.00 cores"));
    all[0] = all[1] = rank_on(1, 0, 16);
    all[0].threads = all[1].threads = 16;
    log_of(all, 2, &said);
    assert_non_null(strstr(said.data, "2 ranks together on 16 cores"));
    assert_non_null(
        strstr(said.data, "warning: a: 2 ranks have 32 compute threads together, on 16 cores"));
    assert_non_null(strstr(said.data, "--threads 8"));
    for (int r = 0; r < 3; r++) {
        all[r] = rank_on(1, 0, 2);
        all[r].possible = 2;
    }
    log_of(all, 3, &said);
    assert_non_null(strstr(said.data, "warning: a: 3 ranks share 2 cores"));
    tg_text_done(&said);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(even_and_disjoint),     cmocka_unit_test(each_machine_alone),
        cmocka_unit_test(bound_by_the_launcher), cmocka_unit_test(quotas),
        cmocka_unit_test(as_asked_for),          cmocka_unit_test(for_real),
        cmocka_unit_test(what_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
