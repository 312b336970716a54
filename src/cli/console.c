#include "cli/console.h"

#include "base/log.h"
#include "os/clock.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { BAR_WIDTH = 24, BAR_LEAST = 4, LINE_MAX_BYTES = 512 };

#define REDRAW_NS INT64_C(100000000)   /* on a terminal */
#define REPEAT_NS INT64_C(10000000000) /* elsewhere */

/* Standard error is one per process, so is this. */
static struct {
    pthread_mutex_t lock;
    bool quiet, terminal, line_stands;
    int64_t drawn_ns;          /* 0: nothing shown yet */
    char line[LINE_MAX_BYTES]; /* progress as last asked for */
    bool pending;              /* asked for but not drawn yet */
    bool reader_left;          /* standard output is a pipe that nobody reads any more */
    tg_run_log *log;
    const char *command;
    bool settled;        /* who speaks does not change any more */
    bool ranked, speaks; /* one of several ranks; the one that says what all have to say */
    char rank[96];       /* "rank 3 on b: ", or "" */
} console = {.lock = PTHREAD_MUTEX_INITIALIZER, .speaks = true};

static void erase_line(void)
{
    if (console.line_stands)
        fputs("\r\033[K", stderr);
    console.line_stands = false;
}

static void sink(void *user, tg_log_level level, const char *line)
{
    (void)user;
    pthread_mutex_lock(&console.lock);
    if (console.log)
        tg_run_log_line(console.log, level, line);
    if (!console.quiet && (console.speaks || level == TG_LOG_OWN_WARNING)) {
        erase_line();
        fprintf(stderr, "%s%s%s\n", console.rank, level >= TG_LOG_WARNING ? "warning: " : "", line);
    }
    pthread_mutex_unlock(&console.lock);
}

void tg_console_open(bool quiet, bool verbose)
{
    console.quiet = quiet;
    console.terminal = isatty(STDERR_FILENO) == 1;
    tg_log_set(sink, NULL, verbose ? TG_LOG_DEBUG : TG_LOG_INFO);
}

void tg_console_set_rank(int rank, const char *host)
{
    pthread_mutex_lock(&console.lock);
    console.ranked = true;
    console.speaks = rank == 0;
    console.rank[0] = '\0';
    if (rank > 0)
        snprintf(console.rank, sizeof console.rank, "rank %d on %s: ", rank, host);
    pthread_mutex_unlock(&console.lock);
}

void tg_console_speak(void)
{
    pthread_mutex_lock(&console.lock);
    console.speaks = console.speaks || !console.settled;
    pthread_mutex_unlock(&console.lock);
}

void tg_console_settle(bool speaks)
{
    pthread_mutex_lock(&console.lock);
    console.speaks = speaks;
    console.settled = true;
    pthread_mutex_unlock(&console.lock);
}

bool tg_console_has_rank(void)
{
    return console.ranked;
}

void tg_console_set_command(const char *command)
{
    console.command = command;
}

void tg_console_error(const char *message)
{
    const char *command = console.command;
    tg_text line = {0};
    if (!console.speaks)
        return;
    erase_line();
    tg_text_append_visible(&line, message, "\\\n"); /* some list faults, one a line */
    fprintf(stderr, "%stagine%s%s: %s\n", console.rank, command ? " " : "", command ? command : "",
            line.failed ? message : tg_text_string(&line));
    tg_text_done(&line);
    console.speaks = false;
}

void tg_console_attach(tg_run_log *log)
{
    pthread_mutex_lock(&console.lock);
    console.log = log;
    pthread_mutex_unlock(&console.lock);
}

void tg_console_close(void)
{
    tg_log_set(NULL, NULL, TG_LOG_INFO);
    erase_line();
}

