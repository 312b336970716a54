/* tagine.h - libtagine's public interface: ask a trained model what is on a photo.
 *
 *   tagine_predictor *predictor;
 *   tagine_prediction best[3];
 *   size_t count;
 *   if (tagine_predictor_open("model", NULL, &predictor) != TAGINE_OK ||
 *       tagine_predict_file(predictor, "photo.jpg", 3, best, &count) != TAGINE_OK)
 *       fprintf(stderr, "%s\n", tagine_error());
 *   ...
 *   tagine_predictor_close(predictor);
 *
 * Errors   Every call that can fail returns a tagine_status; outputs are written only on TAGINE_OK.
 *          tagine_error() has one line that says what, where and why. Nothing is ever printed, and
 *          the process is never ended.
 *          A NULL argument is TAGINE_USAGE unless it is said to be allowed.
 * Memory   A predictor owns everything it hands out; names live until it is closed.
 * Threads  One thread at a time per predictor; several predictors may work at once. tagine_error()
 *          belongs to the calling thread. Every call leaves its thread's floating-point environment
 *          (rounding, exception masks and flags, subnormals) and its OpenMP settings (size of the
 *          team, dynamic, nesting) as it found them; the team's other threads compute with
 *          subnormals taken for zero from then on.
 * fork     Threads are not copied by fork: where a predictor of two threads or more was opened before,
 *          the same thread of the new process can only close it, and open none of its own; both are
 *          TAGINE_USAGE. Fork first, then open. The same holds, undetected, for OpenMP of your own.
 */
#ifndef TAGINE_TAGINE_H
#define TAGINE_TAGINE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tagine_status {
    TAGINE_OK = 0,
    TAGINE_FAILED = 1,
    TAGINE_USAGE = 2,  /* the call asked for something impossible */
    TAGINE_INPUT = 3,  /* the model or the photo is bad */
    TAGINE_MACHINE = 4 /* memory, disk, operating system */
} tagine_status;

typedef struct tagine_predictor tagine_predictor;

/* Zeroed: the defaults. */
typedef struct tagine_options {
    int threads;  /* compute threads; 0: as many as this process may use cores */
    int bfloat16; /* nonzero: compute in bfloat16 where the machine has it; faster, less exact */
} tagine_options;

typedef struct tagine_prediction {
    size_t class_index;
    const char *class_name; /* the index as text when the model has no names */
    float score;            /* softmax: 0 to 1, summing to 1 over all classes */
} tagine_prediction;

/* `model`: a model folder (model.safetensors and config.json), or the .safetensors file in it.
 * `options` may be NULL. */
tagine_status tagine_predictor_open(const char *model, const tagine_options *options,
                                    tagine_predictor **out);
/* Accepts NULL. */
void tagine_predictor_close(tagine_predictor *predictor);

/* Classes of the model, 0 for NULL, and the name of one; NULL when class_index is too large. */
size_t tagine_class_count(const tagine_predictor *predictor);
const char *tagine_class_name(const tagine_predictor *predictor, size_t class_index);

/* The `top` best classes of a photo (JPEG, PNG, WebP, HEIF by content), best first; *out_count is
 * fewer when the model has fewer classes. `out` has room for `top`, and may be NULL when that is 0. */
tagine_status tagine_predict_file(tagine_predictor *predictor, const char *path, size_t top,
                                  tagine_prediction *out, size_t *out_count);
tagine_status tagine_predict_bytes(tagine_predictor *predictor, const void *bytes,
                                   size_t byte_count, size_t top, tagine_prediction *out,
                                   size_t *out_count);

/* What went wrong last on this thread; "" when nothing did. Valid until the next call. */
const char *tagine_error(void);

#ifdef __cplusplus
}
#endif

#endif
