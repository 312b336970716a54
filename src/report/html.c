#include "report/html.h"

#include "os/file.h"
#include "report/html_page.h"
#include "report/html_parts.h"

#include <math.h>
#include <string.h>

static tg_status put_data(tg_json_writer *w, const tg_history *history,
                          const tg_html_options *options)
{
    const tg_html_grid grid = tg_html_grid_make(history);
    tg_html_put_run(w, history, options);
    TG_TRY(tg_html_put_findings(w, history, grid.origin));
    tg_html_put_ledger(w, history);
    TG_TRY(tg_html_put_steps(w, history, grid.origin));
    TG_TRY(tg_html_put_evals(w, history));
    TG_TRY(tg_html_put_hosts(w, history, &grid));
    TG_TRY(tg_html_put_ranks(w, history));
    TG_TRY(tg_html_put_operations(w, history));
    tg_html_put_facts(w, history);
    tg_html_put_missing(w, history);
    return TG_OK;
}

/* JSON that may stand inside a script element: nothing in it can end that, or begin a comment. */
static void append_data(const tg_text *data, tg_text *out)
{
    const char *at = tg_text_string(data), *end = at + data->length;
    while (at < end) {
        const char *open = memchr(at, '<', (size_t)(end - at));
        tg_text_append(out, at, (size_t)((open ? open : end) - at));
        if (!open)
            break;
        tg_text_append_string(out, "\\u003c");
        at = open + 1;
    }
}

static void append_escaped(const char *string, tg_text *out)
{
    for (; *string; string++)
        switch (*string) {
        case '<':
            tg_text_append_string(out, "&lt;");
            break;
        case '&':
            tg_text_append_string(out, "&amp;");
            break;
        default:
            tg_text_append_char(out, *string);
            break;
        }
}

static void append_title(const tg_history *history, tg_text *out)
{
    const char *command = tg_history_info_text(history, "command");
    tg_text_append_string(out, "tagine: ");
    if (command) {
        append_escaped(command, out);
        tg_text_append_string(out, " in ");
    }
    append_escaped(history->path, out);
}

/* Where scripts are off; they load the page again by themselves, and wait while somebody reads. */
static void append_refresh(const tg_html_options *options, tg_text *out)
{
    if (options->running)
        tg_text_append_format(out,
                              "<noscript><meta http-equiv=\"refresh\" content=\"%.0f\"></noscript>",
                              options->refresh_s);
}

/* The page up to `mark`; what lies behind it is left in *page. */
static void append_up_to(const char **page, const char *end, const char *mark, tg_text *out)
{
    const size_t n = strlen(mark);
    const char *at = *page;
    while (at + n <= end && memcmp(at, mark, n) != 0)
        at++;
    tg_text_append(out, *page, (size_t)(at - *page));
    *page = at + n <= end ? at + n : end;
}

static void append_page(const tg_history *history, const tg_html_options *options,
                        const tg_text *data, tg_text *out)
{
    const char *page = (const char *)tg_html_page;
    const char *end = page + tg_html_page_bytes;
    append_up_to(&page, end, "@refresh@", out);
    append_refresh(options, out);
    append_up_to(&page, end, "@title@", out);
    append_title(history, out);
    append_up_to(&page, end, "@data@", out);
    append_data(data, out);
    tg_text_append(out, page, (size_t)(end - page));
}

tg_status tg_html_print(const tg_history *history, const tg_html_options *options, tg_text *out)
{
    tg_text data = {0};
    tg_json_writer w = tg_json_writer_init(&data);
    tg_json_begin_object(&w, NULL);
    tg_status status = put_data(&w, history, options);
    if (status == TG_OK) {
        tg_json_end_object(&w);
        status = tg_text_check(&data, "the data of the report");
    }
    if (status == TG_OK) {
        append_page(history, options, &data, out);
        status = tg_text_check(out, "the report");
    }
    tg_text_done(&data);
    return status;
}

tg_status tg_html_write(const tg_history *history, const tg_html_options *options, const char *path)
{
    tg_text page = {0};
    tg_status status = tg_html_print(history, options, &page);
    if (status == TG_OK)
        status = tg_file_write_text(path, &page);
    tg_text_done(&page);
    return status;
}
