#include "cli/confusion.h"

#include <stdlib.h>
#include <string.h>

enum { SHOWN_CLASSES = 40, SHOWN_PAIRS = 5, NAME_WIDTH_MAX = 40 };

typedef struct class_score {
    size_t k;
    uint64_t photos, right;
} class_score;

static double share(const class_score *s)
{
    return (double)s->right / (double)s->photos;
}

/* Worst first; equal ones in class order. */
static int compare_scores(const void *a, const void *b)
{
    const class_score *x = a, *y = b;
    double difference = share(x) - share(y);
    if (difference != 0)
        return difference < 0 ? -1 : 1;
    return x->k < y->k ? -1 : 1;
}

static size_t collect_scores(const uint64_t *counts, size_t K, class_score *out)
{
    size_t n = 0;
    for (size_t k = 0; k < K; k++) {
        class_score s = {.k = k, .right = counts[k * K + k]};
        for (size_t other = 0; other < K; other++)
            s.photos += counts[k * K + other];
        if (s.photos)
            out[n++] = s;
    }
    return n;
}

static int name_width(char *const *names, const class_score *scores, size_t count)
{
    size_t width = 5;
    for (size_t i = 0; i < count; i++) {
        size_t n = strlen(names[scores[i].k]);
        width = n > width ? n : width;
    }
    return (int)(width < NAME_WIDTH_MAX ? width : NAME_WIDTH_MAX);
}

static void append_name(const char *name, int width, tg_text *out)
{
    size_t from = out->length;
    tg_text_append_visible(out, name, "");
    while (!out->failed && out->length - from < (size_t)width)
        tg_text_append_char(out, ' ');
}

static void append_classes(char *const *names, const class_score *scores, size_t count,
                           tg_text *out)
{
    int width = name_width(names, scores, count);
    tg_text_append_format(out, "\n  %-*s  photos    right\n", width, "class");
    for (size_t i = 0; i < count; i++) {
        tg_text_append_string(out, "  ");
        append_name(names[scores[i].k], width, out);
        tg_text_append_format(out, "  %6llu  %5.1f %%\n", (unsigned long long)scores[i].photos,
                              100 * share(&scores[i]));
    }
}

/* Whether (row, column) at index a is confused more often than at b; equal ones in class order. */
static int ranks_before(const uint64_t *counts, size_t a, size_t b)
{
    return counts[a] > counts[b] || (counts[a] == counts[b] && a < b);
}

static size_t worst_pairs(const uint64_t *counts, size_t K, size_t out[SHOWN_PAIRS])
{
    size_t kept = 0;
    for (size_t at = 0; at < K * K; at++) {
        if (at / K == at % K || counts[at] == 0)
            continue;
        if (kept == SHOWN_PAIRS && !ranks_before(counts, at, out[kept - 1]))
            continue;
        size_t place = kept < SHOWN_PAIRS ? kept++ : kept - 1;
        for (; place > 0 && ranks_before(counts, at, out[place - 1]); place--)
            out[place] = out[place - 1];
        out[place] = at;
    }
    return kept;
}

static void append_pairs(const uint64_t *counts, char *const *names, size_t K, tg_text *out)
{
    size_t pairs[SHOWN_PAIRS], count = worst_pairs(counts, K, pairs);
    if (count)
        tg_text_append_string(out, "\n  most often confused\n");
    for (size_t i = 0; i < count; i++) {
        tg_text_append_format(out, "  %6llu  ", (unsigned long long)counts[pairs[i]]);
        append_name(names[pairs[i] / K], 0, out);
        tg_text_append_string(out, " taken for ");
        append_name(names[pairs[i] % K], 0, out);
        tg_text_append_char(out, '\n');
    }
}

void tg_confusion_text(const uint64_t *counts, char *const *names, size_t K, tg_text *out)
{
    class_score *scores = calloc(K ? K : 1, sizeof *scores);
    if (!scores) {
        out->failed = true;
        return;
    }
    size_t count = collect_scores(counts, K, scores);
    if (count > SHOWN_CLASSES) {
        qsort(scores, count, sizeof *scores, compare_scores);
        tg_text_append_format(out, "\n  the %d classes of %zu that are worst:", SHOWN_CLASSES / 2,
                              count);
        count = SHOWN_CLASSES / 2;
    }
    append_classes(names, scores, count, out);
    append_pairs(counts, names, K, out);
    free(scores);
}
