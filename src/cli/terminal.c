#include "cli/terminal.h"

#include "cli/signal.h"
#include "os/clock.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#define ENTER "\033[?1049h\033[?25l"
#define LEAVE "\033[0m\033[?25h\033[?1049l"

/* One per process. */
static struct {
    bool open, has_keys;
    struct termios before; /* of standard input */
    struct sigaction winch_before, stop_before, quit_before;
} terminal;

static volatile sig_atomic_t size_changed, stop_asked, quit_asked;

bool tg_terminal_is_there(void)
{
    const char *kind = getenv("TERM");
    return isatty(STDOUT_FILENO) == 1 && !(kind && strcmp(kind, "dumb") == 0);
}

/* The locale need not be installed to say that the terminal takes UTF-8. */
static bool takes_utf8(void)
{
    static const char *const NAMES[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (int i = 0; i < 3; i++) {
        const char *value = getenv(NAMES[i]);
        if (!value || !value[0])
            continue;
        locale_t locale = newlocale(LC_CTYPE_MASK, value, (locale_t)0);
        const bool utf8 = locale ? strcasecmp(nl_langinfo_l(CODESET, locale), "UTF-8") == 0
                                 : strcasestr(value, "utf-8") || strcasestr(value, "utf8");
        if (locale)
            freelocale(locale);
        return utf8;
    }
    return false;
}

tg_glyphs tg_terminal_glyphs(bool for_terminal)
{
    const char *plain = getenv("NO_COLOR");
    return (tg_glyphs){.unicode = takes_utf8(), .color = for_terminal && !(plain && plain[0])};
}

void tg_terminal_size(size_t *out_columns, size_t *out_rows)
{
    struct winsize size;
    const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
    *out_columns = known && size.ws_col >= 20 ? size.ws_col : 80;
    *out_rows = known && size.ws_row >= 4 ? size.ws_row : 24;
}

static void note_size(int number)
{
    (void)number;
    size_changed = 1;
}

static void note_stop(int number)
{
    (void)number;
    stop_asked = 1;
}

static void note_quit(int number)
{
    (void)number;
    quit_asked = 1;
}

/* All bytes, whatever interrupts. */
static tg_status put(const char *bytes, size_t length)
{
    while (length) {
        const ssize_t n = write(STDOUT_FILENO, bytes, length);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n < 0)
            return tg_fail(TG_ERROR_MACHINE, "cannot write to the terminal: %s",
                           strerrordesc_np(errno));
        bytes += n;
        length -= (size_t)n;
    }
    return TG_OK;
}

static tg_status enter(void)
{
    if (terminal.has_keys) {
        struct termios keys = terminal.before;
        keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        keys.c_cc[VMIN] = 0;
        keys.c_cc[VTIME] = 0;
        tcsetattr(STDIN_FILENO, TCSADRAIN, &keys);
    }
    return put(ENTER, strlen(ENTER));
}

static void leave(void)
{
    (void)!put(LEAVE, strlen(LEAVE));
    if (terminal.has_keys)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &terminal.before);
}

tg_status tg_terminal_open(void)
{
    struct sigaction size = {.sa_handler = note_size}, stop = {.sa_handler = note_stop},
                     quit = {.sa_handler = note_quit};
    terminal.has_keys = isatty(STDIN_FILENO) == 1 && tcgetattr(STDIN_FILENO, &terminal.before) == 0;
    sigaction(SIGWINCH, &size, &terminal.winch_before);
    sigaction(SIGTSTP, &stop, &terminal.stop_before);
    sigaction(SIGQUIT, &quit, &terminal.quit_before);
    terminal.open = true;
    return enter();
}

void tg_terminal_close(void)
{
    if (!terminal.open)
        return;
    leave();
    terminal.open = false;
    sigaction(SIGWINCH, &terminal.winch_before, NULL);
    sigaction(SIGTSTP, &terminal.stop_before, NULL);
    sigaction(SIGQUIT, &terminal.quit_before, NULL);
}

tg_status tg_terminal_draw(const tg_text *lines)
{
    tg_text frame = {0};
    const char *at = tg_text_string(lines);
    tg_text_append_string(&frame, "\033[H");
    while (*at) {
        const size_t n = strcspn(at, "\n");
        tg_text_append(&frame, at, n);
        tg_text_append_string(&frame, "\033[K"); /* what the line held before */
        at += n + (at[n] == '\n');
        if (*at)
            tg_text_append_string(&frame, "\r\n");
    }
    tg_text_append_string(&frame, "\033[J");
    tg_status status = tg_text_check(&frame, "the screen");
    if (status == TG_OK)
        status = put(frame.data, frame.length);
    tg_text_done(&frame);
    return status;
}

/* ^Z: the shell gets its terminal back, and this program when it goes on. */
static void stop_for_a_while(void)
{
    stop_asked = 0;
    leave();
    raise(SIGSTOP);
    (void)!enter();
}

/* False: q, ^D, or nobody is there any more. */
static bool take_keys(void)
{
    char keys[64];
    const ssize_t n = read(STDIN_FILENO, keys, sizeof keys);
    if (n <= 0)
        return n < 0 && (errno == EINTR || errno == EAGAIN);
    for (ssize_t i = 0; i < n; i++)
        if (keys[i] == 'q' || keys[i] == 'Q' || keys[i] == 4)
            return false;
    return true;
}

static tg_terminal_event wait_once(int milliseconds)
{
    struct pollfd fds[2] = {
        {.fd = tg_signal_fd(), .events = POLLIN},
        {.fd = terminal.open && terminal.has_keys ? STDIN_FILENO : -1, .events = POLLIN}};
    const int ready = poll(fds, 2, milliseconds);
    if (tg_signal_stop() || quit_asked || (ready > 0 && fds[0].revents))
        return TG_TERMINAL_QUIT;
    if (stop_asked) {
        stop_for_a_while();
        return TG_TERMINAL_SIZE;
    }
    if (size_changed) {
        size_changed = 0;
        return TG_TERMINAL_SIZE;
    }
    if (ready > 0 && fds[1].revents && !take_keys())
        return TG_TERMINAL_QUIT;
    return TG_TERMINAL_TIME;
}

tg_terminal_event tg_terminal_wait(double seconds)
{
    const int64_t until = tg_clock_ns() + (int64_t)(1e9 * seconds);
    for (;;) {
        const int64_t left_ms = (until - tg_clock_ns() + 999999) / 1000000;
        const tg_terminal_event event = wait_once(left_ms > 0 ? (int)left_ms : 0);
        if (event != TG_TERMINAL_TIME || left_ms <= 0)
            return event;
    }
}
