#include "run/run_info.h"

#include "base/json_writer.h"
#include "os/file.h"
#include "os/memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

void tg_run_machine_read(int scheduler_cpus, tg_run_machine *out)
{
    struct utsname name;
    *out = (tg_run_machine){.memory_bytes = tg_memory_total_bytes()};
    if (uname(&name) == 0) {
        snprintf(out->host, sizeof out->host, "%s", name.nodename);
        snprintf(out->system, sizeof out->system, "%s %s %s", name.sysname, name.release,
                 name.machine);
    }
    tg_cpu_model("", out->cpu_model, sizeof out->cpu_model);
    tg_cpu_share_read("", 0, scheduler_cpus, &out->share);
}

static void put_machine(tg_json_writer *w, const tg_run_machine *machine)
{
    tg_json_begin_object(w, "machine");
    tg_json_put_string(w, "host", machine->host);
    tg_json_put_string(w, "system", machine->system);
    tg_json_put_string(w, "cpu", machine->cpu_model);
    tg_json_put_int(w, "cpus", machine->share.affinity);
    tg_json_put_uint(w, "memory_bytes", machine->memory_bytes);
    tg_json_end_object(w);
}

static void put_quota(tg_json_writer *w, double quota)
{
    if (quota > 0)
        tg_json_put_double(w, "cpu_quota", quota);
    else
        tg_json_put_null(w, "cpu_quota");
}

static void put_each(tg_json_writer *w, const tg_run_info *info)
{
    tg_json_begin_array(w, "each");
    for (int r = 0; r < info->ranks && info->each; r++) {
        const tg_run_rank *rank = &info->each[r];
        tg_json_begin_object(w, NULL);
        tg_json_put_int(w, "rank", r);
        tg_json_put_string(w, "host", rank->host);
        tg_json_put_string(w, "cores", rank->cores);
        tg_json_put_bool(w, "bound", rank->bound);
        tg_json_put_int(w, "threads", rank->threads);
        tg_json_put_int(w, "workers", rank->workers);
        put_quota(w, rank->cpu_quota);
        tg_json_end_object(w);
    }
    tg_json_end_array(w);
}

static void put_cgroup(tg_json_writer *w, const tg_cpu_share *share)
{
    tg_json_begin_object(w, "cgroup");
    tg_json_put_int(w, "version", share->cgroup_version);
    put_quota(w, share->quota);
    if (share->memory_limit_bytes)
        tg_json_put_uint(w, "memory_limit_bytes", share->memory_limit_bytes);
    else
        tg_json_put_null(w, "memory_limit_bytes");
    tg_json_put_int(w, "usable_cpus", share->cpus);
    tg_json_end_object(w);
}

static void put_pairs(tg_json_writer *w, const char *key, const tg_run_pair *pairs, size_t count)
{
    tg_json_begin_object(w, key);
    for (size_t i = 0; i < count; i++)
        tg_json_put_string(w, pairs[i].name, pairs[i].value);
    tg_json_end_object(w);
}

static void put_memory(tg_json_writer *w, const tg_run_memory *memory)
{
    if (!memory->row_count) {
        tg_json_put_null(w, "memory");
        return;
    }
    tg_json_begin_object(w, "memory");
    for (size_t i = 0; i < memory->row_count; i++) {
        const tg_run_memory_row *row = &memory->rows[i];
        tg_json_begin_object(w, row->name);
        tg_json_put_double(w, "predicted", row->predicted_bytes);
        tg_json_put_double(w, "least", row->least_bytes);
        tg_json_put_double(w, "most", row->most_bytes);
        tg_json_end_object(w);
    }
    tg_json_put_double(w, "predicted_bytes", memory->predicted_bytes);
    tg_json_put_double(w, "available_bytes", memory->available_bytes);
    tg_json_put_double(w, "peak_rss_bytes",
                       memory->peak_rss_bytes > 0 ? memory->peak_rss_bytes : NAN);
    tg_json_end_object(w);
}

static void put_three(tg_json_writer *w, const char *key, const double values[3])
{
    tg_json_begin_array(w, key);
    for (int i = 0; i < 3; i++)
        tg_json_put_double(w, NULL, values[i]);
    tg_json_end_array(w);
}

static void put_view(tg_json_writer *w, const char *key, const tg_run_view *view)
{
    if (!view->interpolation) {
        tg_json_put_null(w, key);
        return;
    }
    tg_json_begin_object(w, key);
    tg_json_put_int(w, "width_px", view->width_px);
    tg_json_put_int(w, "height_px", view->height_px);
    tg_json_put_double(w, "crop_pct", view->crop_pct);
    tg_json_put_string(w, "crop_mode", view->crop_mode);
    tg_json_put_string(w, "interpolation", view->interpolation);
    put_three(w, "mean", view->mean);
    put_three(w, "std", view->std);
    tg_json_end_object(w);
}

static void put_subject(tg_json_writer *w, const tg_run_subject *subject)
{
    if (!subject->train_images) {
        tg_json_put_null(w, "data");
        tg_json_put_null(w, "preprocess");
        return;
    }
    tg_json_begin_object(w, "data");
    tg_json_put_uint(w, "train_images", subject->train_images);
    tg_json_put_uint(w, "val_images", subject->val_images);
    tg_json_put_uint(w, "classes", subject->classes);
    if (subject->class_most) {
        tg_json_begin_object(w, "class_images");
        tg_json_put_uint(w, "least", subject->class_least);
        tg_json_put_uint(w, "most", subject->class_most);
        tg_json_end_object(w);
    } else {
        tg_json_put_null(w, "class_images");
    }
    tg_json_end_object(w);
    tg_json_begin_object(w, "preprocess");
    put_view(w, "student", &subject->student);
    put_view(w, "stored", &subject->stored);
    put_view(w, "teacher", &subject->teacher);
    tg_json_end_object(w);
}

