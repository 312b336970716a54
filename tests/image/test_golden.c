/* Decoding, resizing, evaluation transform and colour operations give what Pillow and torchvision
 * gave for the pictures of tests/golden/image (scripts/golden/make_image_golden.py). */
#include "support/check.h"

#include "image/affine.h"
#include "image/color.h"
#include "image/decode.h"
#include "image/resize.h"
#include "image/transform.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BYTES = 1 << 16, FIELD_BYTES = 128, ARGUMENTS = 8 };

typedef struct row {
    char operation[FIELD_BYTES], input[FIELD_BYTES], text[FIELD_BYTES], expected[FIELD_BYTES];
    double limit, mean_limit;
    tg_interpolation filter; /* from the words of the arguments */
    bool squash;
    double number[ARGUMENTS]; /* the numbers of the arguments */
} row;

typedef struct pictures {
    tg_image input, got, want;
    tg_image_scratch scratch;
} pictures;

static const uint8_t fill[3] = {124, 116, 104};

static size_t read_file(const char *name, uint8_t out[MAX_BYTES])
{
    char path[4096 + FIELD_BYTES];
    snprintf(path, sizeof path, "%s/tests/golden/image/%s", tg_test_source_dir(), name);
    FILE *f = fopen(path, "rb");
    if (!f)
        print_error("cannot open %s\n", path);
    assert_non_null(f);
    size_t n = fread(out, 1, MAX_BYTES, f);
    fclose(f);
    assert_true(n < MAX_BYTES);
    return n;
}

static void decode_file(const char *name, tg_image_scratch *scratch, tg_image *out)
{
    static uint8_t bytes[MAX_BYTES];
    size_t n = read_file(name, bytes);
    assert_ok(tg_image_decode(bytes, n, NULL, scratch, out, NULL));
}

static void read_arguments(row *r)
{
    char copy[FIELD_BYTES], *rest = NULL;
    int numbers = 0;
    memcpy(copy, r->text, sizeof copy);
    r->filter = strstr(copy, "bilinear") ? TG_BILINEAR : TG_BICUBIC;
    r->squash = strstr(copy, "squash") != NULL;
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        char *end;
        double v = strtod(word, &end);
        if (*end == '\0' && numbers < ARGUMENTS)
            r->number[numbers++] = v;
    }
}

/* 0 at the end of the table. */
static int read_row(const char **p, row *out)
{
    *out = (row){.limit = 0};
    int used = 0;
    if (sscanf(*p, "%127[^,],%127[^,],%n", out->operation, out->input, &used) != 2)
        return 0;
    *p += used;
    size_t n = strcspn(*p, ",");
    assert_true(n < FIELD_BYTES);
    memcpy(out->text, *p, n);
    *p += n + 1;
    assert_int_equal(
        sscanf(*p, "%127[^,],%lf,%lf\n%n", out->expected, &out->limit, &out->mean_limit, &used), 3);
    *p += used;
    read_arguments(out);
    return 1;
}

static void resize(const row *r, tg_resize_level level, pictures *p)
{
    const double *n = r->number;
    tg_resize_spec spec = {
        .width_px = (int)n[0], .height_px = (int)n[1], .filter = r->filter, .level = level};
    if (strcmp(r->operation, "resize_box") == 0)
        spec.box = (tg_image_box){n[2], n[3], n[4], n[5]};
    if (strcmp(r->operation, "resize_crop") == 0)
        spec.crop = (tg_image_rect){(int)n[2], (int)n[3], (int)n[4], (int)n[5]};
    assert_ok(tg_image_resize(&p->input, &spec, &p->scratch, &p->got));
}

static void evaluate(const row *r, pictures *p)
{
    tg_preprocess preprocess = tg_preprocess_default((int)r->number[0]);
    preprocess.crop_pct = r->number[1];
    preprocess.interpolation = r->filter;
    preprocess.crop_mode = r->squash ? TG_CROP_SQUASH : TG_CROP_CENTER;
    assert_ok(tg_preprocess_pixels(&preprocess, &p->input, &p->scratch, &p->got));
}

