#include "report/event_file.h"

#include "os/file.h"
#include "os/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Bit by bit: a record is some hundred bytes a second. */
uint32_t tg_crc32c(const void *bytes, size_t length)
{
    const unsigned char *at = bytes;
    uint32_t crc = 0xFFFFFFFFu;
    for (size_t i = 0; i < length; i++) {
        crc ^= at[i];
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (0x82F63B78u & -(crc & 1));
    }
    return ~crc;
}

uint32_t tg_crc32c_masked(const void *bytes, size_t length)
{
    const uint32_t crc = tg_crc32c(bytes, length);
    return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
}

static void put_little(tg_text *out, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        tg_text_append_char(out, (char)(value >> (8 * i) & 0xFF));
}

static void put_varint(tg_text *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        tg_text_append_char(out, (char)(value | 0x80));
    tg_text_append_char(out, (char)value);
}

static void put_bytes(tg_text *out, char key, const void *bytes, size_t length)
{
    tg_text_append_char(out, key);
    put_varint(out, length);
    tg_text_append(out, bytes, length);
}

static void put_double(tg_text *out, char key, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    tg_text_append_char(out, key);
    put_little(out, bits, 8);
}

static void begin_event(tg_text *event, double unix_s, int64_t step)
{
    tg_text_clear(event);
    put_double(event, 0x09, unix_s);
    tg_text_append_char(event, 0x10);
    put_varint(event, (uint64_t)step);
}

/* The whole record or none of it. */
static tg_status write_record(tg_event_file *file)
{
    tg_text *record = &file->record;
    tg_text_clear(record);
    put_little(record, file->event.length, 8);
    put_little(record, tg_crc32c_masked(tg_text_string(record), 8), 4);
    tg_text_append(record, tg_text_string(&file->event), file->event.length);
    put_little(record, tg_crc32c_masked(tg_text_string(&file->event), file->event.length), 4);
    TG_TRY(tg_text_check(&file->event, file->path));
    TG_TRY(tg_text_check(record, file->path));
    const off_t start = lseek(file->fd, 0, SEEK_END);
    for (size_t done = 0; done < record->length;) {
        const ssize_t n = write(file->fd, record->data + done, record->length - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            const int error = errno;
            if (start >= 0)
                (void)!ftruncate(file->fd, start);
            return tg_fail(TG_ERROR_MACHINE, "cannot write %s: %s", file->path,
                           strerrordesc_np(error));
        }
        done += (size_t)n;
    }
    return TG_OK;
}

static tg_status write_version(tg_event_file *file, double unix_s)
{
    static const char VERSION[] = "brain.Event:2";
    begin_event(&file->event, unix_s, 0);
    put_bytes(&file->event, 0x1A, VERSION, sizeof VERSION - 1);
    return write_record(file);
}

static tg_status write_session_start(tg_event_file *file, double unix_s, int64_t step)
{
    static const char START[] = {0x08, 1};
    begin_event(&file->event, unix_s, step);
    put_bytes(&file->event, 0x3A, START, sizeof START);
    return write_record(file);
}

static tg_status make_file(const char *folder, double unix_s, tg_event_file *out)
{
    char host[256] = "", name[384];
    TG_TRY(tg_folder_make(folder));
    gethostname(host, sizeof host - 1);
    for (unsigned n = 0;; n++) { /* a name of its own: two may begin in one second */
        snprintf(name, sizeof name, "events.out.tfevents.%010lld.%s.%ld.%u", (long long)unix_s,
                 host, (long)getpid(), n);
        *out = (tg_event_file){.path = tg_path_join(folder, name), .fd = -1};
        if (!out->path)
            return tg_fail(TG_ERROR_MACHINE, "out of memory for a path");
        out->fd = open(out->path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
        if (out->fd >= 0)
            return TG_OK;
        const int error = errno;
        if (error != EEXIST) {
            tg_status status =
                tg_fail(TG_ERROR_MACHINE, "cannot write %s: %s", out->path, strerrordesc_np(error));
            free(out->path);
            out->path = NULL;
            return status;
        }
        free(out->path);
    }
}

tg_status tg_event_file_open(const char *folder, double unix_s, int64_t first_step,
                             tg_event_file *out)
{
    tg_event_file file;
    TG_TRY(make_file(folder, unix_s, &file));
    tg_status status = write_version(&file, unix_s);
    if (status == TG_OK && first_step > 1)
        status = write_session_start(&file, unix_s, first_step);
    if (status < 0)
        tg_event_file_close(&file);
    else
        *out = file;
    return status;
}

void tg_event_file_add(tg_event_file *file, const char *tag, double value)
{
    const float simple = (float)value;
    const size_t length = strlen(tag);
    uint32_t bits;
    if (isnan(value) || length > 120)
        return;
    memcpy(&bits, &simple, sizeof bits);
    tg_text_append_char(&file->summary, 0x0A);
    put_varint(&file->summary, 2 + length + 5);
    put_bytes(&file->summary, 0x0A, tag, length);
    tg_text_append_char(&file->summary, 0x15);
    put_little(&file->summary, bits, 4);
}

tg_status tg_event_file_end(tg_event_file *file, int64_t step, double unix_s)
{
    tg_status status = tg_text_check(&file->summary, file->path);
    if (status == TG_OK && file->summary.length) {
        begin_event(&file->event, unix_s, step);
        put_bytes(&file->event, 0x2A, file->summary.data, file->summary.length);
        status = write_record(file);
    }
    tg_text_clear(&file->summary);
    return status;
}

void tg_event_file_close(tg_event_file *file)
{
    if (!file || !file->path)
        return;
    close(file->fd);
    free(file->path);
    tg_text_done(&file->summary);
    tg_text_done(&file->event);
    tg_text_done(&file->record);
    *file = (tg_event_file){.fd = -1};
}
