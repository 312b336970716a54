/* golden.h - reading tests/golden/model: what PyTorch computes
 * (scripts/golden/make_model_golden.py). Anything missing or of another size fails the test that
 * asks. */
#ifndef TG_TESTS_SUPPORT_GOLDEN_H
#define TG_TESTS_SUPPORT_GOLDEN_H

#include "base/arena.h"
#include "base/json.h"
#include "ckpt/safetensors.h"
#include "model/config.h"

/* Limits of docs/NUMERICS.md, relative to the largest magnitude of a tensor. */
#define TG_GOLDEN_FORWARD 5e-6
#define TG_GOLDEN_BACKWARD 1e-5
#define TG_GOLDEN_BF16_FORWARD 2.5e-2
#define TG_GOLDEN_BF16_BACKWARD 6e-2

/* index.json; the caller ends it with tg_json_done. */
void tg_golden_index(tg_json *out);
/* A file of the folder; the caller closes it. */
void tg_golden_open(const char *file, tg_safetensors *out);
/* The path of a file or folder in it, in a static buffer of the calling thread. */
const char *tg_golden_path(const char *name);

/* The model that a "config" object describes. */
void tg_golden_config(const tg_json_node *object, tg_vit_config *out);
/* A string and a number that must be there. */
const char *tg_golden_string(const tg_json_node *object, const char *key);
double tg_golden_number(const tg_json_node *object, const char *key);

/* A tensor of `count` elements as floats in the arena. */
float *tg_golden_tensor(const tg_safetensors *file, const char *name, size_t count,
                        tg_arena *arena);
bool tg_golden_has(const tg_safetensors *file, const char *name);
/* Every parameter of the table from PREFIX/NAME, laid out flat with zero padding. */
float *tg_golden_params(const tg_safetensors *file, const char *prefix, const tg_param_table *table,
                        tg_arena *arena);

#endif
