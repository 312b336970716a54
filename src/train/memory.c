#include "train/memory.h"

#include "os/cpu.h"
#include "os/memory.h"
#include "train/step.h"

#include <math.h>

/* Seen with Debian's libraries: the program and its libraries as loaded, then oneDNN's code for the shapes
 * of a model and the threads' stacks. */
#define PROGRAM_BYTES (14.0 * 1048576)
#define LIBRARIES_BYTES (12.0 * 1048576)

/* A worker's photo: three bytes a pixel decoded, the file itself, and rows on their way to the crop. */
#define DECODING_BYTES_PER_PX 5.0
/* A sample's path and label, its place in the shuffled order, and whether the log has named it. */
#define LIST_BYTES_PER_PHOTO 128.0

const char *tg_memory_row_title(tg_memory_row row)
{
    static const char *const TITLES[TG_MEMORY_ROWS] = {
        [TG_MEMORY_PROGRAM] = "program and libraries",
        [TG_MEMORY_PARAMETERS] = "weights",
        [TG_MEMORY_GRADIENTS] = "gradients",
        [TG_MEMORY_MOMENTS] = "moments (AdamW)",
        [TG_MEMORY_AVERAGE] = "average of the weights",
        [TG_MEMORY_PREPARED] = "weights as prepared",
        [TG_MEMORY_ACTIVATIONS] = "activations",
        [TG_MEMORY_BATCHES] = "batches of photos",
        [TG_MEMORY_DECODING] = "decoding",
        [TG_MEMORY_TEACHER] = "teacher's weights",
        [TG_MEMORY_TEACHER_PREPARED] = "teacher's as prepared",
        [TG_MEMORY_EXCHANGE] = "exchange between ranks",
    };
    return TITLES[row];
}

const char *tg_memory_row_key(tg_memory_row row)
{
    static const char *const KEYS[TG_MEMORY_ROWS] = {
        [TG_MEMORY_PROGRAM] = "program_bytes",
        [TG_MEMORY_PARAMETERS] = "weights_bytes",
        [TG_MEMORY_GRADIENTS] = "gradients_bytes",
        [TG_MEMORY_MOMENTS] = "moments_bytes",
        [TG_MEMORY_AVERAGE] = "average_bytes",
        [TG_MEMORY_PREPARED] = "prepared_bytes",
        [TG_MEMORY_ACTIVATIONS] = "activations_bytes",
        [TG_MEMORY_BATCHES] = "batches_bytes",
        [TG_MEMORY_DECODING] = "decoding_bytes",
        [TG_MEMORY_TEACHER] = "teacher_weights_bytes",
        [TG_MEMORY_TEACHER_PREPARED] = "teacher_prepared_bytes",
        [TG_MEMORY_EXCHANGE] = "exchange_bytes",
    };
    return KEYS[row];
}

double tg_memory_total(const tg_memory *memory)
{
    double sum = 0;
    for (int row = 0; row < TG_MEMORY_ROWS; row++)
        if (!isnan(memory->bytes[row]))
            sum += memory->bytes[row];
    return sum;
}

double tg_memory_optimizer(const tg_memory *memory)
{
    return memory->bytes[TG_MEMORY_MOMENTS] + memory->bytes[TG_MEMORY_AVERAGE];
}

tg_status tg_memory_own_elements(const tg_ranks_options *options, size_t elements, int rank,
                                 int ranks, size_t *out)
{
    tg_comm place = {.rank = rank, .size = ranks}; /* cuts ask for nothing else */
    tg_buckets buckets;
    *out = elements;
    if (ranks <= 1 || !options->shard)
        return TG_OK;
    TG_TRY(tg_buckets_init(&buckets, &place, elements, options->first_bucket_bytes,
                           options->bucket_bytes));
    *out = buckets.own_elements;
    tg_buckets_done(&buckets);
    return TG_OK;
}

