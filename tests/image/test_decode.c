/* Refusals with a reason, limits before memory, damage judged by the missing share, crops equal to
 * whole decoding under every orientation, and the bound of reduced decoding. */
#include "support/check.h"

#include "base/rng.h"
#include "image/decode.h"
#include "image/exif.h"
#include "image/orient.h"
#include "image/resize.h"
#include "image/transform.h"
#include "image/write_jpeg.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BYTES = 1 << 20 };

static tg_image_scratch scratch;

static size_t read_golden(const char *name, uint8_t out[MAX_BYTES])
{
    char path[4096 + 128];
    snprintf(path, sizeof path, "%s/tests/golden/image/%s", tg_test_source_dir(), name);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t n = fread(out, 1, MAX_BYTES, f);
    fclose(f);
    return n;
}

/* A photo-like picture: soft shapes of all sizes, edges, and noise of a few levels. */
static void draw(tg_image *image, int width, int height)
{
    tg_rng rng = tg_rng_init(5, 0, 0, TG_RNG_TEST);
    assert_ok(tg_image_reserve(image, width, height));
    uint8_t *p = image->rgb;
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++, p += 3)
            for (int c = 0; c < 3; c++) {
                double soft = sin(x * 0.011 * (c + 1)) + cos(y * 0.017 + c) + sin((x + y) * 0.05);
                double edge = (x / 160 + y / 120) % 2 ? 40 : 0;
                double v = 110 + 25 * soft + edge + tg_rng_below(&rng, 7);
                p[c] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
            }
}

static void refuse(const void *bytes, size_t n, const char *part)
{
    tg_image image = {0};
    assert_error(tg_image_decode(bytes, n, NULL, &scratch, &image, NULL), TG_ERROR_INPUT, part);
    tg_image_done(&image);
}

static void others_are_named(void **state)
{
    (void)state;
    refuse("", 0, "empty");
    refuse("GIF89a......", 12, "GIF");
    refuse("BM......", 8, "BMP");
    refuse("II*\0........", 12, "TIFF");
    refuse("hello, world", 12, "text");
    refuse("<!DOCTYPE html><p>404", 21, "HTML");
    refuse("\0\0\0\0\0\0\0\0\0\0\0\0", 12, "zero");
    refuse("\xFF\xD8", 2, "JPEG");
    refuse("RIFF....WAVE", 12, "RIFF");
}

/* The header's size is refused before memory for it is taken. */
static void limits_come_first(void **state)
{
    (void)state;
    static uint8_t bytes[MAX_BYTES];
    tg_image image = {0};
    tg_image_scratch fresh = {0};
    size_t n = read_golden("rgb8.png", bytes);
    memcpy(bytes + 16, "\0\1\0\0\0\1\0\0", 8); /* 65536 x 65536; the checksum is not reached */
    assert_true(tg_image_decode(bytes, n, NULL, &fresh, &image, NULL) == TG_ERROR_INPUT);
    n = read_golden("s420.jpg", bytes);
    tg_decode_options options = tg_decode_options_default();
    options.max_pixels = 45 * 29 - 1;
    assert_error(tg_image_decode(bytes, n, &options, &fresh, &image, NULL), TG_ERROR_INPUT,
                 "limit");
    assert_true(image.capacity_bytes == 0 && tg_image_scratch_bytes(&fresh) == 0);
    options.max_pixels = 45 * 29;
    assert_ok(tg_image_decode(bytes, n, &options, &fresh, &image, NULL));
    options.max_bytes = n - 1;
    assert_error(tg_image_decode(bytes, n, &options, &fresh, &image, NULL), TG_ERROR_INPUT,
                 "bytes");
    tg_image_done(&image);
    tg_image_scratch_done(&fresh);
}

