#include "data/slot.h"

#include "base/checked.h"
#include "data/mix.h"

#include <stdio.h>
#include <string.h>

static size_t image_floats(const tg_preprocess *input)
{
    size_t floats;
    if (input->width_px < 1 || input->height_px < 1 ||
        !tg_mul_size((size_t)input->width_px, (size_t)input->height_px, &floats) ||
        !tg_mul_size(floats, 3, &floats))
        return SIZE_MAX;
    return floats;
}

/* Adds a block of n items to *total; false when it cannot be counted. */
static bool add_block(size_t n, size_t each, size_t item_bytes, size_t *total)
{
    size_t bytes;
    return tg_mul_size(n, each, &bytes) && tg_mul_size(bytes, item_bytes, &bytes) &&
           tg_round_up_size(bytes, TG_ALIGN, &bytes) && tg_add_size(*total, bytes, total);
}

size_t tg_slot_bytes(const tg_loader_options *options)
{
    const size_t B = tg_loader_share(options);
    size_t total = 0;
    bool fits = add_block(B, image_floats(&options->preprocess), sizeof(float), &total) &&
                (!options->has_teacher ||
                 add_block(B, image_floats(&options->teacher_preprocess), sizeof(float), &total)) &&
                add_block(B, options->num_classes, sizeof(float), &total) &&
                add_block(B, 1, sizeof(int32_t), &total) &&
                add_block(B, 1, sizeof(uint64_t), &total) &&
                add_block(B, 1, sizeof(bool), &total) && add_block(TG_ERROR_BYTES, 1, 1, &total);
    return fits ? total : SIZE_MAX;
}

tg_status tg_slot_init(tg_slot *slot, const tg_loader_options *options, tg_arena *arena)
{
    const size_t B = tg_loader_share(options);
    tg_batch *batch = &slot->batch;
    *slot = (tg_slot){0};
    batch->image =
        tg_arena_alloc(arena, B * image_floats(&options->preprocess) * sizeof *batch->image);
    if (options->has_teacher)
        batch->teacher_image = tg_arena_alloc(
            arena, B * image_floats(&options->teacher_preprocess) * sizeof *batch->teacher_image);
    if (options->num_classes > 0)
        batch->target = tg_arena_alloc(arena, B * options->num_classes * sizeof *batch->target);
    batch->label = tg_arena_alloc(arena, B * sizeof *batch->label);
    batch->sample_index = tg_arena_alloc(arena, B * sizeof *batch->sample_index);
    slot->bad = tg_arena_alloc(arena, B * sizeof *slot->bad);
    slot->message = tg_arena_alloc(arena, TG_ERROR_BYTES);
    if (!batch->image || (options->has_teacher && !batch->teacher_image) ||
        (options->num_classes > 0 && !batch->target) || !batch->label || !batch->sample_index ||
        !slot->bad || !slot->message)
        return tg_fail(TG_ERROR_MACHINE, "loader batch does not fit its memory");
    return TG_OK;
}

void tg_slot_begin(tg_slot *slot, const tg_loader_options *options, uint64_t first, size_t nominal)
{
    const tg_deal deal = tg_deal_make(options, nominal);
    const size_t planned = deal.count;
    slot->state = planned > 0 ? TG_SLOT_FILLING : TG_SLOT_READY;
    slot->first = first;
    slot->nominal = nominal;
    slot->deal = deal;
    slot->planned = planned;
    slot->claimed = slot->finished = 0;
    slot->error = TG_OK;
    memset(slot->bad, 0, planned * sizeof *slot->bad);
    slot->batch.count = planned;
    slot->batch.skipped = 0;
    slot->batch.position = first + nominal;
}

void tg_slot_fail(tg_slot *slot, size_t at, tg_status status, const char *message)
{
    if (slot->error < 0 && slot->error_at < at)
        return;
    slot->error = status;
    slot->error_at = at;
    snprintf(slot->message, TG_ERROR_BYTES, "%s", message);
}

static void move_row(float *rows, size_t floats, size_t from, size_t to)
{
    if (rows)
        memcpy(rows + to * floats, rows + from * floats, floats * sizeof *rows);
}

static void close_gaps(tg_slot *slot, const tg_loader_options *options)
{
    tg_batch *batch = &slot->batch;
    size_t kept = 0;
    for (size_t i = 0; i < slot->planned; i++) {
        if (slot->bad[i])
            continue;
        if (kept < i) {
            move_row(batch->image, image_floats(&options->preprocess), i, kept);
            move_row(batch->teacher_image, image_floats(&options->teacher_preprocess), i, kept);
            move_row(batch->target, options->num_classes, i, kept);
            batch->label[kept] = batch->label[i];
            batch->sample_index[kept] = batch->sample_index[i];
        }
        kept++;
    }
    batch->count = kept;
    batch->skipped = slot->planned - kept;
}

void tg_slot_finish(tg_slot *slot, const tg_loader_options *options, uint64_t epoch)
{
    tg_batch *batch = &slot->batch;
    const tg_preprocess *own = &options->preprocess, *teacher = &options->teacher_preprocess;
    tg_augment off = tg_augment_default();
    const tg_augment *augment = options->train ? &options->augment : &off;
    if (slot->error < 0)
        return;
    tg_mix mix = tg_mix_make(augment, slot->nominal, own->width_px, own->height_px, options->seed,
                             epoch, slot->first / options->batch_size);
    tg_mix_images(&mix, slot->bad, slot->planned, own->width_px, own->height_px, batch->image);
    if (batch->teacher_image)
        tg_mix_images(&mix, slot->bad, slot->planned, teacher->width_px, teacher->height_px,
                      batch->teacher_image);
    if (batch->target)
        tg_mix_targets(&mix, slot->bad, batch->label, slot->planned, options->num_classes,
                       augment->smoothing, batch->target);
    close_gaps(slot, options);
}
