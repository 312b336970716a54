/* Every file of the collection of odd photos does what its manifest says. */
#include "support/check.h"

#include "image/decode.h"
#include "image/resize.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ROWS = 128, FIELD_BYTES = 256, MAX_BYTES = 16 << 20 };

typedef struct row {
    char file[FIELD_BYTES], expect[FIELD_BYTES], same_as[FIELD_BYTES];
} row;

static row rows[MAX_ROWS];
static size_t row_count;
static char folder[4096 + 32];

static size_t read_file(const char *name, uint8_t *out, size_t limit)
{
    char path[sizeof folder + FIELD_BYTES];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t n = fread(out, 1, limit, f);
    fclose(f);
    return n;
}

/* Copies the field at *p up to the comma; the first three fields are never quoted. */
static void take_field(const char **p, char *out)
{
    size_t n = strcspn(*p, ",\n");
    assert_true(n < FIELD_BYTES);
    memcpy(out, *p, n);
    out[n] = '\0';
    *p += n + 1;
}

static void read_manifest(void)
{
    static char text[1 << 16];
    size_t n = read_file("MANIFEST.csv", (uint8_t *)text, sizeof text - 1);
    text[n] = '\0';
    const char *p = strchr(text, '\n') + 1;
    while (*p) {
        assert_true(row_count < MAX_ROWS);
        row *r = &rows[row_count++];
        take_field(&p, r->file);
        take_field(&p, r->expect);
        take_field(&p, r->same_as);
        p = strchr(p, '\n');
        p = p ? p + 1 : "";
    }
}

static tg_status decode_file(const char *name, tg_image_scratch *scratch, tg_image *out,
                             tg_decode_report *report)
{
    uint8_t *bytes = malloc(MAX_BYTES);
    assert_non_null(bytes);
    size_t n = read_file(name, bytes, MAX_BYTES);
    tg_status status = tg_image_decode(bytes, n, NULL, scratch, out, report);
    free(bytes);
    return status;
}

/* Mean absolute difference; the sizes must agree. */
static double difference(const tg_image *a, const tg_image *b)
{
    uint64_t sum = 0;
    assert_int_equal(a->width_px, b->width_px);
    assert_int_equal(a->height_px, b->height_px);
    size_t n = (size_t)a->width_px * 3 * (size_t)a->height_px;
    for (size_t i = 0; i < n; i++)
        sum += (uint64_t)abs(a->rgb[i] - b->rgb[i]);
    return (double)sum / (double)n;
}

/* "upright.jpg~" means within the loss of one more encoding: a mean of 6 levels, about twice what
 * quality 88 with 4:1:1 chroma costs on this photo. "upright.jpg" means the same coefficients:
 * equal pixels, except where they are stored turned: the colour interpolation of JPEG rounds in a
 * fixed order, so a mirrored copy may differ by one rounding (mean below 0.25). */
static double allowed_difference(const row *r)
{
    if (r->same_as[strlen(r->same_as) - 1] == '~')
        return 6;
    return strncmp(r->file, "exif_", 5) == 0 ? 0.25 : 0;
}

static void compare(const row *r, const tg_image *image, const tg_image *base)
{
    if (!r->same_as[0])
        return;
    double d = difference(image, base);
    if (d > allowed_difference(r)) {
        print_error("%s differs from %s by %.3f levels\n", r->file, r->same_as, d);
        fail();
    }
}

static void manifest_is_followed(void **state)
{
    (void)state;
    tg_image_scratch scratch = {0};
    tg_image base = {0}, image = {0};
    assert_ok(decode_file("upright.jpg", &scratch, &base, NULL));
    for (size_t i = 0; i < row_count; i++) {
        const row *r = &rows[i];
        tg_decode_report report;
        tg_status status = decode_file(r->file, &scratch, &image, &report);
        bool may_decode = strstr(r->expect, "decode") != NULL;
        bool may_refuse = strstr(r->expect, "refuse") != NULL;
        bool must_warn = strstr(r->expect, "with a warning") != NULL;
        if (status == TG_OK) {
            if (!may_decode || (must_warn && report.warning_count == 0))
                print_error("%s was decoded, manifest: %s\n", r->file, r->expect);
            assert_true(may_decode && (!must_warn || report.warning_count > 0));
            compare(r, &image, &base);
        } else {
            if (!may_refuse)
                print_error("%s: %s\n", r->file, tg_error_message());
            assert_true(may_refuse);
            assert_int_equal(status, TG_ERROR_INPUT);
            assert_true(strlen(tg_error_message()) > 0);
        }
    }
    tg_image_done(&base);
    tg_image_done(&image);
    tg_image_scratch_done(&scratch);
}

/* A phone photo's crop decoded at reduced scale stays inside the bound that decode.h states. */
static void check_reduced_crop(const uint8_t *bytes, size_t n, const tg_image *whole,
                               tg_image_rect crop, int side)
{
    tg_image_scratch scratch = {0};
    tg_image part = {0}, want = {0}, got = {0};
    tg_resize_spec spec = {.width_px = side, .height_px = side, .crop = crop};
    tg_decode_report report;
    assert_ok(tg_image_resize(whole, &spec, &scratch, &want));
    spec.crop = (tg_image_rect){0};
    assert_ok(tg_image_decode_region(bytes, n, NULL, crop, side, side, TG_IMAGE_REDUCE_RESERVE,
                                     &scratch, &part, &spec.box, &report));
    assert_ok(tg_image_resize(&part, &spec, &scratch, &got));
    int worst = 0;
    for (size_t i = 0; i < (size_t)side * (size_t)side * 3; i++) {
        int d = abs(got.rgb[i] - want.rgb[i]);
        worst = d > worst ? d : worst;
    }
    assert_true(report.scale_denominator > 1);
    assert_true(difference(&got, &want) <= 1 && worst <= 32);
    tg_image_done(&part);
    tg_image_done(&want);
    tg_image_done(&got);
    tg_image_scratch_done(&scratch);
}

static void reduced_crops_of_phone_photos(void **state)
{
    (void)state;
    static const char *const names[] = {"huge_4032x3024.jpg", "huge_exif_orientation_6.jpg"};
    tg_image_scratch scratch = {0};
    tg_image whole = {0};
    uint8_t *bytes = malloc(MAX_BYTES);
    assert_non_null(bytes);
    for (int i = 0; i < 2; i++) {
        size_t n = read_file(names[i], bytes, MAX_BYTES);
        assert_ok(tg_image_decode(bytes, n, NULL, &scratch, &whole, NULL));
        check_reduced_crop(bytes, n, &whole, (tg_image_rect){501, 333, 2001, 2222}, 224);
        check_reduced_crop(bytes, n, &whole, (tg_image_rect){3, 1200, 2999, 1801}, 96);
    }
    free(bytes);
    tg_image_done(&whole);
    tg_image_scratch_done(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(manifest_is_followed),
                                       cmocka_unit_test(reduced_crops_of_phone_photos)};
    if (!tg_test_shared_dir())
        tg_skip_program("the folder of shared photos is absent");
    snprintf(folder, sizeof folder, "%s/data/food/odd", tg_test_shared_dir());
    read_manifest();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