tg_status tg_console_print(tg_text *text)
{
    TG_TRY(tg_text_check(text, "standard output"));
    fflush(stderr);
    size_t n = fwrite(tg_text_string(text), 1, text->length, stdout);
    if (n != text->length || fflush(stdout) != 0) {
        console.reader_left = errno == EPIPE;
        return tg_fail(TG_ERROR_MACHINE, "cannot write to standard output: %s",
                       strerrordesc_np(errno));
    }
    tg_text_clear(text);
    return TG_OK;
}

bool tg_console_reader_left(void)
{
    return console.reader_left;
}

static int terminal_columns(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20)
        return size.ws_col;
    return 80;
}

/* " [###...]" in what the other words leave of the line; nothing where that is too little. */
static void format_bar(char out[BAR_WIDTH + 4], double part, size_t words)
{
    const int room = terminal_columns() - 1 - (int)words - 3;
    const int width = room < BAR_WIDTH ? room : BAR_WIDTH, filled = (int)(part * width);
    out[0] = '\0';
    if (width < BAR_LEAST)
        return;
    strcpy(out, " [");
    for (int i = 0; i < width; i++)
        out[2 + i] = i < filled ? '#' : '.';
    strcpy(out + 2 + width, "]");
}

static void format_line(const char *what, uint64_t done, uint64_t total, const char *note)
{
    char bar[BAR_WIDTH + 4] = "", share[48] = "";
    if (total)
        snprintf(share, sizeof share, " %llu/%llu", (unsigned long long)done,
                 (unsigned long long)total);
    const char *gap = note[0] ? "  " : "";
    if (total && console.terminal)
        format_bar(bar, done < total ? (double)done / (double)total : 1,
                   strlen(what) + strlen(share) + strlen(gap) + strlen(note));
    snprintf(console.line, sizeof console.line, "%s%s%s%s%s", what, bar, share, gap, note);
}

static void draw(void)
{
    if (console.terminal)
        fprintf(stderr, "\r%.*s\033[K", terminal_columns() - 1, console.line);
    else
        fprintf(stderr, "%s\n", console.line);
    fflush(stderr);
    console.line_stands = console.terminal;
    console.pending = false;
    console.drawn_ns = tg_clock_ns();
}

void tg_console_progress(const char *what, uint64_t done, uint64_t total, const char *note)
{
    if (console.quiet)
        return;
    pthread_mutex_lock(&console.lock);
    format_line(what, done, total, note);
    console.pending = true;
    int64_t wait = console.terminal ? REDRAW_NS : REPEAT_NS;
    if (!console.drawn_ns && !console.terminal)
        console.drawn_ns = tg_clock_ns(); /* what ends soon needs no line before its last */
    if (!console.drawn_ns || tg_clock_ns() - console.drawn_ns >= wait)
        draw();
    pthread_mutex_unlock(&console.lock);
}

void tg_console_progress_end(void)
{
    if (console.quiet)
        return;
    pthread_mutex_lock(&console.lock);
    if (console.pending)
        draw();
    if (console.line_stands)
        fputc('\n', stderr);
    console.line_stands = false;
    console.drawn_ns = 0;
    pthread_mutex_unlock(&console.lock);
}

void tg_console_progress_clear(void)
{
    pthread_mutex_lock(&console.lock);
    erase_line();
    console.pending = false;
    pthread_mutex_unlock(&console.lock);
}

void tg_console_append_duration(tg_text *text, double seconds)
{
    if (!(seconds >= 0) || seconds > 1e8) {
        tg_text_append_string(text, "?");
        return;
    }
    long s = lround(seconds);
    if (s >= 3600)
        tg_text_append_format(text, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
    else
        tg_text_append_format(text, "%ld:%02ld", s / 60, s % 60);
}

void tg_console_append_bytes(tg_text *text, double bytes)
{
    static const char *const UNITS[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int unit = 0;
    while (bytes >= 1024 && unit < 4) {
        bytes /= 1024;
        unit++;
    }
    tg_text_append_format(text, unit ? "%.1f %s" : "%.0f %s", bytes, UNITS[unit]);
}
