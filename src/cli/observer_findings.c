/* findings.json of a job that runs: what is new in it, what is gone, and what was asked for on it. */
#include "cli/observer.h"

#include "base/json_writer.h"
#include "base/log.h"
#include "cli/signal.h"
#include "os/document.h"
#include "os/file.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS_TO_CLEAR = 3 };

/* A finding as the file tells it. Texts are borrowed from the document; "": none. */
typedef struct told {
    const char *rule, *title, *cause, *advice, *host, *option, *old_value, *new_value;
    tg_severity severity;
    bool explained;
    double step_s, predicted_step_s;
    int64_t rank; /* -1: of none */
} told;

static const char *text_of(const tg_json_node *node, const char *key)
{
    const char *text = NULL;
    return tg_json_get_string(node, key, TG_OPTIONAL, &text) == TG_OK && text ? text : "";
}

static bool read_told(const tg_json_node *node, told *out)
{
    *out = (told){.rank = -1, .step_s = NAN, .predicted_step_s = NAN};
    if (tg_json_node_kind(node) != TG_JSON_OBJECT)
        return false;
    out->rule = text_of(node, "rule");
    out->title = text_of(node, "title");
    out->cause = text_of(node, "cause");
    out->advice = text_of(node, "advice");
    out->host = text_of(node, "host");
    out->option = text_of(node, "option");
    out->old_value = text_of(node, "old");
    out->new_value = text_of(node, "new");
    out->explained = text_of(node, "explained_by")[0] != '\0';
    const char *severity = text_of(node, "severity");
    for (int s = TG_SEVERITY_NOTE; s <= TG_SEVERITY_SERIOUS; s++)
        if (strcmp(severity, tg_severity_name((tg_severity)s)) == 0)
            out->severity = (tg_severity)s;
    return tg_json_get_int(node, "rank", TG_OPTIONAL, &out->rank) == TG_OK &&
           tg_json_get_double(node, "step_s", TG_OPTIONAL, &out->step_s) == TG_OK &&
           tg_json_get_double(node, "predicted_step_s", TG_OPTIONAL, &out->predicted_step_s) ==
               TG_OK;
}

/* The one that was said before, or a new place for it; *out_new. NULL: there is no room for more. */
static tg_observer_known *find_known(tg_observer *observer, const told *f, bool *out_new)
{
    tg_observer_known wanted = {0};
    snprintf(wanted.key, sizeof wanted.key, "%s %s %lld %s", f->rule, f->host, (long long)f->rank,
             f->option);
    *out_new = false;
    for (size_t i = 0; i < observer->known_count; i++)
        if (strcmp(observer->known[i].key, wanted.key) == 0)
            return &observer->known[i];
    if (observer->known_count == TG_OBSERVER_KNOWN)
        return NULL;
    *out_new = true;
    observer->known[observer->known_count] = wanted;
    return &observer->known[observer->known_count++];
}

/* "Dataloader: TITLE; CAUSE. --workers 2 (now 48): 500 ms a step -> 260 ms" */
static void say(const told *f)
{
    tg_text line = {0};
    tg_text_append_format(&line, "%s: %s; %s.", f->rule, f->title, f->cause);
    if (f->option[0])
        tg_text_append_format(&line, " --%s %s (now %s)", f->option, f->new_value,
                              f->old_value[0] ? f->old_value : "not set");
    else if (f->advice[0])
        tg_text_append_format(&line, " %s", f->advice);
    if (f->predicted_step_s > 0)
        tg_text_append_format(&line, ": %.3g ms a step -> %.3g ms", 1e3 * f->step_s,
                              1e3 * f->predicted_step_s);
    tg_log_warning("%s", tg_text_string(&line));
    tg_text_done(&line);
}