static void put_teacher_score(tg_json_writer *w, const tg_run_teacher_score *score)
{
    if (!score->images) {
        tg_json_put_null(w, "teacher_score");
        return;
    }
    tg_json_begin_object(w, "teacher_score");
    tg_json_put_double(w, "val_top1", score->top1);
    tg_json_put_double(w, "val_top5", score->top5);
    tg_json_put_double(w, "val_loss", score->loss);
    tg_json_put_uint(w, "val_images", score->images);
    tg_json_end_object(w);
}

static void put_plan(tg_json_writer *w, const tg_run_plan *plan)
{
    if (!plan->total_steps) {
        tg_json_put_null(w, "plan");
        return;
    }
    tg_json_begin_object(w, "plan");
    tg_json_put_int(w, "epochs", plan->epochs);
    tg_json_put_int(w, "steps_per_epoch", plan->steps_per_epoch);
    tg_json_put_int(w, "total_steps", plan->total_steps);
    tg_json_end_object(w);
}

/* The last members, alike while the job runs. */
static void put_end(tg_json_writer *w, const tg_run_info *info)
{
    tg_json_put_string(w, "end", info->end);
    if (info->end)
        tg_json_put_int(w, "exit", info->exit_code);
    else
        tg_json_put_null(w, "exit");
    tg_json_put_string(w, "failure", info->failure);
    tg_json_end_object(w);
    tg_text_append_char(w->text, '\n');
}

static void print_info(const tg_run_info *info, tg_text *text)
{
    tg_json_writer w = tg_json_writer_init(text);
    tg_json_begin_object(&w, NULL);
    tg_json_put_string(&w, "command", info->command);
    tg_json_put_string(&w, "version", info->version);
    put_machine(&w, &info->machine);
    put_cgroup(&w, &info->machine.share);
    put_pairs(&w, "libraries", info->libraries, info->library_count);
    put_pairs(&w, "kernels", info->kernels, info->kernel_count);
    tg_json_put_int(&w, "ranks", info->ranks);
    tg_json_put_int(&w, "threads", info->threads);
    tg_json_put_int(&w, "workers", info->workers);
    put_each(&w, info);
    put_subject(&w, &info->subject);
    put_teacher_score(&w, &info->teacher_score);
    put_memory(&w, &info->memory);
    put_plan(&w, &info->plan);
    tg_json_put_string(&w, "start", info->start);
    put_end(&w, info);
}

tg_status tg_run_info_write(const tg_run_dir *dir, const tg_run_info *info)
{
    tg_text text = {0};
    print_info(info, &text);
    char *path = tg_run_dir_path(dir, "run.json");
    tg_status status = path ? tg_file_write_text(path, &text)
                            : tg_fail(TG_ERROR_MACHINE, "%s: out of memory", dir->path);
    free(path);
    tg_text_done(&text);
    return status;
}

/* The last members of a run.json, without the brace before them. */
static void print_end(const tg_run_info *info, tg_text *text)
{
    tg_text whole = {0};
    tg_json_writer w = tg_json_writer_init(&whole);
    tg_json_begin_object(&w, NULL);
    put_end(&w, info);
    if (whole.failed)
        text->failed = true;
    else
        tg_text_append(text, whole.data + 1, whole.length - 1);
    tg_text_done(&whole);
}

/* `bytes` with the end of a job in the place of that of one under way; TG_END where it has not the latter. */
static tg_status replace_end(char *bytes, size_t length, const tg_run_info *info, tg_text *out)
{
    static const tg_run_info under_way = {0};
    tg_text open_end = {0};
    print_end(&under_way, &open_end);
    const size_t n = open_end.length;
    const bool open = !open_end.failed && length > n &&
                      memcmp(bytes + length - n, tg_text_string(&open_end), n) == 0;
    tg_text_done(&open_end);
    if (!open)
        return TG_END;
    bytes[length - n] = '\0';
    tg_text_append_string(out, bytes);
    print_end(info, out);
    return tg_text_check(out, "run.json");
}

tg_status tg_run_info_complete(const tg_run_dir *dir, const char *end, int exit_code,
                               const char *failure)
{
    enum { MAX_BYTES = 16 << 20 };
    const tg_run_info info = {.end = end, .exit_code = exit_code, .failure = failure};
    tg_text text = {0};
    char *path = tg_run_dir_path(dir, "run.json"), *bytes = NULL;
    size_t length;
    if (!path)
        return tg_fail(TG_ERROR_MACHINE, "%s: out of memory", dir->path);
    tg_status status =
        tg_file_exists(path) ? tg_file_read(path, MAX_BYTES, &bytes, &length) : TG_END;
    if (status == TG_OK)
        status = replace_end(bytes, length, &info, &text);
    if (status == TG_OK)
        status = tg_file_write(path, tg_text_string(&text), text.length);
    free(bytes);
    free(path);
    tg_text_done(&text);
    return status;
}
