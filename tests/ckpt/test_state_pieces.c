/* A checkpoint that several processes write in pieces is, byte for byte, the one that a single process writes, and
 * what the plain writers of its files write; one with a piece missing, or written twice, is none. */
#include "support/check.h"

#include "base/rng.h"
#include "ckpt/manifest.h"
#include "ckpt/pieces.h"
#include "ckpt/preset_preprocess.h"
#include "ckpt/state_list.h"
#include "ckpt/state_save.h"
#include "os/file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { BUFFERS = 3, WRITERS = 3, STEP = 5 };

static const char *const NAMES[BUFFERS] = {"params", "m", "average"};

typedef struct job {
    tg_model_info info;
    tg_param_table model, table; /* the second has an entry more, as with a projection */
    float *data[BUFFERS];
    tg_state_piece whole[BUFFERS];
    tg_state_buffer buffers[BUFFERS];
    int64_t epoch;
    tg_state_field field;
    tg_state state;
    tg_state_model in_model;
    char folder[512];
    tg_state_save_options options;
} job;

static void job_open(job *j, const char *name)
{
    *j = (job){.epoch = 3};
    tg_vit_config *c = &j->info.config;
    assert_ok(tg_vit_config_preset("vit_tiny_patch16_224", c));
    c->img_h = c->img_w = 32;
    c->embed_dim = 20; /* not a multiple of the placing: there is padding */
    c->num_heads = 2;
    c->depth = 1;
    c->mlp_hidden = 24;
    c->num_classes = 3;
    j->info.preprocess = tg_preset_preprocess(c);
    assert_ok(tg_vit_params(c, &j->model));
    assert_ok(tg_vit_params(c, &j->table));
    assert_ok(tg_param_add(&j->table, "kd_projection.weight", 2, (size_t[]){7, 5}, 2, true));
    for (int b = 0; b < BUFFERS; b++) {
        j->data[b] = calloc(j->table.elements, sizeof(float));
        for (size_t i = 0; i < j->table.count; i++)
            for (size_t k = 0; k < j->table.items[i].count; k++) {
                tg_rng rng = tg_rng_init(1, (uint64_t)b, i * 100000 + k, TG_RNG_SYNTH);
                j->data[b][j->table.items[i].offset + k] = (float)tg_rng_uniform(&rng);
            }
        j->whole[b] = (tg_state_piece){0, j->table.elements, j->data[b]};
        j->buffers[b] = (tg_state_buffer){NAMES[b], &j->table, &j->whole[b], 1};
    }
    j->field = (tg_state_field){"epoch", TG_STATE_I64, &j->epoch, 0};
    j->state = (tg_state){j->buffers, BUFFERS, &j->field, 1};
    j->in_model = (tg_state_model){&j->info, &j->model, BUFFERS - 1};
    snprintf(j->folder, sizeof j->folder, "%s/%s", tg_test_temp_dir(), name);
    j->options = (tg_state_save_options){j->folder, STEP, NAN, false, 1};
}

static void job_close(job *j)
{
    for (int b = 0; b < BUFFERS; b++)
        free(j->data[b]);
    tg_param_table_done(&j->model);
    tg_param_table_done(&j->table);
}

/* The owner of an element: pieces of 48, as uneven as it comes. */
static int owner_of(size_t element)
{
    return (int)(element / 48 * 7 % 5) % WRITERS;
}

/* What writer w writes of a buffer; without its piece that begins at `lost`. */
static tg_status write_share(job *j, tg_state_save *save, int w, size_t buffer, size_t lost)
{
    for (size_t at = 0; at < j->table.elements; at += 48) {
        size_t n = j->table.elements - at < 48 ? j->table.elements - at : 48;
        const tg_state_piece piece = {at, n, j->data[buffer] + at};
        if (owner_of(at) == w && (buffer != 1 || at != lost))
            TG_TRY(tg_state_save_write(save, buffer, &piece));
    }
    return TG_OK;
}

/* All writers, in turns; extra: the last one writes a piece of the first's too. */
static tg_status save_in_pieces(job *j, size_t lost, bool extra)
{
    tg_state_save saves[WRITERS];
    tg_state_sums sum, all = {0};
    assert_ok(tg_state_save_begin(&j->options, &j->in_model, &j->state, &saves[0]));
    for (int w = 1; w < WRITERS; w++)
        assert_ok(tg_state_save_join(&j->options, &j->in_model, &j->state, saves[0].aside.temp_path,
                                     &saves[w]));
    for (int w = WRITERS; w-- > 0;)
        for (size_t b = 0; b < BUFFERS; b++)
            assert_ok(write_share(j, &saves[w], w, b, lost));
    if (extra)
        assert_ok(tg_state_save_write(&saves[WRITERS - 1], 0, &(tg_state_piece){0, 3, j->data[0]}));
    for (int w = 0; w < WRITERS; w++) {
        assert_ok(tg_state_save_sync(&saves[w], &sum));
        tg_state_sums_add(&all, &sum);
        if (w)
            tg_state_save_discard(&saves[w]);
    }
    return tg_state_save_finish(&saves[0], &all);
}

