#include "monitor/source.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A list comes a page at a time, filled but for the line that fits no more: less than half a page is its end. */
enum { PIECE_BYTES = 16384, END_BYTES = 2048 };

tg_source tg_source_open(const char *root, const char *path)
{
    char full[2 * PATH_MAX];
    snprintf(full, sizeof full, "%s%s", root, path);
    return (tg_source){.fd = open(full, O_RDONLY | O_CLOEXEC)};
}

static bool read_pieces(int fd, tg_text *out)
{
    char piece[PIECE_BYTES];
    ssize_t n;
    while ((n = pread(fd, piece, sizeof piece, (off_t)out->length)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        tg_text_append(out, piece, (size_t)n);
        if (n < END_BYTES)
            break;
    }
    return out->length > 0 && !out->failed;
}

bool tg_source_read(tg_source *source, tg_text *out)
{
    tg_text_clear(out);
    if (source->fd < 0)
        return false;
    if (read_pieces(source->fd, out))
        return true;
    tg_source_close(source);
    return false;
}

void tg_source_close(tg_source *source)
{
    if (source->fd >= 0)
        close(source->fd);
    source->fd = -1;
}

bool tg_source_once(const char *root, const char *path, tg_text *out)
{
    tg_source source = tg_source_open(root, path);
    const bool found = tg_source_read(&source, out);
    tg_source_close(&source);
    return found;
}

bool tg_scan_number(const char **at, double *out)
{
    const char *p = *at;
    double value = 0;
    while (*p == ' ' || *p == '\t')
        p++;
    if (*p < '0' || *p > '9')
        return false;
    for (; *p >= '0' && *p <= '9'; p++)
        value = value * 10 + (*p - '0');
    *at = p;
    *out = value;
    return true;
}

void tg_scan_word(const char **at)
{
    *at += strspn(*at, " \t");
    *at += strcspn(*at, " \t\n");
}

double tg_scan_key(const char *text, const char *key)
{
    const size_t n = strlen(key);
    double value;
    for (const char *at = text; (at = strstr(at, key)); at += n) {
        const char *behind = at + n;
        if ((at == text || at[-1] == '\n') &&
            (*behind == ' ' || *behind == '\t' || *behind == ':')) {
            behind += *behind == ':';
            return tg_scan_number(&behind, &value) ? value : NAN;
        }
    }
    return NAN;
}

double tg_rate(double before, double after, double seconds)
{
    const double rate = (after - before) / seconds;
    return rate >= 0 ? rate : NAN;
}
