/* tune --output: the options that were given, with what was found in them. */
#include "base/text.h"
#include "cli/tune.h"
#include "os/clock.h"
#include "os/file.h"

#include <string.h>

/* Options of tune alone, of one call rather than of a job, or written anew. */
static bool is_left_out(const char *name, size_t length)
{
    static const char *const names[] = {"find",           "seconds-per-trial",
                                        "max-seconds",    "memory-limit-mib",
                                        "max-batch-size", "output",
                                        "resume",         "json",
                                        "quiet",          "verbose",
                                        "threads",        "workers",
                                        "batch-size",     "bucket-mib"};
    for (size_t i = 0; i < TG_COUNT_OF(names); i++)
        if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0)
            return true;
    return false;
}

/* Lines "name: value" of what somebody asked for. */
static void append_given(const tg_options *options, const char *printed, tg_text *out)
{
    for (const char *at = printed; *at;) {
        char name[64];
        const size_t length = strcspn(at, "\n"), n = strcspn(at, ":");
        const char *line = at;
        at += length + (at[length] == '\n');
        if (*line == '#' || n >= sizeof name || is_left_out(line, n))
            continue;
        memcpy(name, line, n);
        name[n] = '\0';
        if (!tg_options_given(options, name))
            continue;
        tg_text_append(out, line, length);
        tg_text_append_char(out, '\n');
    }
}

static void append_found(const tg_tune_subject *subject, const tg_tune_setting *setting,
                         tg_text *out)
{
    if (!subject->options->recipe.global_batch_size)
        tg_text_append_format(out, "batch-size: %lld\n", (long long)setting->batch_size);
    tg_text_append_format(out, "threads: %d\n", setting->threads);
    if (tg_tune_bed_photos(subject->bed) ||
        tg_options_given(subject->invocation->options, "workers"))
        tg_text_append_format(out, "workers: %d\n", setting->workers);
    if (subject->plan->ranks > 1 || tg_options_given(subject->invocation->options, "bucket-mib")) {
        tg_text_append_string(out, "bucket-mib: ");
        tg_text_append_double(out, setting->bucket_mib);
        tg_text_append_char(out, '\n');
    }
}

tg_status tg_tune_write_yaml(const tg_tune_subject *subject, const tg_tune_setting *setting,
                             double images_per_s, const char *path)
{
    const tg_options *options = subject->invocation->options;
    char now[TG_CLOCK_ISO_BYTES];
    tg_text printed = {0}, yaml = {0};
    tg_clock_iso(now);
    tg_options_print(options, &printed);
    tg_text_append_format(&yaml,
                          "# tagine %s --config THIS, as tagine tune found on %s: %.1f images/s\n",
                          subject->command, now, images_per_s);
    append_given(options, tg_text_string(&printed), &yaml);
    append_found(subject, setting, &yaml);
    tg_status status = tg_text_check(&printed, "options");
    if (status == TG_OK)
        status = tg_text_check(&yaml, path);
    if (status == TG_OK)
        status = tg_file_write(path, tg_text_string(&yaml), yaml.length);
    tg_text_done(&printed);
    tg_text_done(&yaml);
    return status;
}