static void probe_reads_headers(void **state)
{
    (void)state;
    static uint8_t bytes[MAX_BYTES];
    tg_decode_report report;
    size_t n = read_golden("turn6.jpg", bytes);
    assert_ok(tg_image_probe(bytes, n, NULL, &report));
    assert_int_equal(report.format, TG_IMAGE_JPEG);
    assert_int_equal(report.orientation, 6);
    assert_true(report.orientation_applied);
    assert_int_equal(report.width_px, 29);
    assert_int_equal(report.height_px, 45);
    tg_decode_options options = tg_decode_options_default();
    options.exif_orientation = false;
    assert_ok(tg_image_probe(bytes, n, &options, &report));
    assert_int_equal(report.width_px, 45);
    assert_false(report.orientation_applied);
    n = read_golden("rgba8.png", bytes);
    assert_ok(tg_image_probe(bytes, n, NULL, &report));
    assert_true(report.has_alpha && report.format == TG_IMAGE_PNG && report.channels == 4);
    n = read_golden("moving.webp", bytes);
    assert_ok(tg_image_probe(bytes, n, NULL, &report));
    assert_true(report.width_px == 30 && report.height_px == 20);
    n = read_golden("turned.avif", bytes);
    assert_ok(tg_image_probe(bytes, n, NULL, &report));
    assert_true(report.width_px == 48 && report.height_px == 64 && report.orientation == 1);
}

/* Cutting a baseline JPEG of 32 bands after each whole percent of its bytes: never a crash, broken
 * until at most a tenth is missing, a warning afterwards, and the strict rule refuses both. */
static void cut_files_are_judged(void **state)
{
    (void)state;
    tg_image image = {0}, whole = {0};
    uint8_t *bytes;
    size_t n;
    draw(&whole, 256, 512);
    assert_ok(tg_image_write_jpeg(&whole, 85, TG_JPEG_420, &bytes, &n));
    tg_decode_options strict = tg_decode_options_default();
    strict.strict = true;
    int accepted = 0;
    for (int percent = 1; percent < 100; percent++) {
        tg_decode_report report;
        size_t kept = n * (size_t)percent / 100;
        tg_status status = tg_image_decode(bytes, kept, NULL, &scratch, &image, &report);
        assert_true(status == TG_OK || status == TG_ERROR_INPUT);
        if (status == TG_OK) {
            accepted++;
            assert_true(report.missing_share <= TG_IMAGE_MISSING_SHARE);
            assert_true(report.warning_count > 0 && report.warning[0]);
            assert_true(percent > 85);
        }
        assert_error(tg_image_decode(bytes, kept, &strict, &scratch, &image, NULL), TG_ERROR_INPUT,
                     NULL);
    }
    assert_true(accepted >= 5);
    tg_decode_report report;
    assert_ok(tg_image_decode(bytes, n - 2, NULL, &scratch, &image, &report)); /* no end marker */
    assert_true(report.warning_count > 0 && report.missing_share == 0);
    assert_ok(tg_image_decode(bytes, n, &strict, &scratch, &image, NULL));
    free(bytes);
    tg_image_done(&image);
    tg_image_done(&whole);
}

/* A byte of junk before the end marker is accepted, and 64 of them with a warning. */
static void junk_is_a_warning(void **state)
{
    (void)state;
    static uint8_t bytes[MAX_BYTES];
    tg_image image = {0};
    tg_decode_report report;
    size_t n = read_golden("s444.jpg", bytes);
    memcpy(bytes + n - 2, "\x7F\xFF\xD9", 3);
    assert_ok(tg_image_decode(bytes, n + 1, NULL, &scratch, &image, &report));
    memset(bytes + n - 2, 0x7F, 64);
    memcpy(bytes + n + 62, "\xFF\xD9", 2);
    assert_ok(tg_image_decode(bytes, n + 64, NULL, &scratch, &image, &report));
    assert_true(report.warning_count > 0);
    tg_image_done(&image);
}

static void png_damage(void **state)
{
    (void)state;
    static uint8_t bytes[MAX_BYTES];
    tg_image image = {0};
    tg_decode_report report;
    size_t n = read_golden("want_055.png", bytes);
    assert_ok(tg_image_decode(bytes, n - 12, NULL, &scratch, &image, &report));
    assert_true(report.warning_count == 1);
    refuse(bytes, n / 2, "PNG");
    bytes[n - 16] ^= 1; /* the checksum of the pixels */
    refuse(bytes, n, "PNG");
    tg_image_done(&image);
}

/* Small pieces of EXIF as cameras and liars write them. */
static void exif_tags(void **state)
{
    (void)state;
    static const uint8_t little[] = "II*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0\6\0\0\0";
    static const uint8_t big[] = "MM\0*\0\0\0\x08\0\1\1\x12\0\3\0\0\0\1\0\x08\0\0";
    static const uint8_t nine[] = "MM\0*\0\0\0\x08\0\1\1\x12\0\3\0\0\0\1\0\x09\0\0";
    static const uint8_t far[] = "II*\0\xF8\xFF\xFF\xFF\1\0\x12\1\3\0\1\0\0\0\6\0\0\0";
    assert_int_equal(tg_exif_tiff_orientation(little, 22), 6);
    assert_int_equal(tg_exif_tiff_orientation(big, 22), 8);
    assert_int_equal(tg_exif_tiff_orientation(nine, 22), 1);
    assert_int_equal(tg_exif_tiff_orientation(far, 22), 1);
    for (size_t n = 0; n < 22; n++)
        assert_int_equal(tg_exif_tiff_orientation(little, n), 1);
}

