/* Hostile and damaged files are refused with tensor and cause; every type reads exactly; what we
 * write reads back, whatever the length of the header. */
#include "support/check.h"

#include "ckpt/safetensors.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char path[512];

static void write_bytes(const void *bytes, size_t length)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, length, f), length);
    assert_int_equal(fclose(f), 0);
}

/* Length prefix, header, then `data` bytes of zeros. */
static void write_file(uint64_t claimed, const char *header, size_t data)
{
    size_t n = strlen(header);
    char *bytes = calloc(1, 8 + n + data);
    assert_non_null(bytes);
    memcpy(bytes, &claimed, 8);
    memcpy(bytes + 8, header, n);
    write_bytes(bytes, 8 + n + data);
    free(bytes);
}

static void refuses(const char *header, size_t data, const char *part)
{
    tg_safetensors file = {.fd = -1};
    write_file(strlen(header), header, data);
    assert_error(tg_safetensors_open(path, &file), TG_ERROR_INPUT, part);
    assert_non_null(strstr(tg_error_message(), path));
    assert_null(file.path); /* written on success only */
}

static void lengths_are_not_believed(void **state)
{
    (void)state;
    tg_safetensors file;
    static const char text[64] = "{}";
    for (size_t n = 0; n < 8; n++) {
        write_bytes("\2\0\0\0\0\0\0\0{}", n);
        assert_error(tg_safetensors_open(path, &file), TG_ERROR_INPUT, "not a safetensors file");
    }
    const uint64_t lengths[] = {0,          3,          64 - 7,         (uint64_t)1 << 31,
                                100000001u, UINT64_MAX, UINT64_MAX - 7, (uint64_t)1 << 63};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        write_file(lengths[i], text, 0);
        assert_error(tg_safetensors_open(path, &file), TG_ERROR_INPUT, "safetensors");
    }
    write_bytes("\2\0\0\0\0\0\0\0{", 9);
    assert_error(tg_safetensors_open(path, &file), TG_ERROR_INPUT, "cut");
    assert_error(tg_safetensors_open("/nonexistent/x", &file), TG_ERROR_INPUT, "/nonexistent/x");
    assert_error(tg_safetensors_open("/dev/zero", &file), TG_ERROR_INPUT, "not a regular file");
}

#define TENSOR(name, dtype, shape, offsets)                                                        \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static void headers_are_not_believed(void **state)
{
    (void)state;
    refuses("[]", 0, "{");
    refuses("{\"a\":1}", 0, "a");
    refuses("{\"a\":", 0, "line");
    refuses("{" TENSOR("a", "F99", "[1]", "[0,4]") "}", 4, "dtype F99");
    refuses("{" TENSOR("a", "F32", "[32,8]", "[0,65536]") "}", 65536, "[32,8]");
    refuses("{" TENSOR("a", "F32", "[1000,1000]", "[0,4]") "}", 4, "a");
    refuses("{" TENSOR("a", "F32", "[1099511627776,1099511627776]", "[0,4]") "}", 4, "addresses");
    refuses("{" TENSOR("a", "F32", "[4611686018427387905]", "[0,4]") "}", 4, "a");
    refuses("{" TENSOR("a", "F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]") "}", 4, "9 dimensions");
    refuses("{" TENSOR("a", "F32", "[-1]", "[0,4]") "}", 4, "negative");
    refuses("{" TENSOR("a", "F32", "[1.5]", "[0,4]") "}", 4, "a");
    refuses("{" TENSOR("a", "F32", "[1]", "[0,8]") "}", 4, "not inside");
    refuses("{" TENSOR("a", "F32", "[1]", "[4,0]") "}", 4, "not inside");
    refuses("{" TENSOR("a", "F32", "[1]", "[-4,0]") "}", 4, "not inside");
    refuses("{" TENSOR("a", "F32", "[1]", "[0,4,8]") "}", 8, "pair");
    refuses("{" TENSOR("a", "F32", "[1]", "[9223372036854775807,9223372036854775807]") "}", 4,
            "not inside");
    refuses("{" TENSOR("a", "F32", "[1]", "[0,4]") "," TENSOR("a", "F32", "[1]", "[4,8]") "}", 8,
            "duplicate");
    refuses("{" TENSOR("a", "F32", "[2]", "[0,8]") "," TENSOR("b", "F32", "[2]", "[4,12]") "}", 12,
            "overlap");
    refuses("{" TENSOR("a", "F32", "[1]", "[0,4]") "," TENSOR("b", "F32", "[1]", "[8,12]") "}", 12,
            "hole");
    refuses("{" TENSOR("a", "F32", "[1]", "[0,4]") "}", 8, "end at byte 4");
    refuses("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"offsets\":[0,4]}}", 4, "data_offsets");
    refuses("{\"__metadata__\":{\"x\":1}}", 0, "x");
    refuses("{\"__metadata__\":3}", 0, "__metadata__");
    char deep[4000] = "{\"a\":";
    memset(deep + 5, '[', sizeof deep - 6);
    refuses(deep, 0, "deep");
}

