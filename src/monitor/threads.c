#include "monitor/threads.h"

#include "os/thread_name.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAMED_TRIES = 4, PATH_BYTES = 96 };

struct tg_job_thread {
    int64_t id;
    int role;        /* TG_ROLES: left out */
    int tries;       /* looks at its name that are left: a thread gives itself one after it began */
    bool seen, kept; /* kept: its files stay open */
    bool fresh;      /* not of the sample before */
    tg_source schedstat, status;
    tg_thread_counts before;
};

bool tg_schedstat_parse(const char *schedstat, tg_thread_counts *out)
{
    double cpu, wait;
    if (!tg_scan_number(&schedstat, &cpu) || !tg_scan_number(&schedstat, &wait))
        return false;
    out->cpu_s = cpu * 1e-9;
    out->wait_s = wait * 1e-9;
    return true;
}

bool tg_thread_stat_parse(const char *stat, double ticks_hz, tg_thread_counts *out)
{
    const char *at = strrchr(stat, ')'); /* the name before it may hold anything */
    double user, system;
    if (!at)
        return false;
    at++;
    for (int field = 3; field < 14; field++)
        tg_scan_word(&at);
    if (!tg_scan_number(&at, &user) || !tg_scan_number(&at, &system))
        return false;
    out->cpu_s = (user + system) / ticks_hz;
    return true;
}

void tg_thread_status_parse(const char *status, tg_thread_counts *out)
{
    out->voluntary = tg_scan_key(status, "voluntary_ctxt_switches");
    out->involuntary = tg_scan_key(status, "nonvoluntary_ctxt_switches");
}

int tg_thread_role(const char *name, bool first)
{
    const size_t n = strcspn(name, "\n");
    static const struct {
        const char *name;
        int role;
    } NAMES[] = {{TG_THREAD_COMPUTE, TG_ROLE_COMPUTE},
                 {TG_THREAD_LOADER, TG_ROLE_LOADER},
                 {TG_THREAD_COMM, TG_ROLE_COMMUNICATION},
                 {TG_THREAD_MONITOR, TG_ROLES}};
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++)
        if (strlen(NAMES[i].name) == n && memcmp(name, NAMES[i].name, n) == 0)
            return NAMES[i].role;
    return first ? TG_ROLE_COMPUTE : TG_ROLE_OTHER;
}

static tg_source open_process(const tg_threads *t, int64_t pid, const char *file)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "/proc/%lld/%s", (long long)pid, file);
    return tg_source_open(t->root, path);
}

static tg_source open_thread(const tg_threads *t, int64_t pid, int64_t id, const char *file)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "/proc/%lld/task/%lld/%s", (long long)pid, (long long)id, file);
    return tg_source_open(t->root, path);
}

static void *open_folder(const char *root, int64_t pid)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/proc/%lld/task", root, (long long)pid);
    return opendir(path);
}

tg_status tg_threads_open(const char *root, const int64_t *pids, size_t count, tg_threads *out)
{
    *out = (tg_threads){.root = root,
                        .ticks_hz = (double)sysconf(_SC_CLK_TCK),
                        .page_bytes = (double)sysconf(_SC_PAGESIZE)};
    out->processes = calloc(count + 1, sizeof *out->processes);
    if (!out->processes)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for %zu processes", count);
    for (size_t i = 0; i < count; i++)
        out->processes[i] = (tg_job_process){.pid = pids[i],
                                             .folder = open_folder(root, pids[i]),
                                             .statm = open_process(out, pids[i], "statm"),
                                             .io = open_process(out, pids[i], "io"),
                                             .read_bytes = NAN};
    out->process_count = count;
    return TG_OK;
}

/* Through the file that is open, or for once. */
static bool read_file(tg_threads *t, int64_t pid, const tg_job_thread *thread, tg_source *kept,
                      const char *name, tg_text *text)
{
    if (thread->kept)
        return tg_source_read(kept, text);
    tg_source source = open_thread(t, pid, thread->id, name);
    const bool found = tg_source_read(&source, text);
    tg_source_close(&source);
    return found;
}

