/* Messages of --on-finding RULE=webhook:URL, sent by curl, one at a time. */
#include "cli/observer.h"

#include "base/log.h"
#include "os/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { URL_FILE_MAX = 4096 };

void tg_observer_post_add(tg_observer *observer, const char *target, const char *body)
{
    if (observer->post_count == TG_OBSERVER_POSTS)
        return;
    tg_observer_post *post = &observer->posts[observer->post_count++];
    *post = (tg_observer_post){0};
    snprintf(post->target, sizeof post->target, "%s", target);
    tg_text_append_string(&post->body, body);
}

/* Said once, and never with the URL: it may hold a secret. */
static void tell(tg_observer *observer, const char *why)
{
    if (!observer->told_post)
        tg_log_warning("--on-finding webhook: a message was not sent: %s", why);
    observer->told_post = true;
}

/* A value of curl's configuration: quoted. */
static void append_quoted(tg_text *out, const char *key, const char *value)
{
    tg_text_append_format(out, "%s = \"", key);
    for (; *value; value++) {
        if (*value == '"' || *value == '\\')
            tg_text_append_char(out, '\\');
        if ((unsigned char)*value >= 0x20)
            tg_text_append_char(out, *value);
    }
    tg_text_append_string(out, "\"\n");
}

/* The URL, from the option or the first line of a file. */
static bool read_url(const char *target, char out[TG_REACTION_TARGET])
{
    char *text;
    size_t length;
    if (target[0] != '@') {
        snprintf(out, TG_REACTION_TARGET, "%s", target);
        return true;
    }
    if (tg_file_read(target + 1, URL_FILE_MAX, &text, &length) < 0)
        return false;
    snprintf(out, TG_REACTION_TARGET, "%.*s", (int)strcspn(text, " \t\r\n"), text);
    free(text);
    return true;
}

/* All of it goes through curl's standard input, so that no list of processes shows the URL. */
static tg_status start(tg_observer *observer, const tg_observer_post *post)
{
    static const char *const ARGV[] = {"curl", "-q", "--config", "-", NULL};
    char url[TG_REACTION_TARGET];
    tg_text config = {0};
    if (!read_url(post->target, url))
        return TG_ERROR_INPUT;
    append_quoted(&config, "url", url);
    append_quoted(&config, "header", "Content-Type: application/json");
    append_quoted(&config, "data-binary", tg_text_string(&post->body));
    tg_text_append_string(&config, "proto = \"=http,https\"\nmax-time = 10\nconnect-timeout = 5\n"
                                   "silent\nfail\noutput = \"/dev/null\"\n");
    tg_status status = tg_text_check(&config, "a message");
    if (status == TG_OK)
        status =
            tg_child_start(&observer->child, ARGV[0], ARGV, tg_text_string(&config), config.length);
    tg_text_done(&config);
    return status;
}

bool tg_observer_post_next(tg_observer *observer)
{
    while (observer->post_count) {
        tg_observer_post post = observer->posts[0];
        memmove(observer->posts, observer->posts + 1,
                --observer->post_count * sizeof *observer->posts);
        const tg_status status = start(observer, &post);
        tg_text_done(&post.body);
        if (status == TG_OK)
            return true;
        tell(observer, tg_error_message());
    }
    return false;
}

void tg_observer_post_ended(tg_observer *observer)
{
    char why[64];
    if (observer->child.exit_code == 0)
        return;
    if (observer->child.exit_code == 127)
        snprintf(why, sizeof why, "curl is not installed");
    else
        snprintf(why, sizeof why, "curl ended with %d (man curl, EXIT CODES)",
                 observer->child.exit_code);
    tell(observer, why);
}
