#include "base/hash.h"

#include <string.h>

enum { LANES = 8, BLOCK = LANES * 8 };

static uint64_t turn(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

/* One to one in `word` for any `lane`, and in `lane` for any `word`. */
static uint64_t stir(uint64_t lane, uint64_t word)
{
    return turn(lane ^ word, 29) * UINT64_C(0x9e3779b97f4a7c15);
}

uint64_t tg_hash_large(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *p = data;
    uint64_t lanes[LANES], words[LANES];
    size_t at = 0;
    for (int i = 0; i < LANES; i++)
        lanes[i] = hash + (uint64_t)i;
    for (; bytes - at >= BLOCK; at += BLOCK) {
        memcpy(words, p + at, BLOCK);
        for (int i = 0; i < LANES; i++)
            lanes[i] = stir(lanes[i], words[i]);
    }
    hash = tg_hash(hash, &bytes, sizeof bytes);
    hash = tg_hash(hash, lanes, sizeof lanes);
    return tg_hash(hash, p + at, bytes - at);
}