static tg_status save_whole(job *j)
{
    tg_state_save save;
    tg_state_sums sum;
    assert_ok(tg_state_save_begin(&j->options, &j->in_model, &j->state, &save));
    for (size_t b = 0; b < BUFFERS; b++)
        assert_ok(tg_state_save_write(&save, b, &j->whole[b]));
    assert_ok(tg_state_save_sync(&save, &sum));
    return tg_state_save_finish(&save, &sum);
}

static void same_files(const char *a, const char *b)
{
    char *x, *y;
    size_t m, n;
    assert_ok(tg_file_read(a, 1 << 24, &x, &m));
    assert_ok(tg_file_read(b, 1 << 24, &y, &n));
    assert_int_equal(m, n);
    assert_memory_equal(x, y, n);
    free(x);
    free(y);
}

static void pieces_make_the_file_of_one(void **unused)
{
    (void)unused;
    static const char *const FILES[] = {"state.safetensors", "state.json", "manifest.json",
                                        "model/model.safetensors", "model/config.json"};
    job one, many;
    char a[700], b[700];
    job_open(&one, "one");
    job_open(&many, "many");
    assert_ok(save_whole(&one));
    assert_ok(save_in_pieces(&many, SIZE_MAX, false));
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
        snprintf(a, sizeof a, "%s/step-5/%s", one.folder, FILES[i]);
        snprintf(b, sizeof b, "%s/step-5/%s", many.folder, FILES[i]);
        same_files(a, b);
    }
    snprintf(b, sizeof b, "%s/step-5", many.folder); /* sums were never read from the files */
    assert_ok(tg_state_check(b));
    job_close(&many);
    job_close(&one);
}

/* The files are those that safetensors_write.c and model_write.c make of the same values. */
static void files_are_as_ever(void **unused)
{
    (void)unused;
    job j;
    char path[700], other[700], names[200][100];
    tg_safetensors_tensor tensors[200];
    size_t count = 0;
    job_open(&j, "ever");
    assert_ok(save_in_pieces(&j, SIZE_MAX, false));
    for (size_t b = 0; b < BUFFERS; b++)
        for (size_t i = 0; i < j.table.count; i++, count++) {
            const tg_param *p = &j.table.items[i];
            assert_true(count < 200);
            snprintf(names[count], sizeof names[0], "%s/%s", NAMES[b], p->name);
            tensors[count] = (tg_safetensors_tensor){.name = names[count],
                                                     .dtype = TG_F32,
                                                     .ndim = p->ndim,
                                                     .data = j.data[b] + p->offset};
            memcpy(tensors[count].shape, p->shape, sizeof p->shape);
        }
    snprintf(path, sizeof path, "%s/step-5/state.safetensors", j.folder);
    snprintf(other, sizeof other, "%s/plain.safetensors", j.folder);
    assert_ok(tg_safetensors_write(other, tensors, count, NULL, 0));
    same_files(path, other);
    snprintf(other, sizeof other, "%s/plain", j.folder);
    assert_ok(tg_model_write(other, &j.info, &j.model, j.data[BUFFERS - 1], TG_NAMING_TIMM));
    snprintf(path, sizeof path, "%s/step-5/model/model.safetensors", j.folder);
    snprintf(other, sizeof other, "%s/plain/model.safetensors", j.folder);
    same_files(path, other);
    snprintf(path, sizeof path, "%s/step-5/model/config.json", j.folder);
    snprintf(other, sizeof other, "%s/plain/config.json", j.folder);
    same_files(path, other);
    job_close(&j);
}

static void nothing_is_left(const job *j)
{
    char *found = NULL;
    assert_int_equal(tg_state_find_last(j->folder, &found), TG_END);
    assert_null(found);
    assert_int_equal(tg_state_linked_step(j->folder, "last"), -1);
}

static void a_missing_piece_fails_the_save(void **unused)
{
    (void)unused;
    job j;
    job_open(&j, "missing");
    assert_error(save_in_pieces(&j, 96, false), TG_ERROR_MACHINE, "a piece is missing");
    nothing_is_left(&j);
    assert_error(save_in_pieces(&j, SIZE_MAX, true), TG_ERROR_MACHINE, "was written twice");
    nothing_is_left(&j);
    job_close(&j);
}

