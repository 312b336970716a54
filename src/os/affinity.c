#include "os/affinity.h"

#include "base/hash.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The kernel asks for masks that are as large as its own. */
enum { KERNEL_CPUS = 1 << 15 };

int tg_cpu_set_count(const tg_cpu_set *set)
{
    int count = 0;
    for (size_t i = 0; i < TG_CPU_SET_CPUS / 64; i++)
        count += __builtin_popcountll(set->words[i]);
    return count;
}

bool tg_cpu_set_has(const tg_cpu_set *set, int cpu)
{
    return cpu >= 0 && cpu < TG_CPU_SET_CPUS && set->words[cpu / 64] >> (cpu % 64) & 1;
}

void tg_cpu_set_add(tg_cpu_set *set, int cpu)
{
    if (cpu >= 0 && cpu < TG_CPU_SET_CPUS)
        set->words[cpu / 64] |= UINT64_C(1) << (cpu % 64);
}

void tg_cpu_set_join(tg_cpu_set *set, const tg_cpu_set *other)
{
    for (size_t i = 0; i < TG_CPU_SET_CPUS / 64; i++)
        set->words[i] |= other->words[i];
}

bool tg_cpu_set_equal(const tg_cpu_set *a, const tg_cpu_set *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

void tg_cpu_set_print(const tg_cpu_set *set, tg_text *out)
{
    const char *separator = "";
    for (int first = 0; first < TG_CPU_SET_CPUS; first++) {
        int last = first;
        if (!tg_cpu_set_has(set, first))
            continue;
        while (tg_cpu_set_has(set, last + 1))
            last++;
        tg_text_append_format(out, last > first ? "%s%d-%d" : "%s%d", separator, first, last);
        separator = ",";
        first = last;
    }
    if (!*separator)
        tg_text_append_string(out, "none");
}

static void from_kernel(const cpu_set_t *mask, size_t bytes, tg_cpu_set *out)
{
    *out = (tg_cpu_set){0};
    for (int cpu = 0; cpu < TG_CPU_SET_CPUS; cpu++)
        if (CPU_ISSET_S((size_t)cpu, bytes, mask))
            tg_cpu_set_add(out, cpu);
}

bool tg_affinity_of(int64_t pid, tg_cpu_set *out)
{
    cpu_set_t *mask = CPU_ALLOC(KERNEL_CPUS);
    const size_t bytes = CPU_ALLOC_SIZE(KERNEL_CPUS);
    *out = (tg_cpu_set){0};
    if (!mask)
        return false;
    CPU_ZERO_S(bytes, mask);
    const bool known = sched_getaffinity((pid_t)pid, bytes, mask) == 0;
    if (known)
        from_kernel(mask, bytes, out);
    CPU_FREE(mask);
    return known;
}

void tg_affinity_get(tg_cpu_set *out)
{
    (void)tg_affinity_of(0, out);
}

tg_status tg_affinity_set(const tg_cpu_set *set)
{
    cpu_set_t *mask = CPU_ALLOC(TG_CPU_SET_CPUS);
    const size_t bytes = CPU_ALLOC_SIZE(TG_CPU_SET_CPUS);
    if (!mask)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for a set of cores");
    CPU_ZERO_S(bytes, mask);
    for (int cpu = 0; cpu < TG_CPU_SET_CPUS; cpu++)
        if (tg_cpu_set_has(set, cpu))
            CPU_SET_S((size_t)cpu, bytes, mask);
    int code = sched_setaffinity(0, bytes, mask) == 0 ? 0 : errno;
    CPU_FREE(mask);
    if (code)
        return tg_fail(TG_ERROR_MACHINE, "cannot bind this process to its cores: %s",
                       strerrordesc_np(code));
    return TG_OK;
}

/* Asks for everything; the system gives what the process's group may have at most. */
static void *ask(void *user)
{
    tg_cpu_set all;
    memset(&all, 0xff, sizeof all);
    if (tg_affinity_set(&all) == TG_OK)
        tg_affinity_get(user);
    return NULL;
}

void tg_affinity_possible(tg_cpu_set *out)
{
    pthread_t thread; /* a mask is a thread's own, so one that ends at once can try */
    *out = (tg_cpu_set){0};
    if (pthread_create(&thread, NULL, ask, out) == 0)
        pthread_join(thread, NULL);
    if (tg_cpu_set_count(out) == 0)
        tg_affinity_get(out);
}

typedef struct place {
    int package, core, cpu;
} place;

static int read_number(const char *root, int cpu, const char *name)
{
    char path[4352];
    int value = -1;
    snprintf(path, sizeof path, "%.4096s/sys/devices/system/cpu/cpu%d/topology/%s", root, cpu,
             name);
    FILE *file = fopen(path, "re");
    if (!file)
        return -1;
    if (fscanf(file, "%d", &value) != 1)
        value = -1;
    fclose(file);
    return value;
}

static int compare(const void *a, const void *b)
{
    const place *x = a, *y = b;
    if (x->package != y->package)
        return x->package < y->package ? -1 : 1;
    if (x->core != y->core)
        return x->core < y->core ? -1 : 1;
    return (x->cpu > y->cpu) - (x->cpu < y->cpu);
}

void tg_cpu_set_order(const char *root, const tg_cpu_set *set, int *out)
{
    place places[TG_CPU_SET_CPUS];
    size_t count = 0;
    for (int cpu = 0; cpu < TG_CPU_SET_CPUS; cpu++)
        if (tg_cpu_set_has(set, cpu))
            places[count++] = (place){.package = read_number(root, cpu, "physical_package_id"),
                                      .core = read_number(root, cpu, "core_id"),
                                      .cpu = cpu};
    qsort(places, count, sizeof *places, compare);
    for (size_t i = 0; i < count; i++)
        out[i] = places[i].cpu;
}

uint64_t tg_machine_id(void)
{
    char boot[64];
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (!file)
        return 0;
    size_t n = fread(boot, 1, sizeof boot, file);
    fclose(file);
    return n ? tg_hash(TG_HASH_START, boot, n) : 0;
}