size_t tg_memory_projection_floats(size_t C_s, size_t C_t)
{
    return ((C_t * C_s + 15) & ~(size_t)15) + ((C_t + 15) & ~(size_t)15);
}

static tg_status count_elements(const tg_vit_config *config, size_t *out)
{
    tg_param_table table = {0};
    tg_status status = tg_vit_params(config, &table);
    *out = table.elements;
    tg_param_table_done(&table);
    return status;
}

static tg_status add_step(const tg_memory_request *request, tg_memory *m)
{
    const tg_loader_options *loader = request->loader;
    const size_t B = tg_loader_share(loader);
    const size_t step =
        tg_step_bytes(request->student, request->teacher, request->feature, B, request->dtype);
    const size_t batches = tg_loader_bytes(loader);
    if (step == (size_t)-1 || batches == SIZE_MAX)
        return tg_fail(TG_ERROR_USAGE, "a batch of %zu pictures is more than a machine can address",
                       loader->batch_size);
    m->bytes[TG_MEMORY_ACTIVATIONS] = (double)step;
    m->bytes[TG_MEMORY_BATCHES] = (double)batches;
    m->bytes[TG_MEMORY_DECODING] =
        (loader->workers > 0 ? loader->workers : 1) * DECODING_BYTES_PER_PX * request->photo_px +
        LIST_BYTES_PER_PHOTO * (double)request->photos;
    return TG_OK;
}

static tg_status add_teacher(const tg_memory_request *request, tg_memory *m)
{
    if (!request->teacher)
        return TG_OK;
    size_t elements;
    TG_TRY(count_elements(request->teacher, &elements));
    m->bytes[TG_MEMORY_TEACHER] = (double)(elements * sizeof(float));
    m->bytes[TG_MEMORY_TEACHER_PREPARED] =
        (double)tg_vit_weight_bytes(request->teacher, request->kern, request->dtype, false);
    return TG_OK;
}

tg_status tg_memory_predict(const tg_memory_request *request, tg_memory *out)
{
    const tg_loader_options *loader = request->loader;
    const int ranks = loader->ranks > 1 ? loader->ranks : 1;
    size_t elements, own;
    TG_TRY(count_elements(request->student, &elements));
    if (request->feature)
        elements +=
            tg_memory_projection_floats(request->student->embed_dim, request->teacher->embed_dim);
    TG_TRY(tg_memory_own_elements(&request->exchange, elements, loader->rank, ranks, &own));
    const double whole = TG_ARENA_ROUND(elements * sizeof(float));
    const double kept = TG_ARENA_ROUND(own * sizeof(float));
    tg_memory m = {0};
    m.bytes[TG_MEMORY_PROGRAM] =
        (request->program_bytes > 0 ? request->program_bytes : PROGRAM_BYTES) + LIBRARIES_BYTES;
    m.bytes[TG_MEMORY_PARAMETERS] = m.bytes[TG_MEMORY_GRADIENTS] = whole;
    m.bytes[TG_MEMORY_MOMENTS] = 2 * kept;
    m.bytes[TG_MEMORY_AVERAGE] = request->average ? kept : 0;
    m.bytes[TG_MEMORY_PREPARED] =
        (double)tg_vit_weight_bytes(request->student, request->kern, request->dtype, true);
    TG_TRY(add_step(request, &m));
    TG_TRY(add_teacher(request, &m));
    if (ranks > 1)
        m.bytes[TG_MEMORY_EXCHANGE] = (double)tg_ranks_bytes(&request->exchange, elements, ranks);
    *out = m;
    return TG_OK;
}

double tg_memory_available(int sharers)
{
    tg_cpu_share share;
    double available = (double)tg_memory_available_bytes();
    tg_cpu_share_read("", 0, 0, &share);
    if (share.memory_limit_bytes) {
        double left = (double)share.memory_limit_bytes - (double)tg_memory_rss_bytes();
        if (left < available || available == 0)
            available = left;
    }
    return available / (sharers > 1 ? sharers : 1);
}