static void every_type_reads_exactly(void **state)
{
    (void)state;
    const double f64[] = {1.0 / 3, 5e-324};
    const uint16_t f16[] = {0x3C00, 0x0001, 0xFC00}, bf16[] = {0x3F80, 0x0001, 0x7F80};
    const int64_t i64[] = {INT64_MAX};
    const int32_t i32[] = {-7};
    const int16_t i16[] = {INT16_MIN};
    const int8_t i8[] = {-128};
    const uint8_t u8[] = {255}, truth[] = {1};
    const float scalar = 42;
    const tg_safetensors_tensor tensors[] = {
        {"f64", TG_F64, 1, {2}, f64, false},     {"f16", TG_F16, 1, {3}, f16, false},
        {"bf16", TG_BF16, 1, {3}, bf16, false},  {"i64", TG_I64, 1, {1}, i64, false},
        {"i32", TG_I32, 1, {1}, i32, false},     {"i16", TG_I16, 1, {1}, i16, false},
        {"i8", TG_I8, 1, {1}, i8, false},        {"u8", TG_U8, 1, {1}, u8, false},
        {"bool", TG_BOOL, 1, {1}, truth, false}, {"empty", TG_F32, 2, {0, 5}, NULL, false},
        {"f32", TG_F32, 0, {0}, &scalar, false}, {"f8", TG_F8_E4M3, 1, {1}, u8, false}};
    const tg_safetensors_note note = {"format", "pt"};
    enum { COUNT = sizeof tensors / sizeof tensors[0] };
    const struct {
        const char *name;
        size_t n;
        float value[3];
    } want[] = {{"f64", 2, {(float)(1.0 / 3), 0}},
                {"f16", 3, {1, 0x1p-24f, -INFINITY}},
                {"bf16", 3, {1, 0x1p-133f, INFINITY}},
                {"i64", 1, {0x1p63f}},
                {"i32", 1, {-7}},
                {"i16", 1, {-32768}},
                {"i8", 1, {-128}},
                {"u8", 1, {255}},
                {"bool", 1, {1}},
                {"empty", 0, {0}},
                {"f32", 1, {42}}};
    tg_safetensors file;
    float got[3];
    assert_ok(tg_safetensors_write(path, tensors, COUNT, &note, 1));
    assert_ok(tg_safetensors_open(path, &file));
    assert_int_equal(file.count, COUNT);
    assert_int_equal(file.data_start % 8, 0);
    assert_string_equal(tg_safetensors_metadata(&file, "format"), "pt");
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        const tg_safetensors_entry *entry = tg_safetensors_find(&file, want[i].name);
        assert_non_null(entry);
        assert_int_equal(entry->count, want[i].n);
        assert_ok(tg_safetensors_read_f32(&file, entry, got));
        assert_memory_equal(got, want[i].value, want[i].n * sizeof got[0]);
    }
    assert_error(tg_safetensors_read_f32(&file, tg_safetensors_find(&file, "f8"), got),
                 TG_ERROR_INPUT, "f8");
    assert_null(tg_safetensors_find(&file, "absent"));
    tg_safetensors_close(&file);
}

static void rounds_while_writing(void **state)
{
    (void)state;
    enum { N = 40000 }; /* several chunks of the reader and of the writer */
    float *from = malloc(N * sizeof *from), *got = malloc(N * sizeof *got);
    assert_non_null(from);
    assert_non_null(got);
    for (int i = 0; i < N; i++)
        from[i] = (float)(i - N / 2) * 0.37f;
    const tg_safetensors_tensor tensors[] = {{"b", TG_BF16, 1, {N}, from, true},
                                             {"h", TG_F16, 1, {N}, from, true}};
    tg_safetensors file;
    assert_ok(tg_safetensors_write(path, tensors, 2, NULL, 0));
    assert_ok(tg_safetensors_open(path, &file));
    assert_ok(tg_safetensors_read_f32(&file, tg_safetensors_find(&file, "b"), got));
    for (int i = 0; i < N; i++)
        assert_true(got[i] == tg_f32_from_bf16(tg_bf16_from_f32(from[i])));
    assert_ok(tg_safetensors_read_f32(&file, tg_safetensors_find(&file, "h"), got));
    for (int i = 0; i < N; i++)
        assert_true(got[i] == tg_f32_from_f16(tg_f16_from_f32(from[i])));
    tg_safetensors_close(&file);
    const tg_safetensors_tensor twice[] = {tensors[0], tensors[0]};
    assert_error(tg_safetensors_write(path, twice, 2, NULL, 0), TG_ERROR_USAGE, "two tensors");
    free(got);
    free(from);
}

/* Header lengths around the sizes at which readers with a fixed first read go wrong. */
static void any_header_length_works(void **state)
{
    (void)state;
    const size_t ranges[][2] = {{4088, 4104}, {65528, 65544}, {99990, 100010}};
    char *text = malloc(100100);
    assert_non_null(text);
    for (size_t r = 0; r < 3; r++)
        for (size_t n = ranges[r][0]; n <= ranges[r][1]; n++) {
            const char *head = "{\"__metadata__\":{\"p\":\"";
            const char *tail = "\"}," TENSOR("a", "F32", "[1]", "[0,4]") "}";
            size_t pad = n - strlen(head) - strlen(tail);
            strcpy(text, head);
            memset(text + strlen(head), 'x', pad);
            strcpy(text + strlen(head) + pad, tail);
            tg_safetensors file;
            float value;
            write_file(n, text, 4);
            assert_ok(tg_safetensors_open(path, &file));
            assert_int_equal(strlen(tg_safetensors_metadata(&file, "p")), pad);
            assert_ok(tg_safetensors_read_f32(&file, &file.items[0], &value));
            tg_safetensors_close(&file);
        }
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lengths_are_not_believed), cmocka_unit_test(headers_are_not_believed),
        cmocka_unit_test(every_type_reads_exactly), cmocka_unit_test(rounds_while_writing),
        cmocka_unit_test(any_header_length_works),
    };
    snprintf(path, sizeof path, "%s/x.safetensors", tg_test_temp_dir());
    return cmocka_run_group_tests(tests, NULL, NULL);
}
