/* What a job holds in memory: predicted and allocated, side by side, and after the first step its peak. */
#include "train/job_parts.h"

#include "base/log.h"
#include "base/text.h"
#include "data/photo.h"
#include "os/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MIB 1048576.0

enum { PHOTOS_LOOKED_AT = 8 };

/* Rows below this share of the whole are left out of the table; run.json has them all. */
#define SHOWN_SHARE 0.005

double tg_job_photo_px(const tg_dataset *data)
{
    const tg_decode_options decode = tg_decode_options_default();
    tg_photo_file file = {0};
    double most = 0;
    for (size_t i = 0; i < PHOTOS_LOOKED_AT && i < data->count; i++) {
        const char *path = data->samples[i * data->count / PHOTOS_LOOKED_AT % data->count].path;
        tg_decode_report report;
        if (tg_photo_file_read(&file, path, decode.max_bytes) == TG_OK &&
            tg_image_probe(file.bytes, file.count, &decode, &report) >= TG_OK)
            most = fmax(most, (double)report.width_px * report.height_px);
        tg_error_clear();
    }
    tg_photo_file_done(&file);
    return most;
}

static tg_status predict(const tg_job *job, tg_memory *out)
{
    const tg_memory_request request = {
        .student = &job->student.info.config,
        .teacher = job->teacher.vit ? &job->teacher.info.config : NULL,
        .feature = job->options->distill.objective.kd == TG_KD_FEATURE,
        .kern = job->kern,
        .dtype = job->dtype,
        .average = job->average != NULL,
        .loader = &job->loading,
        .photos = job->train.count,
        .photo_px = tg_job_photo_px(&job->train),
        .exchange = job->options->ranks,
        .program_bytes = job->program_bytes,
    };
    return tg_memory_predict(&request, out);
}

static double known(double bytes)
{
    return bytes > 0 ? bytes : NAN;
}

/* What was really taken, from where blocks lie and what the heap has given. */
static tg_memory collect(const tg_job *job)
{
    const char *grads = (const char *)job->grads, *m = (const char *)job->m;
    const char *end = (const char *)job->state_memory.base + job->state_memory.used;
    const char *after = job->average ? (const char *)job->average : end;
    return (tg_memory){
        .bytes = {
            [TG_MEMORY_PROGRAM] = known(job->program_bytes),
            [TG_MEMORY_PARAMETERS] = (double)job->student.memory.size,
            [TG_MEMORY_GRADIENTS] = (double)(m - grads),
            [TG_MEMORY_MOMENTS] = (double)(after - m),
            [TG_MEMORY_AVERAGE] = (double)(end - after),
            [TG_MEMORY_PREPARED] = known(job->student_heap_bytes),
            [TG_MEMORY_ACTIVATIONS] =
                (double)(job->memory_known ? job->arena.peak : job->arena.size),
            [TG_MEMORY_BATCHES] = (double)tg_loader_bytes(&job->loading),
            [TG_MEMORY_DECODING] = NAN,
            [TG_MEMORY_TEACHER] = (double)job->teacher.memory.size,
            [TG_MEMORY_TEACHER_PREPARED] = job->teacher.vit ? known(job->teacher_heap_bytes) : 0,
            [TG_MEMORY_EXCHANGE] = (double)tg_comm_bytes(job->comm),
        }};
}

/* Of one rank. */
typedef struct holding {
    tg_memory predicted, allocated;
    double peak_rss_bytes;
} holding;

/* NaN where any rank does not know. */
static void merge(const holding *all, int ranks, tg_memory_report *out)
{
    for (int row = 0; row < TG_MEMORY_ROWS; row++) {
        double predicted = 0, least = INFINITY, most = 0;
        for (int r = 0; r < ranks; r++) {
            const double bytes = all[r].allocated.bytes[row];
            predicted = fmax(predicted, all[r].predicted.bytes[row]);
            least = isnan(bytes) || bytes < least ? bytes : least;
            most = isnan(bytes) || bytes > most ? bytes : most;
        }
        out->predicted.bytes[row] = predicted;
        out->least.bytes[row] = least;
        out->most.bytes[row] = most;
    }
    for (int r = 0; r < ranks; r++) {
        out->predicted_bytes = fmax(out->predicted_bytes, tg_memory_total(&all[r].predicted));
        if (all[r].peak_rss_bytes > out->peak_rss_bytes) {
            out->peak_rss_bytes = all[r].peak_rss_bytes;
            out->peak_rank = r;
        }
    }
}