static void post(tg_observer *observer, const char *target, const told *f)
{
    tg_text body = {0};
    tg_json_writer w = tg_json_writer_init(&body);
    tg_json_begin_object(&w, NULL);
    tg_json_put_string(&w, "run", observer->run_path);
    tg_json_put_string(&w, "rule", f->rule);
    tg_json_put_string(&w, "severity", tg_severity_name(f->severity));
    /* what chat programs show of a message */
    tg_json_put_string(&w, "text", f->title);
    tg_json_put_string(&w, "title", f->title);
    tg_json_put_string(&w, "cause", f->cause);
    tg_json_put_string(&w, "advice", f->advice[0] ? f->advice : NULL);
    tg_json_put_string(&w, "host", f->host[0] ? f->host : NULL);
    tg_json_put_string(&w, "option", f->option[0] ? f->option : NULL);
    tg_json_put_string(&w, "old", f->old_value[0] ? f->old_value : NULL);
    tg_json_put_string(&w, "new", f->new_value[0] ? f->new_value : NULL);
    tg_json_put_double(&w, "step_s", f->step_s);
    tg_json_put_double(&w, "predicted_step_s", f->predicted_step_s);
    tg_json_end_object(&w);
    if (tg_text_check(&body, "a message") == TG_OK)
        tg_observer_post_add(observer, target, tg_text_string(&body));
    tg_text_done(&body);
}

static void stop(tg_observer *observer, const tg_reaction *reaction, const told *f)
{
    if (observer->ending || observer->stop_reason[0] || tg_signal_stop())
        return;
    tg_finding_say(observer->stop_reason, sizeof observer->stop_reason,
                   "--on-finding %s=stop: %s: %s", reaction->rule, f->rule, f->title);
    tg_log_warning("%s; saving, then leaving", observer->stop_reason);
    tg_signal_adopt(SIGTERM);
}

/* Whether a line was said for it. */
static bool react(tg_observer *observer, const told *f)
{
    bool said = f->severity >= TG_SEVERITY_WARNING && !f->explained;
    for (size_t i = 0; i < observer->reactions.count; i++)
        said |=
            observer->reactions.each[i].kind == TG_REACT_WARN &&
            tg_reaction_is_for(&observer->reactions.each[i], f->rule, f->severity, f->explained);
    if (said)
        say(f);
    for (size_t i = 0; i < observer->reactions.count; i++) {
        const tg_reaction *r = &observer->reactions.each[i];
        if (!tg_reaction_is_for(r, f->rule, f->severity, f->explained))
            continue;
        if (r->kind == TG_REACT_WEBHOOK)
            post(observer, r->target, f);
        else if (r->kind == TG_REACT_STOP)
            stop(observer, r, f);
        said = true;
    }
    return said;
}

static void take(tg_observer *observer, const told *f)
{
    bool fresh;
    tg_observer_known *known = find_known(observer, f, &fresh);
    if (!known)
        return;
    known->found = true;
    known->missing = 0;
    if (!fresh && f->severity <= known->severity)
        return;
    known->severity = f->severity; /* worse than before is news as well */
    if (!react(observer, f) && fresh)
        observer->known_count--;
}

static void clear_missing(tg_observer *observer)
{
    for (size_t i = 0; i < observer->known_count; i++) {
        tg_observer_known *known = &observer->known[i];
        known->missing += !known->found;
        known->found = false;
        if (known->missing != ROUNDS_TO_CLEAR || known->cleared)
            continue;
        known->cleared = true;
        tg_log_info("%.*s: no longer so", (int)strcspn(known->key, " "), known->key);
    }
}

void tg_observer_read_findings(tg_observer *observer)
{
    tg_json json = {0};
    tg_json_node findings;
    char *path = tg_path_join(observer->run_path, "findings.json");
    if (!path || tg_json_read(path, &json) < 0) {
        free(path);
        return; /* the folder may be gone; the job itself says so */
    }
    const tg_json_node root = tg_json_root(&json);
    if (tg_json_node_kind(&root) == TG_JSON_OBJECT && tg_json_find(&root, "findings", &findings))
        for (size_t i = 0; i < tg_json_count(&findings); i++) {
            told f;
            const tg_json_node node = tg_json_element(&findings, i);
            if (read_told(&node, &f))
                take(observer, &f);
        }
    clear_missing(observer);
    tg_json_done(&json);
    free(path);
}
