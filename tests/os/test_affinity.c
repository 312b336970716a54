/* Sets of cores: text, order by package and core, and what a thread may run on. */
#include "support/check.h"

#include "os/affinity.h"
#include "os/beside.h"
#include "os/file.h"
#include "os/folder.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void text(void **state)
{
    (void)state;
    static const int cpus[] = {0, 1, 2, 3, 8, 63, 64, 65, 2047};
    tg_cpu_set set = {0}, other = {0};
    tg_text out = {0};
    tg_cpu_set_print(&set, &out);
    assert_string_equal(out.data, "none");
    for (size_t i = 0; i < sizeof cpus / sizeof cpus[0]; i++)
        tg_cpu_set_add(&set, cpus[i]);
    tg_cpu_set_add(&set, TG_CPU_SET_CPUS); /* beyond what is seen */
    tg_cpu_set_add(&set, -1);
    tg_text_clear(&out);
    tg_cpu_set_print(&set, &out);
    assert_string_equal(out.data, "0-3,8,63-65,2047");
    assert_int_equal(tg_cpu_set_count(&set), 9);
    assert_true(tg_cpu_set_has(&set, 2047));
    assert_false(tg_cpu_set_has(&set, 4) || tg_cpu_set_has(&set, -1) ||
                 tg_cpu_set_has(&set, TG_CPU_SET_CPUS));
    assert_false(tg_cpu_set_equal(&set, &other));
    tg_cpu_set_join(&other, &set);
    assert_true(tg_cpu_set_equal(&set, &other));
    tg_text_done(&out);
}

static void put(const char *root, int cpu, const char *name, int value)
{
    char path[4400], digits[16];
    snprintf(path, sizeof path, "%s/sys/devices/system/cpu/cpu%d/topology", root, cpu);
    assert_ok(tg_folder_make(path));
    snprintf(path, sizeof path, "%s/sys/devices/system/cpu/cpu%d/topology/%s", root, cpu, name);
    snprintf(digits, sizeof digits, "%d\n", value);
    assert_ok(tg_file_write(path, digits, strlen(digits)));
}

/* Two packages of two cores of two threads, numbered the usual way: first threads first. */
static void order(void **state)
{
    (void)state;
    static const int expected[] = {0, 4, 2, 6, 1, 5, 3, 7};
    const char *root = tg_test_temp_dir();
    tg_cpu_set set = {0};
    int got[8];
    for (int cpu = 0; cpu < 8; cpu++) {
        put(root, cpu, "physical_package_id", cpu % 2);
        put(root, cpu, "core_id", cpu / 2 % 2);
        tg_cpu_set_add(&set, cpu);
    }
    tg_cpu_set_order(root, &set, got);
    assert_memory_equal(got, expected, sizeof got);
    tg_cpu_set_order("/nowhere", &set, got); /* the system does not say */
    for (int i = 0; i < 8; i++)
        assert_int_equal(got[i], i);
}

static void *bind_to_one(void *user)
{
    tg_cpu_set own, one = {0}, possible;
    bool *fine = user;
    tg_affinity_get(&own);
    int cpu = 0;
    while (!tg_cpu_set_has(&own, cpu))
        cpu++;
    tg_cpu_set_add(&one, cpu);
    *fine = tg_affinity_set(&one) == TG_OK;
    tg_affinity_get(&own);
    tg_affinity_possible(&possible); /* does not change what is set */
    *fine = *fine && tg_cpu_set_equal(&own, &one) && tg_cpu_set_has(&possible, cpu);
    tg_affinity_get(&own);
    *fine = *fine && tg_cpu_set_equal(&own, &one);
    return NULL;
}

static void binding_is_a_threads_own(void **state)
{
    (void)state;
    tg_cpu_set before, after, possible, none = {0};
    bool fine = false;
    pthread_t thread;
    tg_affinity_get(&before);
    assert_int_equal(pthread_create(&thread, NULL, bind_to_one, &fine), 0);
    pthread_join(thread, NULL);
    assert_true(fine);
    tg_affinity_get(&after);
    assert_true(tg_cpu_set_equal(&before, &after));
    tg_affinity_possible(&possible);
    assert_true(tg_cpu_set_count(&possible) >= tg_cpu_set_count(&before));
    assert_error(tg_affinity_set(&none), TG_ERROR_MACHINE, "cannot bind");
    assert_true(tg_machine_id() == tg_machine_id());
}

/* Two more of this program: one bound to one core, one dead that nobody has waited for. */
static void others_beside(void **state)
{
    (void)state;
    tg_cpu_set all, one = {0}, shared, none = {0};
    char name[16]; /* that the same test elsewhere does not have */
    snprintf(name, sizeof name, "beside %d", (int)getpid());
    prctl(PR_SET_NAME, name);
    tg_affinity_get(&all);
    int cpu = 0;
    assert_int_equal(tg_process_count_beside(NULL, 0, &all, NULL), 0);
    while (!tg_cpu_set_has(&all, cpu))
        cpu++;
    tg_cpu_set_add(&one, cpu);
    pid_t child = fork(), dead = child ? fork() : -1;
    if (dead == 0)
        _exit(0);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)!tg_affinity_set(&one);
        for (;;)
            pause();
    }
    tg_cpu_set theirs = all;
    for (int i = 0; i < 1000 && !tg_cpu_set_equal(&theirs, &one); i++, usleep(1000))
        (void)!tg_affinity_of(child, &theirs);
    while (tg_process_runs(dead))
        usleep(1000);
    const tg_process own = {.machine = tg_process_self().machine, .pid = child};
    assert_int_equal(tg_process_count_beside(NULL, 0, &all, &shared), 1);
    assert_true(tg_cpu_set_has(&shared, cpu));
    assert_int_equal(tg_process_count_beside(&own, 1, &all, NULL), 0);
    assert_int_equal(tg_process_count_beside(NULL, 0, &none, NULL), 0);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    waitpid(dead, NULL, 0);
    assert_false(tg_affinity_of(child, &theirs));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text),
        cmocka_unit_test(order),
        cmocka_unit_test(binding_is_a_threads_own),
        cmocka_unit_test(others_beside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