/* Colour operations by name; false when there is none of that name. */
static bool recolor(const row *r, tg_image *image, tg_image_scratch *scratch)
{
    double v = r->number[0];
    const char *name = r->operation;
    if (strcmp(name, "brightness") == 0)
        tg_color_brightness(image, v);
    else if (strcmp(name, "contrast") == 0)
        tg_color_contrast(image, v);
    else if (strcmp(name, "saturation") == 0)
        tg_color_saturation(image, v);
    else if (strcmp(name, "sharpness") == 0)
        assert_ok(tg_color_sharpness(image, v, scratch));
    else if (strcmp(name, "hue") == 0)
        tg_color_hue(image, v);
    else if (strcmp(name, "grayscale") == 0)
        tg_color_grayscale(image);
    else if (strcmp(name, "posterize") == 0)
        tg_color_posterize(image, (int)v);
    else if (strcmp(name, "solarize") == 0)
        tg_color_solarize(image, (int)v);
    else if (strcmp(name, "solarize_add") == 0)
        tg_color_solarize_add(image, (int)v, 128);
    else if (strcmp(name, "invert") == 0)
        tg_color_invert(image);
    else if (strcmp(name, "equalize") == 0)
        tg_color_equalize(image);
    else if (strcmp(name, "autocontrast") == 0)
        tg_color_autocontrast(image);
    else
        return false;
    return true;
}

static bool move(const row *r, tg_image *image, tg_image_scratch *scratch)
{
    double v = r->number[0];
    const char *name = r->operation;
    if (strcmp(name, "rotate") == 0)
        assert_ok(tg_image_rotate(image, v, r->filter, fill, scratch));
    else if (strcmp(name, "shear_x") == 0)
        assert_ok(tg_image_shear_x(image, v, r->filter, fill, scratch));
    else if (strcmp(name, "shear_y") == 0)
        assert_ok(tg_image_shear_y(image, v, r->filter, fill, scratch));
    else if (strcmp(name, "translate") == 0)
        assert_ok(tg_image_translate(image, v, r->number[1], r->filter, fill, scratch));
    else
        return false;
    return true;
}

static void compare(const row *r, const tg_image *got, const tg_image *want)
{
    int worst = 0;
    uint64_t sum = 0;
    if (got->width_px != want->width_px || got->height_px != want->height_px)
        print_error("%s: %d x %d instead of %d x %d\n", r->input, got->width_px, got->height_px,
                    want->width_px, want->height_px);
    assert_int_equal(got->width_px, want->width_px);
    assert_int_equal(got->height_px, want->height_px);
    size_t n = (size_t)got->width_px * 3 * (size_t)got->height_px;
    for (size_t i = 0; i < n; i++) {
        int d = abs(got->rgb[i] - want->rgb[i]);
        worst = d > worst ? d : worst;
        sum += (uint64_t)d;
    }
    double mean = (double)sum / (double)n;
    if (worst > r->limit || (r->mean_limit > 0 && mean > r->mean_limit)) {
        print_error("%s %s %s: worst %d, limit %g; mean %g, limit %g\n", r->operation, r->input,
                    r->text, worst, r->limit, mean, r->mean_limit);
        fail();
    }
}

static void run_row(const row *r, pictures *p)
{
    decode_file(r->input, &p->scratch, &p->input);
    decode_file(r->expected, &p->scratch, &p->want);
    if (strncmp(r->operation, "resize", 6) == 0) {
        resize(r, TG_RESIZE_PLAIN, p);
        compare(r, &p->got, &p->want);
        if (!tg_resize_has_level(TG_RESIZE_AVX2))
            return;
        resize(r, TG_RESIZE_AVX2, p);
        compare(r, &p->got, &p->want);
        return;
    }
    if (strcmp(r->operation, "eval") == 0) {
        evaluate(r, p);
        compare(r, &p->got, &p->want);
        return;
    }
    assert_true(strcmp(r->operation, "decode") == 0 || recolor(r, &p->input, &p->scratch) ||
                move(r, &p->input, &p->scratch));
    compare(r, &p->input, &p->want);
}

static void golden_pictures_are_met(void **state)
{
    (void)state;
    static uint8_t table[MAX_BYTES];
    size_t n = read_file("cases.csv", table), count = 0;
    table[n] = '\0';
    const char *p = strchr((const char *)table, '\n') + 1;
    pictures all = {.got = {0}};
    row r;
    for (; read_row(&p, &r); count++)
        run_row(&r, &all);
    assert_true(*p == '\0');
    assert_true(count > 100);
    tg_image_done(&all.input);
    tg_image_done(&all.got);
    tg_image_done(&all.want);
    tg_image_scratch_done(&all.scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(golden_pictures_are_met)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
