/* Ten thousand damaged copies of small files of each format: every one is decoded or refused, none
 * crashes, prints, leaves the process, or makes memory grow. */
#include "support/check.h"

#include "base/rng.h"
#include "image/decode.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* The address sanitizer keeps up to 256 MiB of freed blocks; it finds leaks itself. */
#if defined(__SANITIZE_ADDRESS__)
enum { GROWTH_MIB = 1024 };
#else
enum { GROWTH_MIB = 64 };
#endif
enum { MAX_BYTES = 1 << 16, MUTATIONS = 10000 };

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

/* Some bytes changed, or the end cut off, or a piece copied over another. */
static size_t damage(tg_rng *rng, uint8_t *bytes, size_t n)
{
    uint32_t kind = tg_rng_below(rng, 4);
    size_t at = tg_rng_below(rng, (uint32_t)n);
    if (kind == 0)
        return at;
    if (kind == 1) {
        size_t from = tg_rng_below(rng, (uint32_t)n);
        size_t room = n - (at > from ? at : from);
        memmove(bytes + at, bytes + from, room < 32 ? room : 32);
        return n;
    }
    for (uint32_t i = tg_rng_below(rng, 6) + 1; i > 0; i--)
        bytes[tg_rng_below(rng, (uint32_t)n)] = (uint8_t)tg_rng_u32(rng);
    return n;
}

static long peak_mib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss / 1024;
}

/* Standard error goes to a file between these two; fails if anything arrived there. */
static int hide_standard_error(void)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/stderr", tg_test_temp_dir());
    int kept = dup(STDERR_FILENO), file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(kept >= 0 && file >= 0);
    dup2(file, STDERR_FILENO);
    close(file);
    return kept;
}

static void show_standard_error(int kept)
{
    off_t printed = lseek(STDERR_FILENO, 0, SEEK_END);
    dup2(kept, STDERR_FILENO);
    close(kept);
    assert_int_equal(printed, 0);
}

static void damage_files(const char *const *files, size_t count, int mutations)
{
    static uint8_t whole[MAX_BYTES], broken[MAX_BYTES];
    tg_image_scratch scratch = {0};
    tg_image image = {0};
    tg_image_box box;
    tg_decode_options options = tg_decode_options_default();
    options.max_pixels = 1 << 16; /* a damaged size may be anything: keep the work small */
    tg_rng rng = tg_rng_init(1, 0, 0, TG_RNG_TEST);
    int decoded = 0, kept = hide_standard_error();
    long before_mib = peak_mib();
    for (size_t f = 0; f < count; f++) {
        size_t n = read_golden(files[f], whole);
        for (int i = 0; i < mutations / (int)count; i++) {
            memcpy(broken, whole, n);
            size_t m = damage(&rng, broken, n);
            tg_status status = tg_image_decode(broken, m, &options, &scratch, &image, NULL);
            assert_true(status == TG_OK || status == TG_ERROR_INPUT);
            decoded += status == TG_OK;
            status = tg_image_decode_region(broken, m, &options, (tg_image_rect){5, 3, 9, 8}, 2, 2,
                                            1, &scratch, &image, &box, NULL);
            assert_true(status == TG_OK || status == TG_ERROR_INPUT || status == TG_ERROR_USAGE);
        }
    }
    show_standard_error(kept);
    assert_true(decoded > 0);
    assert_true(peak_mib() - before_mib < GROWTH_MIB);
    tg_image_done(&image);
    tg_image_scratch_done(&scratch);
}

static void damaged_jpeg(void **state)
{
    (void)state;
    static const char *const files[] = {"s420.jpg", "progressive.jpg", "turn6.jpg", "restart.jpg",
                                        "ycck_marker.jpg"};
    damage_files(files, 5, MUTATIONS);
}

static void damaged_png(void **state)
{
    (void)state;
    static const char *const files[] = {"rgba8.png", "interlaced.png", "palette4_clear.png",
                                        "turned.png"};
    damage_files(files, 4, MUTATIONS);
}

static void damaged_webp(void **state)
{
    (void)state;
    static const char *const files[] = {"lossy.webp", "alpha.webp", "moving.webp", "turned.webp"};
    damage_files(files, 4, MUTATIONS);
}

static void damaged_heif(void **state)
{
    (void)state;
    static const char *const files[] = {"still.heic", "turned.avif"};
    damage_files(files, 2, MUTATIONS / 20);
}

/* A grid of 14441 x 27759 pixels behind a header of 64 x 48: refused before memory is taken. */
static void heif_grid_larger_than_its_header(void **state)
{
    (void)state;
    char path[4096 + 128];
    uint8_t bytes[MAX_BYTES];
    tg_image image = {0};
    tg_image_scratch scratch = {0};
    const tg_decode_options options = tg_decode_options_default();
    snprintf(path, sizeof path, "%s/tests/regress/image/heif_grid_larger_than_its_header",
             tg_test_source_dir());
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    long before = peak_mib();
    assert_int_equal(tg_image_decode(bytes, n, &options, &scratch, &image, NULL), TG_ERROR_INPUT);
    assert_true(peak_mib() - before < GROWTH_MIB);
    tg_image_scratch_done(&scratch);
    tg_image_done(&image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged_jpeg), cmocka_unit_test(damaged_png),
        cmocka_unit_test(damaged_webp), cmocka_unit_test(damaged_heif),
        cmocka_unit_test(heif_grid_larger_than_its_header)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