static void crop_equals_whole(const uint8_t *bytes, size_t n, tg_image_rect crop)
{
    tg_image whole = {0}, part = {0};
    tg_image_box box;
    tg_decode_report report;
    assert_ok(tg_image_decode(bytes, n, NULL, &scratch, &whole, NULL));
    assert_ok(
        tg_image_decode_region(bytes, n, NULL, crop, 8, 8, 0, &scratch, &part, &box, &report));
    assert_true(part.width_px == crop.width_px && part.height_px == crop.height_px);
    assert_true(box.left_px == 0 && box.top_px == 0 && box.right_px == crop.width_px &&
                box.bottom_px == crop.height_px);
    assert_true(report.width_px == whole.width_px && report.height_px == whole.height_px);
    for (int y = 0; y < crop.height_px; y++) {
        size_t at = (size_t)(crop.top_px + y) * (size_t)whole.width_px + (size_t)crop.left_px;
        assert_memory_equal(part.rgb + (size_t)y * (size_t)crop.width_px * 3, whole.rgb + at * 3,
                            (size_t)crop.width_px * 3);
    }
    tg_image_done(&whole);
    tg_image_done(&part);
}

static void crops_of_all_files(void **state)
{
    (void)state;
    static const char *const files[] = {
        "turn1.jpg",  "turn2.jpg", "turn3.jpg",   "turn4.jpg",       "turn5.jpg",
        "turn6.jpg",  "turn7.jpg", "turn8.jpg",   "s444.jpg",        "s422.jpg",
        "s420.jpg",   "gray.jpg",  "restart.jpg", "progressive.jpg", "cmyk.jpg",
        "turned.png", "rgba8.png", "alpha.webp",  "turned.webp",     "turned.avif"};
    static uint8_t bytes[MAX_BYTES];
    tg_rng rng = tg_rng_init(9, 0, 0, TG_RNG_TEST);
    for (size_t f = 0; f < sizeof files / sizeof files[0]; f++) {
        tg_decode_report report;
        size_t n = read_golden(files[f], bytes);
        assert_ok(tg_image_probe(bytes, n, NULL, &report));
        for (int i = 0; i < 12; i++) {
            int w = 1 + (int)tg_rng_below(&rng, (uint32_t)report.width_px);
            int h = 1 + (int)tg_rng_below(&rng, (uint32_t)report.height_px);
            int x = (int)tg_rng_below(&rng, (uint32_t)(report.width_px - w + 1));
            int y = (int)tg_rng_below(&rng, (uint32_t)(report.height_px - h + 1));
            crop_equals_whole(bytes, n, (tg_image_rect){x, y, w, h});
        }
    }
}

/* Larger than a block row, so that skipping, narrowing and chroma interpolation all happen. */
static void crops_of_a_large_file(void **state)
{
    (void)state;
    static const tg_jpeg_sampling samplings[] = {TG_JPEG_420, TG_JPEG_422, TG_JPEG_444};
    tg_rng rng = tg_rng_init(10, 0, 0, TG_RNG_TEST);
    tg_image picture = {0};
    draw(&picture, 331, 257);
    for (int s = 0; s < 3; s++) {
        uint8_t *bytes;
        size_t n;
        assert_ok(tg_image_write_jpeg(&picture, 88, samplings[s], &bytes, &n));
        for (int i = 0; i < 25; i++) {
            int w = 1 + (int)tg_rng_below(&rng, 331), h = 1 + (int)tg_rng_below(&rng, 257);
            int x = (int)tg_rng_below(&rng, (uint32_t)(331 - w + 1));
            int y = (int)tg_rng_below(&rng, (uint32_t)(257 - h + 1));
            crop_equals_whole(bytes, n, (tg_image_rect){x, y, w, h});
        }
        free(bytes);
    }
    tg_image_done(&picture);
}