int tg_job_ranks_here(const tg_comm *comm)
{
    int count = 1;
    for (int r = 0; r < comm->size; r++)
        count +=
            r != comm->rank && strcmp(tg_comm_host(comm, r), tg_comm_host(comm, comm->rank)) == 0;
    return count;
}

/* Puts together what all ranks hold. */
static tg_status gather(tg_job *job, double peak_rss_bytes)
{
    const int ranks = job->comm->size;
    const holding mine = {
        .predicted = job->predicted, .allocated = collect(job), .peak_rss_bytes = peak_rss_bytes};
    holding *all = calloc((size_t)ranks, sizeof *all);
    if (!all)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for %d ranks", ranks);
    tg_memory_report report = {.ranks = ranks, .available_bytes = job->memory.available_bytes};
    tg_status status = tg_comm_meet(job->comm, "memory", &mine, sizeof mine, all);
    if (status == TG_OK) {
        merge(all, ranks, &report);
        job->memory = report;
        if (job->watch->memory)
            job->watch->memory(job->watch->user, &job->memory);
    }
    free(all);
    return status;
}

static void append_mib(tg_text *line, double bytes)
{
    if (isnan(bytes))
        tg_text_append_format(line, "%12s    ", "-");
    else
        tg_text_append_format(line, "%12.1f MiB", bytes / MIB);
}

static void log_row(const char *title, double predicted, const tg_memory_report *r, double least,
                    double most)
{
    tg_text line = {0};
    tg_text_append_format(&line, "  %-24s", title);
    append_mib(&line, predicted);
    append_mib(&line, least);
    if (r->ranks > 1)
        append_mib(&line, most);
    tg_log_info("%s", tg_text_string(&line));
    tg_text_done(&line);
}

static void log_table(const tg_memory_report *r)
{
    if (r->ranks > 1)
        tg_log_info("%-26s%16s%16s%16s", "memory of a rank", "predicted", "least", "most");
    else
        tg_log_info("%-26s%16s%16s", "memory", "predicted", "allocated");
    for (int row = 0; row < TG_MEMORY_ROWS; row++)
        if (r->predicted.bytes[row] >= SHOWN_SHARE * r->predicted_bytes)
            log_row(tg_memory_row_title((tg_memory_row)row), r->predicted.bytes[row], r,
                    r->least.bytes[row], r->most.bytes[row]);
    log_row("together", r->predicted_bytes, r, tg_memory_total(&r->least),
            tg_memory_total(&r->most));
}

tg_status tg_job_tell_memory(tg_job *job)
{
    const int sharers = tg_job_has_ranks(job) ? tg_job_ranks_here(job->comm) : 1;
    const double held = (double)tg_memory_rss_bytes();
    job->memory.available_bytes = tg_memory_available(sharers) + held;
    TG_TRY(tg_comm_agree(job->comm, "memory", predict(job, &job->predicted)));
    TG_TRY(gather(job, 0));
    log_table(&job->memory);
    const double need = job->memory.predicted_bytes, has = job->memory.available_bytes;
    if (need > has && has > held)
        tg_log_warning("a step may need %.1f MiB, and this process has %.1f MiB: a smaller "
                       "--batch-size needs less (tagine plan tells how much)",
                       need / MIB, has / MIB);
    return TG_OK;
}

tg_status tg_job_tell_peak(tg_job *job)
{
    job->memory_known = true;
    TG_TRY(gather(job, (double)tg_memory_peak_rss_bytes()));
    const tg_memory_report *r = &job->memory;
    if (r->ranks > 1)
        tg_log_info("memory after the first step: at most %.1f MiB, on rank %d; predicted %.1f MiB",
                    r->peak_rss_bytes / MIB, r->peak_rank, r->predicted_bytes / MIB);
    else
        tg_log_info("memory after the first step: at most %.1f MiB; predicted %.1f MiB",
                    r->peak_rss_bytes / MIB, r->predicted_bytes / MIB);
    return TG_OK;
}
