/* Machines and documents of a run that goes. */
#include "report/live_parts.h"

#include "os/file.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_HOSTS = 4096, MAX_DOCUMENT = 16 << 20 };
#define SYSTEM_BYTES (UINT64_C(1) << 20)
/* A sample shown is the mean of so long. */
#define SAMPLE_S 2.0

/* The mean of neighbours in one window, of one head; the sample's arrays are taken. */
static void keep_sample(tg_live_host *host, tg_system_sample *sample)
{
    tg_system_sample *kept = &host->sample;
    const bool joins = kept->seconds > 0 && sample->time - (kept->time - kept->seconds) <= SAMPLE_S;
    if (joins) {
        tg_system_merge(kept, sample, host->head.cores, host->head.devices);
        tg_system_sample_done(sample);
        return;
    }
    tg_system_sample_done(kept);
    *kept = *sample;
}

static tg_status system_line(void *user, const char *line, size_t length)
{
    tg_live_host *host = user;
    tg_system_sample sample = {0};
    tg_system_line_kind kind;
    const size_t cores = host->head.cores, devices = host->head.devices;
    if (!line)
        return TG_OK;
    TG_TRY(tg_system_line_parse(line, length, &host->head, &sample, &kind));
    if (cores != host->head.cores || devices != host->head.devices)
        tg_system_sample_done(&host->sample);
    if (kind != TG_SYSTEM_LINE_SAMPLE || !(sample.seconds > 0)) {
        tg_system_sample_done(&sample);
        return TG_OK;
    }
    keep_sample(host, &sample);
    return TG_OK;
}

static bool is_known(const tg_live *live, const char *name)
{
    for (size_t i = 0; i < live->host_count; i++)
        if (strcmp(strrchr(live->hosts[i].tail.path, '/') + 1, name) == 0)
            return true;
    return false;
}

static tg_status add_host(tg_live *live, const char *folder, const char *name)
{
    tg_live_host *hosts = realloc(live->hosts, (live->host_count + 1) * sizeof *hosts);
    if (!hosts)
        return tg_fail(TG_ERROR_MACHINE, "%s: out of memory for its machines", live->path);
    live->hosts = hosts;
    tg_live_host *host = &hosts[live->host_count];
    *host = (tg_live_host){0};
    TG_TRY(tg_tail_open(folder, name, SYSTEM_BYTES, &host->tail));
    live->host_count++;
    return TG_OK;
}

/* A file whose end alone is read lacks its head, which is the first line. */
static tg_status read_head(tg_live_host *host)
{
    char *line = NULL;
    size_t capacity = 0;
    FILE *file = fopen(host->tail.path, "re");
    const ssize_t n = file ? getline(&line, &capacity, file) : 0;
    tg_status status = n > 0 ? system_line(host, line, (size_t)n) : TG_OK;
    free(line);
    if (file)
        fclose(file);
    return status;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const tg_live_host *)a)->tail.path, ((const tg_live_host *)b)->tail.path);
}

static tg_status find_hosts(tg_live *live)
{
    char *folder = tg_path_join(live->path, "system");
    const size_t before = live->host_count;
    tg_status status = TG_OK;
    if (!folder)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for a path");
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && status == TG_OK && (e = readdir(dir));) {
        const size_t n = strlen(e->d_name);
        if (e->d_name[0] != '.' && n > 6 && strcmp(e->d_name + n - 6, ".jsonl") == 0 &&
            live->host_count < MOST_HOSTS && !is_known(live, e->d_name))
            status = add_host(live, folder, e->d_name);
    }
    if (dir)
        closedir(dir);
    free(folder);
    if (live->host_count > before)
        qsort(live->hosts, live->host_count, sizeof *live->hosts, by_path);
    return status;
}

tg_status tg_live_look_at_hosts(tg_live *live, bool *io_news)
{
    TG_TRY(find_hosts(live));
    for (size_t i = 0; i < live->host_count; i++) {
        tg_live_host *host = &live->hosts[i];
        bool news;
        if (!host->head.column_count)
            TG_TRY(read_head(host));
        TG_TRY(tg_tail_read(&host->tail, system_line, host, &news));
        *io_news = *io_news || news;
    }
    return TG_OK;
}

void tg_live_close_hosts(tg_live *live)
{
    for (size_t i = 0; i < live->host_count; i++) {
        tg_tail_close(&live->hosts[i].tail);
        tg_system_sample_done(&live->hosts[i].sample);
    }
    free(live->hosts);
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* A document that cannot be read is none; one that is gone stays as it was. */
static tg_status reread(tg_live *live, tg_live_document *document, bool *out_changed)
{
    char *path = tg_path_join(live->path, document->name), *bytes;
    struct stat st;
    size_t length;
    *out_changed = false;
    if (!path)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for a path");
    if (stat(path, &st) == 0 && !is_same(&st, &document->seen)) {
        *out_changed = true;
        document->seen = st;
        tg_json_done(&document->json);
        tg_status status = tg_file_read(path, MAX_DOCUMENT, &bytes, &length);
        if (status == TG_OK) {
            status = tg_json_parse(bytes, length, path, &document->json);
            free(bytes);
        }
        if (status < 0)
            tg_error_clear();
    }
    free(path);
    return TG_OK;
}

static void copy_text(const tg_json_node *object, const char *key, char *out, size_t size)
{
    const char *text = "";
    if (tg_json_get_string(object, key, TG_OPTIONAL, &text) < 0)
        tg_error_clear();
    snprintf(out, size, "%s", text);
}

static void take_finding(const tg_json_node *node, tg_live_finding *out)
{
    copy_text(node, "rule", out->rule, sizeof out->rule);
    copy_text(node, "severity", out->severity, sizeof out->severity);
    copy_text(node, "title", out->title, sizeof out->title);
}

static void take_findings(tg_live *live)
{
    tg_json_node list;
    live->finding_count = 0;
    if (!live->findings_file.json.root)
        return;
    const tg_json_node root = tg_json_root(&live->findings_file.json);
    if (tg_json_node_kind(&root) != TG_JSON_OBJECT || !tg_json_find(&root, "findings", &list) ||
        tg_json_node_kind(&list) != TG_JSON_ARRAY)
        return;
    for (size_t i = 0; i < tg_json_count(&list); i++) {
        const tg_json_node node = tg_json_element(&list, i);
        char explained[64];
        if (tg_json_node_kind(&node) != TG_JSON_OBJECT)
            continue;
        copy_text(&node, "explained_by", explained, sizeof explained);
        if (explained[0])
            continue; /* by another one, which says it better */
        if (live->finding_count < TG_LIVE_FINDINGS)
            take_finding(&node, &live->findings[live->finding_count]);
        live->finding_count++;
    }
}

tg_status tg_live_look_at_documents(tg_live *live, bool *io_news)
{
    bool info, findings;
    TG_TRY(reread(live, &live->info, &info));
    TG_TRY(reread(live, &live->findings_file, &findings));
    if (findings)
        take_findings(live);
    *io_news = *io_news || info || findings;
    return TG_OK;
}

void tg_live_close_documents(tg_live *live)
{
    tg_json_done(&live->info.json);
    tg_json_done(&live->findings_file.json);
}