static void who_comes_to_another_file_is_refused(void **unused)
{
    (void)unused;
    job j, other;
    tg_state_save first, second;
    job_open(&j, "joined");
    job_open(&other, "joined");
    assert_ok(tg_state_save_begin(&j.options, &j.in_model, &j.state, &first));
    other.state.buffer_count = 2;
    other.in_model.buffer = 0;
    assert_error(tg_state_save_join(&other.options, &other.in_model, &other.state,
                                    first.aside.temp_path, &second),
                 TG_ERROR_MACHINE, "is not the file of");
    tg_state_save_discard(&first);
    assert_error(tg_state_save_join(&j.options, &j.in_model, &j.state, "nowhere", &second),
                 TG_ERROR_MACHINE, "nowhere");
    nothing_is_left(&j);
    job_close(&other);
    job_close(&j);
}

/* Any pieces of what was saved whole; what lies around them stays. */
static void pieces_are_read(void **unused)
{
    (void)unused;
    job j;
    char path[700];
    job_open(&j, "read");
    assert_ok(save_whole(&j));
    const size_t n = j.table.elements;
    float *got = calloc(n, sizeof *got);
    tg_state_piece pieces[2] = {{16, 160, got}, {n - 96, 96, got + 160}};
    for (size_t i = 0; i < n; i++)
        got[i] = -7;
    j.buffers[1].pieces = pieces;
    j.buffers[1].piece_count = 2;
    snprintf(path, sizeof path, "%s/last", j.folder);
    float *want = j.data[1];
    assert_ok(tg_state_load(path, &j.state, NULL, NULL));
    assert_memory_equal(got, want + 16, 160 * sizeof *got);
    assert_memory_equal(got + 160, want + n - 96, 96 * sizeof *got);
    for (size_t i = 256; i < n; i++)
        assert_true(got[i] == -7);
    free(got);
    job_close(&j);
}

/* Places beyond 4 GiB, in a sparse file: what is written there is read there, and the sum is that of the whole file.
 * Sizes of 32 bits would write at the beginning. */
static void places_beyond_4_gib(void **state)
{
    (void)state;
    const uint64_t gib = UINT64_C(1) << 30, far = 4 * gib + 3 * sizeof(float);
    const float values[4] = {1.5F, -2, 3, 0.25F};
    float got[4];
    char path[600], header[256];
    tg_pieces first, other;
    tg_safetensors file;
    snprintf(path, sizeof path, "%s/far.safetensors", tg_test_temp_dir());
    int n = snprintf(header + 8, sizeof header - 8,
                     "{\"near\":{\"dtype\":\"F32\",\"shape\":[%llu],\"data_offsets\":[0,%llu]},"
                     "\"far\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[%llu,%llu]}}",
                     (unsigned long long)(far / 4), (unsigned long long)far,
                     (unsigned long long)far, (unsigned long long)far + sizeof values);
    const uint64_t length = (uint64_t)n, at = 8 + length + far, whole = at + sizeof values;
    memcpy(header, &length, 8);
    assert_ok(tg_pieces_create(path, whole, &first));
    assert_ok(tg_pieces_open(path, whole, &other));
    assert_ok(tg_pieces_write(&first, 0, header, 8 + (size_t)n));
    assert_ok(tg_pieces_write(&other, at, values, sizeof values));
    assert_ok(tg_pieces_commit(&other));
    tg_pieces_sum sum = first.sum;
    tg_pieces_add(&sum, &other.sum);
    assert_ok(tg_pieces_commit(&first));
    assert_int_equal(sum.bytes, 8 + length + sizeof values);
    uLong hole = crc32(0, NULL, 0), all;
    static const unsigned char zeros[1 << 16];
    for (uint64_t left = far; left; left -= left < sizeof zeros ? left : sizeof zeros)
        hole = crc32(hole, zeros, (uInt)(left < sizeof zeros ? left : sizeof zeros));
    all = crc32_combine(crc32(crc32(0, NULL, 0), (const Bytef *)header, (uInt)(8 + length)), hole,
                        (z_off_t)far);
    all = crc32(all, (const Bytef *)values, sizeof values);
    sum.crc ^= (uint32_t)crc32_combine(hole, 0, sizeof values); /* which nobody wrote */
    assert_int_equal(sum.crc, (uint32_t)all);
    assert_ok(tg_safetensors_open(path, &file));
    assert_ok(tg_safetensors_read_f32(&file, tg_safetensors_find(&file, "far"), got));
    assert_memory_equal(got, values, sizeof values);
    assert_ok(
        tg_safetensors_read_part(&file, tg_safetensors_find(&file, "near"), far / 4 - 2, 2, got));
    assert_true(got[0] == 0 && got[1] == 0);
    tg_safetensors_close(&file);
    remove(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_make_the_file_of_one),
        cmocka_unit_test(files_are_as_ever),
        cmocka_unit_test(a_missing_piece_fails_the_save),
        cmocka_unit_test(who_comes_to_another_file_is_refused),
        cmocka_unit_test(pieces_are_read),
        cmocka_unit_test(places_beyond_4_gib),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
