#include "ckpt/state_record.h"

#include "base/json.h"
#include "base/number.h"
#include "base/text.h"
#include "os/file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RECORD "state.json"

enum { MAX_RECORD_BYTES = 1 << 20, VERSION = 1 };

/* Always with a point or an exponent: "-0" would be read as a whole number and lose its sign. */
static void add_double(tg_text *text, double value)
{
    char number[TG_NUMBER_BYTES];
    tg_number_format_double(value, number);
    const char *quote = isfinite(value) ? "" : "\"";
    const char *tail = strpbrk(number, ".en") ? "" : ".0";
    tg_text_append_format(text, "%s%s%s%s", quote, number, tail, quote);
}

static void add_field(tg_text *text, const tg_state_field *field)
{
    tg_text_append_json_string(text, field->key, strlen(field->key));
    tg_text_append_char(text, ':');
    switch (field->kind) {
    case TG_STATE_I64:
        tg_text_append_format(text, "%lld", (long long)*(const int64_t *)field->value);
        break;
    case TG_STATE_U64:
        tg_text_append_format(text, "\"%llu\"",
                              (unsigned long long)*(const uint64_t *)field->value);
        break;
    case TG_STATE_DOUBLE:
        add_double(text, *(const double *)field->value);
        break;
    case TG_STATE_STRING:
        tg_text_append_json_string(text, field->value, strlen(field->value));
        break;
    }
}

tg_status tg_state_record_write(const char *folder, int64_t step, double score,
                                const tg_state *state)
{
    tg_text text = {0};
    char *path = tg_path_join(folder, RECORD);
    tg_text_append_format(&text, "{\"version\":%d,\n\"step\":%lld,\n\"score\":", VERSION,
                          (long long)step);
    add_double(&text, score);
    tg_text_append_string(&text, ",\n\"fields\":{");
    for (size_t i = 0; i < state->field_count; i++) {
        tg_text_append_string(&text, i ? ",\n" : "\n");
        add_field(&text, &state->fields[i]);
    }
    tg_text_append_string(&text, "\n}}\n");
    tg_status status = tg_text_check(&text, RECORD);
    if (status == TG_OK)
        status = path ? tg_file_write(path, text.data, text.length)
                      : tg_fail(TG_ERROR_MACHINE, "out of memory for a path");
    free(path);
    tg_text_done(&text);
    return status;
}

static tg_status read_double(const tg_json_node *node, double *out)
{
    static const struct {
        const char *text;
        double value;
    } odd[] = {{"nan", NAN}, {"inf", INFINITY}, {"-inf", -INFINITY}};
    const char *text;
    if (tg_json_node_kind(node) != TG_JSON_STRING)
        return tg_json_as_double(node, out);
    TG_TRY(tg_json_as_string(node, &text));
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++)
        if (strcmp(text, odd[i].text) == 0) {
            *out = odd[i].value;
            return TG_OK;
        }
    return tg_json_fail(node, "not a number");
}

static tg_status read_field(const tg_json_node *node, const tg_state_field *field)
{
    const char *text;
    switch (field->kind) {
    case TG_STATE_I64:
        return tg_json_as_int(node, field->value);
    case TG_STATE_DOUBLE:
        return read_double(node, field->value);
    case TG_STATE_U64:
        TG_TRY(tg_json_as_string(node, &text));
        if (!tg_number_parse_u64(text, strlen(text), field->value))
            return tg_json_fail(node, "not a whole number");
        return TG_OK;
    case TG_STATE_STRING:
        break;
    }
    TG_TRY(tg_json_as_string(node, &text));
    if (strlen(text) >= field->size)
        return tg_json_fail(node, "longer than %zu bytes", field->size - 1);
    memcpy(field->value, text, strlen(text) + 1);
    return TG_OK;
}

static tg_status read_fields(const tg_json_node *root, const tg_state *state)
{
    tg_json_node fields, node;
    TG_TRY(tg_json_get_object(root, "fields", TG_REQUIRED, &fields, NULL));
    for (size_t i = 0; i < state->field_count; i++) {
        if (!tg_json_find(&fields, state->fields[i].key, &node))
            return tg_json_fail(&fields, "%s is missing: not a state that this program can resume",
                                state->fields[i].key);
        TG_TRY(read_field(&node, &state->fields[i]));
    }
    return TG_OK;
}

static tg_status read_document(const tg_json *document, const tg_state *state, int64_t *out_step,
                               double *out_score)
{
    tg_json_node root = tg_json_root(document), node;
    int64_t version, step;
    double score = NAN;
    if (tg_json_node_kind(&root) != TG_JSON_OBJECT)
        return tg_json_fail(&root, "not a checkpoint's state");
    TG_TRY(tg_json_get_int(&root, "version", TG_REQUIRED, &version));
    if (version != VERSION)
        return tg_json_fail(&root, "version %lld is not known (%d)", (long long)version, VERSION);
    TG_TRY(tg_json_get_int(&root, "step", TG_REQUIRED, &step));
    if (!tg_json_find(&root, "score", &node))
        return tg_json_fail(&root, "the score is missing");
    TG_TRY(read_double(&node, &score));
    TG_TRY(read_fields(&root, state));
    *out_step = step;
    *out_score = score;
    return TG_OK;
}

tg_status tg_state_record_read(const char *folder, const tg_state *state, int64_t *out_step,
                               double *out_score)
{
    tg_json document = {0};
    char *path = tg_path_join(folder, RECORD), *bytes = NULL;
    size_t length;
    tg_status status = path ? tg_file_read(path, MAX_RECORD_BYTES, &bytes, &length)
                            : tg_fail(TG_ERROR_MACHINE, "out of memory for a path");
    TG_TRY_GOTO(status, free_all);
    TG_TRY_GOTO(tg_json_parse(bytes, length, path, &document), free_all);
    status = read_document(&document, state, out_step, out_score);
free_all:
    tg_json_done(&document);
    free(bytes);
    free(path);
    return status;
}
