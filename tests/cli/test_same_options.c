/* Ranks that were told different things: found whatever the option is, with both values; what may differ may. */
#include "support/check.h"
#include "support/ranks.h"

#include "cli/same_options.h"

#include <stdio.h>
#include <string.h>

typedef struct settings {
    double lr;
    int64_t steps, threads;
    const char *data, *note;
    bool mixed;
    tg_option_doubles mean;
} settings;

#define AT(field) offsetof(settings, field)
static const tg_option TABLE[] = {
    {.name = "lr", .type = TG_OPTION_DOUBLE, .offset = AT(lr), .metavar = "LR", .help = "rate"},
    {.name = "steps",
     .type = TG_OPTION_INT,
     .offset = AT(steps),
     .initial = "3",
     .metavar = "N",
     .help = "n"},
    {.name = "threads", .type = TG_OPTION_INT, .offset = AT(threads), .metavar = "N", .help = "n"},
    {.name = "data",
     .type = TG_OPTION_STRING,
     .offset = AT(data),
     .metavar = "DIR",
     .help = "d",
     .flags = TG_OPTION_FOLDER},
    {.name = "note", .type = TG_OPTION_STRING, .offset = AT(note), .metavar = "TEXT", .help = "t"},
    {.name = "mixed", .type = TG_OPTION_BOOL, .offset = AT(mixed), .help = "m"},
    {.name = "mean",
     .type = TG_OPTION_DOUBLES,
     .offset = AT(mean),
     .metavar = "R G B",
     .help = "m"},
};
enum { COUNT = sizeof TABLE / sizeof TABLE[0] };

typedef struct trial {
    const char *arguments[TG_TEST_RANKS]; /* of each rank, one "--name=value", or NULL */
    size_t fewer;                         /* options that the last rank does not have */
} trial;

static tg_status compare(tg_comm *comm, tg_test_world *world, void *user)
{
    (void)world;
    const trial *t = user;
    settings s = {0};
    tg_options options;
    const size_t count = comm->rank == comm->size - 1 ? COUNT - t->fewer : COUNT;
    const tg_option_group group = {"Options", TABLE, count, &s};
    TG_TRY(tg_options_init(&options, &group, 1));
    tg_status status = TG_OK;
    if (t->arguments[comm->rank])
        status = tg_options_parse_arguments(&options, 1, &t->arguments[comm->rank]);
    if (status == TG_OK)
        status = tg_same_options(comm, &options);
    tg_options_done(&options);
    return status;
}

/* `said` on every rank, or NULL: nothing is wrong. */
static void assert_said(trial t, const char *said)
{
    tg_status status[TG_TEST_RANKS];
    char text[TG_TEST_RANKS][512];
    tg_test_ranks_run(3, 60, compare, &t, status, text);
    for (int r = 0; r < 3; r++) {
        assert_int_equal(status[r], said ? TG_ERROR_USAGE : TG_OK);
        if (said && !strstr(text[r], said))
            print_error("rank %d says: %s\n", r, text[r]);
        assert_true(!said || strstr(text[r], said));
    }
}

static void what_counts(void **state)
{
    (void)state;
    assert_said((trial){0}, NULL);
    assert_said((trial){{"--lr=0.5", "--lr=0.5", "--lr=5e-1"}, 0}, NULL);
    assert_said((trial){{NULL, NULL, "--lr=0.001"}, 0},
                "rank 2 on host2 has --lr 0.001, rank 0 on host0 has not set");
    assert_said((trial){{"--lr=2", "--lr=3", "--lr=2"}, 0},
                "rank 1 on host1 has --lr 3, rank 0 on host0 has 2");
    assert_said((trial){{"--steps=4", NULL, NULL}, 0},
                "rank 1 on host1 has --steps 3, rank 0 on host0 has 4");
    assert_said((trial){{NULL, "--mixed", NULL}, 0}, "has --mixed true, rank 0 on host0 has false");
    assert_said((trial){{NULL, "--mean=1,2,3", NULL}, 0}, "has --mean [1, 2, 3], rank 0");
    assert_said((trial){{"--note=a: b", "--note=a: c", "--note=a: b"}, 0},
                "has --note \"a: c\", rank 0");
}

static void what_may_differ(void **state)
{
    (void)state;
    assert_said((trial){{"--threads=1", "--threads=2", "--data=/a"}, 0}, NULL);
    assert_said((trial){{"--data=/b", "--data=/c", "--data=/d"}, 0}, NULL);
}

static void other_versions(void **state)
{
    (void)state;
    assert_said((trial){{0}, 1}, "rank 2 on host2 runs another version");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_counts),
        cmocka_unit_test(what_may_differ),
        cmocka_unit_test(other_versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
