#include "run/control.h"

#include "base/hash.h"
#include "base/json.h"
#include "base/json_writer.h"
#include "os/document.h"
#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_NAME "control.json"
enum { MOST_BYTES = 1 << 16 };

tg_control tg_control_none(void)
{
    return (tg_control){.monitor_interval_ms = -1};
}

static tg_status read_fields(const tg_json *json, tg_control *out)
{
    const tg_json_node root = tg_json_root(json);
    TG_TRY(tg_json_get_int(&root, "monitor_interval_ms", TG_OPTIONAL, &out->monitor_interval_ms));
    TG_TRY(tg_json_get_int(&root, "trace_steps", TG_OPTIONAL, &out->trace_steps));
    TG_TRY(tg_json_get_int(&root, "trace_request", TG_OPTIONAL, &out->trace_request));
    return tg_json_get_bool(&root, "stop", TG_OPTIONAL, &out->stop);
}

static tg_status read_file(const char *path, tg_control *out)
{
    tg_json json = {0};
    tg_control control = tg_control_none();
    TG_TRY(tg_json_read_within(path, MOST_BYTES, &json));
    tg_status status = read_fields(&json, &control);
    tg_json_done(&json);
    if (status == TG_OK)
        *out = control;
    return status;
}

static void make_path(const char *run_path, char out[PATH_MAX])
{
    snprintf(out, PATH_MAX, "%s/" FILE_NAME, run_path);
}

tg_status tg_control_read(const char *run_path, tg_control *out)
{
    char path[PATH_MAX];
    make_path(run_path, path);
    if (!tg_file_exists(path)) {
        *out = tg_control_none();
        return TG_OK;
    }
    return read_file(path, out);
}

static tg_status write_file(const char *path, const tg_control *control)
{
    tg_text text = {0};
    tg_json_writer w = tg_json_writer_init(&text);
    tg_json_begin_object(&w, NULL);
    if (control->monitor_interval_ms >= 0)
        tg_json_put_int(&w, "monitor_interval_ms", control->monitor_interval_ms);
    tg_json_put_int(&w, "trace_steps", control->trace_steps);
    tg_json_put_int(&w, "trace_request", control->trace_request);
    tg_json_put_bool(&w, "stop", control->stop);
    tg_json_end_object(&w);
    tg_text_append_char(&text, '\n');
    tg_status status = tg_file_write_text(path, &text);
    tg_text_done(&text);
    return status;
}

tg_status tg_control_update(const char *run_path, tg_control_change change, void *user)
{
    char path[PATH_MAX];
    tg_control control;
    make_path(run_path, path);
    int fd = open(run_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return tg_fail(tg_file_read_fault(errno), "%s: %s", run_path, strerrordesc_np(errno));
    (void)flock(fd, LOCK_EX); /* a file system without locks has one writer at a time, we hope */
    tg_status status = tg_control_read(run_path, &control);
    if (status == TG_OK) {
        change(user, &control);
        status = write_file(path, &control);
    }
    close(fd);
    return status;
}

tg_status tg_control_remove(const char *run_path)
{
    char path[PATH_MAX];
    make_path(run_path, path);
    if (unlink(path) == 0 || errno == ENOENT)
        return TG_OK;
    return tg_fail(TG_ERROR_MACHINE, "cannot remove %s: %s", path, strerrordesc_np(errno));
}

/* A file that is renamed into place is another one; one that is written in place has another time or size. */
static uint64_t identity_of(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return 0;
    const uint64_t parts[] = {(uint64_t)st.st_ino, (uint64_t)st.st_mtim.tv_sec,
                              (uint64_t)st.st_mtim.tv_nsec, (uint64_t)st.st_size};
    const uint64_t hash = tg_hash(TG_HASH_START, parts, sizeof parts);
    return hash ? hash : 1;
}

void tg_control_follow(const char *run_path, tg_control_follower *out)
{
    make_path(run_path, out->path);
    out->identity = identity_of(out->path);
}

bool tg_control_poll(tg_control_follower *follower, tg_control *out)
{
    const uint64_t identity = identity_of(follower->path);
    if (identity == follower->identity)
        return false;
    follower->identity = identity;
    return identity && read_file(follower->path, out) == TG_OK;
}
