/* The fingerprint of many bytes: tells apart what differs anywhere, and stays what it is. */
#include "support/check.h"

#include "base/hash.h"

#include <string.h>

enum { BYTES = 64 * 5 + 13 };

static void every_bit_counts(void **state)
{
    (void)state;
    unsigned char data[BYTES];
    for (size_t i = 0; i < BYTES; i++)
        data[i] = (unsigned char)(i * 37);
    const uint64_t whole = tg_hash_large(TG_HASH_START, data, BYTES);
    assert_true(whole == tg_hash_large(TG_HASH_START, data, BYTES));
    assert_true(whole != tg_hash_large(TG_HASH_START + 1, data, BYTES));
    for (size_t i = 0; i < BYTES * 8; i++) {
        data[i / 8] ^= (unsigned char)(1 << i % 8);
        assert_true(tg_hash_large(TG_HASH_START, data, BYTES) != whole);
        data[i / 8] ^= (unsigned char)(1 << i % 8);
    }
}

static void order_and_length_count(void **state)
{
    (void)state;
    uint64_t words[32], swapped[32], seen[33];
    unsigned char zeros[200] = {0};
    for (uint64_t i = 0; i < 32; i++)
        words[i] = i + 1;
    const uint64_t whole = tg_hash_large(TG_HASH_START, words, sizeof words);
    for (size_t a = 0; a < 32; a++)
        for (size_t b = a + 1; b < 32; b++) {
            memcpy(swapped, words, sizeof words);
            swapped[a] = words[b];
            swapped[b] = words[a];
            assert_true(tg_hash_large(TG_HASH_START, swapped, sizeof words) != whole);
        }
    for (size_t n = 0; n < 33; n++) { /* of nothing but zeros */
        seen[n] = tg_hash_large(TG_HASH_START, zeros, 6 * n);
        for (size_t m = 0; m < n; m++)
            assert_true(seen[m] != seen[n]);
    }
}

/* Ranks compare what each has made by itself: another build must not get another number. */
static void stays_what_it_is(void **state)
{
    (void)state;
    unsigned char data[BYTES + 1];
    for (size_t i = 0; i <= BYTES; i++)
        data[i] = (unsigned char)(i * 37);
    const uint64_t aligned = tg_hash_large(TG_HASH_START, data, BYTES);
    memmove(data + 1, data, BYTES);
    assert_true(tg_hash_large(TG_HASH_START, data + 1, BYTES) == aligned);
    assert_int_equal(aligned, UINT64_C(0xb7e3d4baab01f02a));
    assert_int_equal(tg_hash(TG_HASH_START, "foobar", 6), UINT64_C(0x85944171f73967e8));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_bit_counts),
        cmocka_unit_test(order_and_length_count),
        cmocka_unit_test(stays_what_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
