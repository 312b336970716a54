#include "run/system.h"

#include "os/file.h"
#include "run/system_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static bool keep_all(void *user, const char *line, size_t length)
{
    *(uint64_t *)user += length;
    (void)line;
    return true;
}

static tg_status write_line(tg_system_writer *writer)
{
    TG_TRY(tg_lines_write(&writer->lines));
    writer->bytes += writer->lines.line.length;
    return TG_OK;
}

static tg_status write_head(tg_system_writer *writer)
{
    tg_text_clear(&writer->lines.line);
    tg_system_head_print(writer->host, writer->core_count, writer->device_count,
                         &writer->lines.line);
    return write_line(writer);
}

/* A host's name as a file's: what could lead elsewhere is replaced. */
static void make_file_name(const char *host, char *out, size_t size)
{
    snprintf(out, size - sizeof ".jsonl" + 1, "%s", host);
    size_t n = 0;
    for (; out[n]; n++)
        if (out[n] == '/' || (unsigned char)out[n] < 0x21 || (n == 0 && out[n] == '.'))
            out[n] = '_';
    snprintf(out + n, size - n, ".jsonl");
}

tg_status tg_system_open(const char *folder, const char *host, size_t cores, size_t devices,
                         uint64_t budget_bytes, tg_system_writer *out)
{
    char name[256];
    *out = (tg_system_writer){
        .core_count = cores, .device_count = devices, .budget_bytes = budget_bytes};
    snprintf(out->host, sizeof out->host, "%s", host);
    make_file_name(host, name, sizeof name);
    char *path = tg_path_join(folder, name);
    if (!path)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for a path");
    tg_status status = tg_lines_open(path, keep_all, &out->bytes, &out->lines);
    free(path);
    TG_TRY(status);
    status = write_head(out);
    if (status < 0)
        tg_system_close(out);
    return status;
}

void tg_system_close(tg_system_writer *writer)
{
    if (writer)
        tg_lines_close(&writer->lines);
}

/* The file with half as many samples, on its way to the disk. */
typedef struct thinner {
    tg_new_file file;
    tg_system_head head;
    tg_system_sample first; /* waits for its neighbour; cores NULL: none does */
    tg_text line;
    uint64_t bytes;
} thinner;

static tg_status put(thinner *t)
{
    tg_text_append_char(&t->line, '\n');
    TG_TRY(tg_text_check(&t->line, t->file.path));
    TG_TRY(tg_new_file_write(&t->file, t->line.data, t->line.length));
    t->bytes += t->line.length;
    return TG_OK;
}

static tg_status put_first(thinner *t, size_t cores, size_t devices)
{
    if (!t->first.cores)
        return TG_OK;
    tg_text_clear(&t->line);
    tg_system_sample_print(&t->first, cores, devices, &t->line);
    tg_system_sample_done(&t->first);
    return put(t);
}

/* Pairs do not reach over a head: before it the machine may have been another. */
static tg_status thin_line(void *user, const char *line, size_t length)
{
    thinner *t = user;
    const size_t cores = t->head.cores, devices = t->head.devices;
    tg_system_sample sample;
    tg_system_line_kind kind;
    TG_TRY(tg_system_line_parse(line, length, &t->head, &sample, &kind));
    if (kind == TG_SYSTEM_LINE_HEAD) {
        TG_TRY(put_first(t, cores, devices));
        tg_text_clear(&t->line);
        tg_text_append(&t->line, line, length - 1);
        return put(t);
    }
    if (kind != TG_SYSTEM_LINE_SAMPLE)
        return TG_OK;
    if (!t->first.cores) {
        t->first = sample;
        return TG_OK;
    }
    tg_system_merge(&t->first, &sample, cores, devices);
    tg_system_sample_done(&sample);
    return put_first(t, cores, devices);
}

static tg_status thin_into(thinner *t, const char *path)
{
    TG_TRY(tg_lines_read(path, thin_line, t));
    return put_first(t, t->head.cores, t->head.devices);
}

static tg_status thin(tg_system_writer *writer)
{
    thinner t = {0};
    TG_TRY(tg_new_file_open(writer->lines.path, &t.file));
    tg_status status = thin_into(&t, writer->lines.path);
    if (status == TG_OK)
        status = tg_new_file_commit(&t.file);
    else
        tg_new_file_discard(&t.file);
    tg_system_sample_done(&t.first);
    tg_text_done(&t.line);
    TG_TRY(status);
    char *path = writer->lines.path;
    tg_text_done(&writer->lines.line);
    close(writer->lines.fd);
    writer->lines = (tg_lines){.fd = -1};
    writer->bytes = 0;
    status = tg_lines_open(path, keep_all, &writer->bytes, &writer->lines);
    free(path);
    return status;
}

tg_status tg_system_write(tg_system_writer *writer, const tg_system_sample *sample)
{
    if (!writer->lines.path)
        return tg_fail(TG_ERROR_MACHINE, "samples of %s: the file was lost", writer->host);
    tg_text_clear(&writer->lines.line);
    tg_system_sample_print(sample, writer->core_count, writer->device_count, &writer->lines.line);
    if (writer->budget_bytes && writer->bytes + writer->lines.line.length > writer->budget_bytes) {
        TG_TRY(thin(writer));
        tg_system_sample_print(sample, writer->core_count, writer->device_count,
                               &writer->lines.line);
    }
    return write_line(writer);
}