static tg_thread_counts read_counts(tg_threads *t, int64_t pid, tg_job_thread *thread,
                                    tg_text *text)
{
    tg_thread_counts counts = {NAN, NAN, NAN, NAN};
    if (!read_file(t, pid, thread, &thread->schedstat, "schedstat", text) ||
        !tg_schedstat_parse(text->data, &counts)) {
        tg_source stat = open_thread(t, pid, thread->id, "stat");
        if (tg_source_read(&stat, text))
            (void)tg_thread_stat_parse(text->data, t->ticks_hz, &counts);
        tg_source_close(&stat);
    }
    if (read_file(t, pid, thread, &thread->status, "status", text))
        tg_thread_status_parse(text->data, &counts);
    return counts;
}

static void look_at_name(const tg_threads *t, const tg_job_process *process, tg_job_thread *thread,
                         tg_text *text)
{
    const bool first = thread->id == process->pid;
    tg_source comm = open_thread(t, process->pid, thread->id, "comm");
    if (tg_source_read(&comm, text))
        thread->role = tg_thread_role(text->data, first);
    tg_source_close(&comm);
    thread->tries = thread->role == TG_ROLE_OTHER ? thread->tries - 1 : 0;
}

/* Where `id` is or belongs. */
static size_t find_thread(const tg_job_process *process, int64_t id)
{
    size_t low = 0, high = process->count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (process->threads[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool make_room(tg_job_process *process)
{
    if (process->count < process->capacity)
        return true;
    const size_t capacity = process->capacity ? 2 * process->capacity : 16;
    tg_job_thread *threads = realloc(process->threads, capacity * sizeof *threads);
    if (!threads)
        return false;
    process->threads = threads;
    process->capacity = capacity;
    return true;
}

/* The thread `id`, which may be new; NULL where there is no memory for it. */
static tg_job_thread *take_thread(tg_threads *t, tg_job_process *process, int64_t id)
{
    const size_t at = find_thread(process, id);
    if (at < process->count && process->threads[at].id == id)
        return &process->threads[at];
    if (!make_room(process))
        return NULL;
    memmove(&process->threads[at + 1], &process->threads[at],
            (process->count - at) * sizeof *process->threads);
    process->count++;
    tg_job_thread thread = {.id = id,
                            .role = TG_ROLE_OTHER,
                            .tries = NAMED_TRIES,
                            .fresh = true,
                            .kept = t->open_count < TG_THREADS_OPEN,
                            .schedstat.fd = -1,
                            .status.fd = -1};
    if (thread.kept) {
        thread.schedstat = open_thread(t, process->pid, id, "schedstat");
        thread.status = open_thread(t, process->pid, id, "status");
        t->open_count++;
    }
    process->threads[at] = thread;
    return &process->threads[at];
}

static void close_thread(tg_threads *t, tg_job_thread *thread)
{
    tg_source_close(&thread->schedstat);
    tg_source_close(&thread->status);
    t->open_count -= thread->kept;
}

/* Threads that are no longer listed. */
static void drop_gone(tg_threads *t, tg_job_process *process)
{
    size_t kept = 0;
    for (size_t i = 0; i < process->count; i++) {
        if (process->threads[i].seen)
            process->threads[kept++] = process->threads[i];
        else
            close_thread(t, &process->threads[i]);
    }
    process->count = kept;
}

/* A new thread has done all that it has since the sample before; in the first sample nobody knows. */
static double grown(double before, double now, bool fresh, bool begun, double seconds)
{
    if (fresh)
        return begun ? now / seconds : NAN;
    return tg_rate(before, now, seconds);
}

/* One unknown makes no sum unknown: threads come and go. */
static void add(double *sum, double value)
{
    if (!isnan(value))
        *sum = (isnan(*sum) ? 0 : *sum) + value;
}

static void add_thread(const tg_threads *t, tg_job_thread *thread, const tg_thread_counts *now,
                       double seconds, tg_system_sample *out)
{
    double *of_role = &out->values[TG_SYSTEM_ROLE(thread->role, TG_SYSTEM_THREADS)];
    const tg_thread_counts *before = &thread->before;
    const bool fresh = thread->fresh, begun = t->begun;
    of_role[TG_SYSTEM_THREADS] += 1;
    add(&of_role[TG_SYSTEM_CPU], grown(before->cpu_s, now->cpu_s, fresh, begun, seconds));
    add(&of_role[TG_SYSTEM_WAIT], grown(before->wait_s, now->wait_s, fresh, begun, seconds));
    add(&of_role[TG_SYSTEM_VOLUNTARY],
        grown(before->voluntary, now->voluntary, fresh, begun, seconds));
    add(&of_role[TG_SYSTEM_INVOLUNTARY],
        grown(before->involuntary, now->involuntary, fresh, begun, seconds));
}

static void take_threads(tg_threads *t, tg_job_process *process, tg_text *text, double seconds,
                         tg_system_sample *out)
{
    const struct dirent *entry;
    for (size_t i = 0; i < process->count; i++)
        process->threads[i].seen = false;
    rewinddir(process->folder);
    while ((entry = readdir(process->folder))) {
        const int64_t id = strtoll(entry->d_name, NULL, 10);
        tg_job_thread *thread = id > 0 ? take_thread(t, process, id) : NULL;
        if (!thread)
            continue;
        thread->seen = true;
        if (thread->tries > 0)
            look_at_name(t, process, thread, text);
        if (thread->role == TG_ROLES)
            continue;
        const tg_thread_counts now = read_counts(t, process->pid, thread, text);
        add_thread(t, thread, &now, seconds, out);
        thread->before = now;
        thread->fresh = false;
    }
    drop_gone(t, process);
}

static void take_process(tg_threads *t, tg_job_process *process, tg_text *text, double seconds,
                         tg_system_sample *out)
{
    const char *at;
    double pages, bytes = NAN;
    if (!tg_source_read(&process->statm, text))
        return;
    at = text->data;
    tg_scan_word(&at);
    if (tg_scan_number(&at, &pages))
        add(&out->values[TG_SYSTEM_JOB_RSS_BYTES], pages * t->page_bytes);
    if (tg_source_read(&process->io, text))
        bytes = tg_scan_key(text->data, "read_bytes");
    add(&out->values[TG_SYSTEM_JOB_READ_BYTES], tg_rate(process->read_bytes, bytes, seconds));
    process->read_bytes = bytes;
    out->values[TG_SYSTEM_JOB_PROCESSES] += 1;
    if (process->folder)
        take_threads(t, process, text, seconds, out);
}

/* Nobody of a role takes nothing; where no process can be seen, nothing is known. */
static void settle_role(const tg_threads *t, double of_role[TG_SYSTEM_OF_ROLE])
{
    bool visible = false;
    for (size_t i = 0; i < t->process_count; i++)
        visible = visible || t->processes[i].count > 0;
    for (int of = TG_SYSTEM_THREADS; of < TG_SYSTEM_OF_ROLE; of++)
        if (!visible)
            of_role[of] = NAN;
        else if (of_role[TG_SYSTEM_THREADS] == 0)
            of_role[of] = 0;
}

void tg_threads_take(tg_threads *t, tg_text *text, double seconds, tg_system_sample *out)
{
    if (!t->process_count)
        return;
    out->values[TG_SYSTEM_JOB_PROCESSES] = 0;
    for (int role = 0; role < TG_ROLES; role++)
        out->values[TG_SYSTEM_ROLE(role, TG_SYSTEM_THREADS)] = 0;
    for (size_t i = 0; i < t->process_count; i++)
        take_process(t, &t->processes[i], text, seconds, out);
    for (int role = 0; role < TG_ROLES; role++)
        settle_role(t, &out->values[TG_SYSTEM_ROLE(role, TG_SYSTEM_THREADS)]);
    t->begun = true;
}

void tg_threads_close(tg_threads *t)
{
    for (size_t i = 0; i < t->process_count; i++) {
        tg_job_process *process = &t->processes[i];
        for (size_t k = 0; k < process->count; k++)
            close_thread(t, &process->threads[k]);
        free(process->threads);
        tg_source_close(&process->statm);
        tg_source_close(&process->io);
        if (process->folder)
            closedir(process->folder);
    }
    free(t->processes);
    *t = (tg_threads){0};
}
