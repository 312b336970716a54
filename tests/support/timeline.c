#include "support/timeline.h"

#include "support/check.h"

#include "base/json.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static void unpack(const char *path, tg_text *out)
{
    char chunk[4096];
    int n;
    gzFile file = gzopen(path, "rb");
    assert_non_null(file);
    while ((n = gzread(file, chunk, sizeof chunk)) > 0)
        tg_text_append(out, chunk, (size_t)n);
    assert_int_equal(n, 0);
    assert_int_equal(gzdirect(file), 0); /* it was compressed */
    assert_int_equal(gzclose(file), Z_OK);
}

static void copy(const tg_json_node *object, const char *key, char *out, size_t bytes)
{
    const char *text;
    assert_ok(tg_json_get_string(object, key, TG_REQUIRED, &text));
    snprintf(out, bytes, "%s", text);
}

static void read_event(const tg_json_node *node, tg_test_event *e)
{
    double ts, dur;
    tg_json_node arguments;
    bool found;
    copy(node, "name", e->name, sizeof e->name);
    copy(node, "cat", e->category, sizeof e->category);
    assert_ok(tg_json_get_int(node, "pid", TG_REQUIRED, &e->pid));
    assert_ok(tg_json_get_int(node, "tid", TG_REQUIRED, &e->row));
    assert_ok(tg_json_get_double(node, "ts", TG_REQUIRED, &ts));
    assert_ok(tg_json_get_double(node, "dur", TG_REQUIRED, &dur));
    e->begin_ns = llround(ts * 1e3);
    e->end_ns = e->begin_ns + llround(dur * 1e3);
    assert_true(dur >= 0);
    e->step = e->mib = e->queued_us = e->stream = e->layer = e->correlation = NAN;
    assert_ok(tg_json_get_object(node, "args", TG_OPTIONAL, &arguments, &found));
    const bool kernel = strcmp(e->category, "kernel") == 0;
    assert_true(found || !kernel);
    if (!found)
        return;
    assert_ok(tg_json_get_double(&arguments, "step", TG_OPTIONAL, &e->step));
    assert_ok(tg_json_get_double(&arguments, "mib", TG_OPTIONAL, &e->mib));
    assert_ok(tg_json_get_double(&arguments, "queued_us", TG_OPTIONAL, &e->queued_us));
    assert_ok(tg_json_get_double(&arguments, "layer", TG_OPTIONAL, &e->layer));
    assert_ok(tg_json_get_double(&arguments, "correlation", TG_OPTIONAL, &e->correlation));
    if (!kernel)
        return;
    double device, id;
    assert_ok(tg_json_get_double(&arguments, "stream", TG_REQUIRED, &e->stream));
    assert_ok(tg_json_get_double(&arguments, "device", TG_REQUIRED, &device));
    assert_ok(tg_json_get_double(&arguments, "External id", TG_REQUIRED, &id));
    assert_true(e->stream == (double)e->row && device == 0 && id == e->correlation);
}

static void read_name(const tg_json_node *node, tg_test_timeline *t)
{
    tg_json_node arguments;
    int64_t row;
    char name[64];
    copy(node, "name", name, sizeof name);
    assert_ok(tg_json_get_int(node, "tid", TG_REQUIRED, &row));
    assert_ok(tg_json_get_object(node, "args", TG_REQUIRED, &arguments, NULL));
    if (strcmp(name, "process_name") == 0)
        copy(&arguments, "name", t->process, sizeof t->process);
    if (strcmp(name, "thread_name") == 0 && row < 8)
        copy(&arguments, "name", t->rows[row], sizeof t->rows[row]);
}

static void read_events(const tg_json_node *array, tg_test_timeline *t)
{
    t->events = calloc(tg_json_count(array) + 1, sizeof *t->events);
    assert_non_null(t->events);
    for (size_t i = 0; i < tg_json_count(array); i++) {
        const tg_json_node node = tg_json_element(array, i);
        char phase[8];
        copy(&node, "ph", phase, sizeof phase);
        if (strcmp(phase, "X") == 0)
            read_event(&node, &t->events[t->count++]);
        else if (strcmp(phase, "i") == 0)
            copy(&node, "name", t->notice, sizeof t->notice);
        else
            read_name(&node, t);
    }
}

static bool is_step_of(const tg_test_event *step, const tg_test_event *e)
{
    return strncmp(step->name, "ProfilerStep#", 13) == 0 && step->correlation == e->correlation;
}

static void check_correlations(const tg_test_timeline *t)
{
    for (size_t i = 0; i < t->count; i++) {
        bool found = strcmp(t->events[i].category, "kernel") != 0;
        for (size_t k = 0; k < t->count && !found; k++)
            found = is_step_of(&t->events[k], &t->events[i]);
        assert_true(found);
    }
}

static void check_head(const tg_json_node *root)
{
    tg_json_node part;
    int64_t number;
    const char *text;
    assert_ok(tg_json_get_int(root, "schemaVersion", TG_REQUIRED, &number));
    assert_int_equal(number, 1);
    assert_ok(tg_json_get_array(root, "deviceProperties", TG_REQUIRED, &part, NULL));
    assert_int_equal(tg_json_count(&part), 1);
    assert_ok(tg_json_get_object(root, "distributedInfo", TG_REQUIRED, &part, NULL));
    assert_ok(tg_json_get_string(&part, "backend", TG_REQUIRED, &text));
}

static void check_nesting(const tg_test_timeline *t)
{
    for (size_t i = 0; i < t->count; i++)
        for (size_t k = 0; k < i; k++) {
            const tg_test_event *a = &t->events[k], *b = &t->events[i];
            const bool apart = a->end_ns <= b->begin_ns || b->end_ns <= a->begin_ns;
            const bool in = (a->begin_ns <= b->begin_ns && b->end_ns <= a->end_ns) ||
                            (b->begin_ns <= a->begin_ns && a->end_ns <= b->end_ns);
            if (a->row == b->row && !apart && !in)
                fail_msg("'%s' and '%s' of row %d overlap", a->name, b->name, (int)a->row);
        }
}

tg_test_timeline tg_test_timeline_read(const char *path)
{
    tg_test_timeline t = {0};
    tg_text text = {0};
    tg_json json = {0};
    tg_json_node part;
    unpack(path, &text);
    assert_ok(tg_json_parse(tg_text_string(&text), text.length, path, &json));
    const tg_json_node root = tg_json_root(&json);
    check_head(&root);
    assert_ok(tg_json_get_object(&root, "distributedInfo", TG_REQUIRED, &part, NULL));
    assert_ok(tg_json_get_int(&part, "rank", TG_REQUIRED, &t.rank));
    assert_ok(tg_json_get_int(&part, "world_size", TG_REQUIRED, &t.ranks));
    assert_ok(tg_json_get_object(&root, "otherData", TG_REQUIRED, &part, NULL));
    assert_ok(tg_json_get_double(&part, "clock_offset_us", TG_REQUIRED, &t.offset_us));
    assert_ok(tg_json_get_double(&part, "clock_error_us", TG_REQUIRED, &t.error_us));
    assert_ok(tg_json_get_int(&root, "eventsLeftOut", TG_REQUIRED, &t.left_out));
    assert_ok(tg_json_get_array(&root, "traceEvents", TG_REQUIRED, &part, NULL));
    read_events(&part, &t);
    check_nesting(&t);
    check_correlations(&t);
    tg_json_done(&json);
    tg_text_done(&text);
    return t;
}

void tg_test_timeline_done(tg_test_timeline *t)
{
    free(t->events);
    *t = (tg_test_timeline){0};
}
