#include "support/run_files.h"

#include "os/file.h"
#include "os/folder.h"
#include "run/system_line.h"
#include "support/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *inside(const char *run, const char *name)
{
    char *path = tg_path_join(run, name);
    assert_non_null(path);
    return path;
}

char *tg_run_files_make(const char *name)
{
    static const char *const FOLDERS[] = {"log", "system", "trace"};
    char *run = inside(tg_test_temp_dir(), name);
    assert_ok(tg_tree_remove(run));
    for (int i = 0; i < 3; i++) {
        char *folder = inside(run, FOLDERS[i]);
        assert_ok(tg_folder_make(folder));
        free(folder);
    }
    return run;
}

void tg_run_files_write(const char *run, const char *name, const char *text)
{
    char *path = inside(run, name);
    assert_ok(tg_file_write(path, text, strlen(text)));
    free(path);
}

void tg_run_files_append(const char *run, const char *name, const char *text)
{
    char *path = inside(run, name);
    FILE *file = fopen(path, "a");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    fclose(file);
    free(path);
}

tg_step_record tg_run_files_step(int64_t step, double time, double seconds)
{
    return (tg_step_record){.step = step,
                            .epoch = (step - 1) / 10,
                            .images = 32,
                            .loss = 1 + 2 / (double)step,
                            .loss_task = 1 + 2 / (double)step,
                            .loss_kd = NAN,
                            .lr = 0.001,
                            .grad_norm = 2,
                            .images_per_s = 32 / seconds,
                            .t_step = seconds,
                            .t_data = 0.01 * seconds,
                            .t_teacher = 0,
                            .t_forward = 0.3 * seconds,
                            .t_backward = 0.6 * seconds,
                            .t_optimizer = 0.09 * seconds,
                            .rss_bytes = 1 << 30,
                            .time = time};
}

void tg_run_files_steps(const char *run, int64_t first, int64_t last, double time, double seconds)
{
    for (int64_t step = first; step <= last; step++) {
        tg_text line = {0};
        const double end = time + seconds * (double)(step - first + 1);
        const tg_step_record record = tg_run_files_step(step, end, seconds);
        tg_step_record_print(&record, &line);
        tg_text_append_char(&line, '\n');
        tg_run_files_append(run, "metrics.jsonl", tg_text_string(&line));
        tg_text_done(&line);
    }
}

tg_system_sample tg_run_files_sample(double time, size_t cores, double busy, double running)
{
    tg_system_sample sample;
    assert_ok(tg_system_sample_make(cores, 0, &sample));
    sample.time = time;
    sample.seconds = 0.5;
    for (size_t c = 0; c < cores; c++)
        sample.cores[c] = (tg_system_core){(float)busy, 0, 0, 0};
    sample.values[TG_SYSTEM_RUNNING] = running;
    sample.values[TG_SYSTEM_MEMORY_TOTAL_BYTES] = 0x1p34;
    sample.values[TG_SYSTEM_MEMORY_USED_BYTES] = 0x1p33;
    return sample;
}

void tg_run_files_add_sample(const char *run, const char *host, size_t cores,
                             tg_system_sample *sample)
{
    tg_system_writer writer;
    char *folder = inside(run, "system");
    assert_ok(tg_system_open(folder, host, cores, 0, 1 << 20, &writer));
    assert_ok(tg_system_write(&writer, sample));
    tg_system_close(&writer);
    tg_system_sample_done(sample);
    free(folder);
}