static void resize_to(const tg_image *source, tg_image_rect crop, tg_image_box box, int side,
                      tg_image *out)
{
    tg_resize_spec spec = {.width_px = side, .height_px = side, .crop = crop, .box = box};
    assert_ok(tg_image_resize(source, &spec, &scratch, out));
}

static void check_reduced_bound(const uint8_t *bytes, size_t n, tg_image_rect crop, int side,
                                int *out_denominator)
{
    tg_image whole = {0}, part = {0}, want = {0}, got = {0};
    tg_image_box box;
    tg_decode_report report;
    assert_ok(tg_image_decode(bytes, n, NULL, &scratch, &whole, NULL));
    assert_ok(tg_image_decode_region(bytes, n, NULL, crop, side, side, TG_IMAGE_REDUCE_RESERVE,
                                     &scratch, &part, &box, &report));
    resize_to(&whole, crop, (tg_image_box){0}, side, &want);
    resize_to(&part, (tg_image_rect){0}, box, side, &got);
    int worst = 0;
    double sum = 0;
    size_t samples = (size_t)side * (size_t)side * 3;
    for (size_t i = 0; i < samples; i++) {
        int d = abs(want.rgb[i] - got.rgb[i]);
        worst = d > worst ? d : worst;
        sum += d;
    }
    if (sum / (double)samples > 1 || worst > 32)
        print_error("1/%d: mean %.3f, worst %d\n", report.scale_denominator, sum / (double)samples,
                    worst);
    assert_true(sum / (double)samples <= 1 && worst <= 32);
    *out_denominator = report.scale_denominator;
    tg_image_done(&whole);
    tg_image_done(&part);
    tg_image_done(&want);
    tg_image_done(&got);
}

static void reduced_decoding_stays_inside_its_bound(void **state)
{
    (void)state;
    tg_image picture = {0};
    uint8_t *bytes;
    size_t n;
    int denominator;
    draw(&picture, 1203, 905);
    assert_ok(tg_image_write_jpeg(&picture, 90, TG_JPEG_420, &bytes, &n));
    static const struct {
        tg_image_rect crop;
        int side, denominator;
    } cases[] = {{{0, 0, 1203, 905}, 224, 2},
                 {{101, 53, 1000, 801}, 64, 4},
                 {{7, 3, 1101, 897}, 50, 8},
                 {{33, 17, 450, 448}, 224, 1},
                 {{300, 201, 899, 600}, 112, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        check_reduced_bound(bytes, n, cases[i].crop, cases[i].side, &denominator);
        assert_int_equal(denominator, cases[i].denominator);
    }
    free(bytes);
    tg_image_done(&picture);
}

static void orientation_maps_agree(void **state)
{
    (void)state;
    uint8_t pixels[5 * 7 * 3];
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)i;
    tg_image stored = tg_image_view(pixels, 7, 5), upright = {0};
    for (int orientation = 1; orientation <= 8; orientation++) {
        assert_ok(tg_image_orient(&stored, orientation, &upright));
        for (int y = 0; y < upright.height_px; y++)
            for (int x = 0; x < upright.width_px; x++) {
                tg_image_rect r = tg_rect_to_stored((tg_image_rect){x, y, 1, 1}, orientation, 7, 5);
                assert_memory_equal(upright.rgb + (y * upright.width_px + x) * 3,
                                    pixels + (r.top_px * 7 + r.left_px) * 3, 3);
                tg_image_box b = tg_box_to_upright(
                    (tg_image_box){r.left_px, r.top_px, r.left_px + 1, r.top_px + 1}, orientation,
                    7, 5);
                assert_true(b.left_px == x && b.top_px == y && b.right_px == x + 1 &&
                            b.bottom_px == y + 1);
            }
    }
    tg_image_done(&upright);
}

static int free_scratch(void **state)
{
    (void)state;
    tg_image_scratch_done(&scratch);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(others_are_named),
        cmocka_unit_test(limits_come_first),
        cmocka_unit_test(probe_reads_headers),
        cmocka_unit_test(cut_files_are_judged),
        cmocka_unit_test(junk_is_a_warning),
        cmocka_unit_test(png_damage),
        cmocka_unit_test(exif_tags),
        cmocka_unit_test(crops_of_all_files),
        cmocka_unit_test(crops_of_a_large_file),
        cmocka_unit_test(reduced_decoding_stays_inside_its_bound),
        cmocka_unit_test(orientation_maps_agree),
    };
    return cmocka_run_group_tests(tests, NULL, free_scratch);
}
