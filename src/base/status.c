#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char slot[TG_ERROR_BYTES];

/* Cuts a UTF-8 sequence that vsnprintf left half-written at the end of a full buffer. */
static void trim_partial_character(char *text)
{
    size_t n = strlen(text);
    size_t back = 0;
    while (back < 4 && back < n && ((unsigned char)text[n - 1 - back] & 0xC0) == 0x80)
        back++;
    if (back == n || back == 4)
        return;
    unsigned char lead = (unsigned char)text[n - 1 - back];
    size_t need = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : lead >= 0xC0 ? 1 : 0;
    if (need > back)
        text[n - 1 - back] = '\0';
}

tg_status tg_fail(tg_status status, const char *format, ...)
{
    char text[TG_ERROR_BYTES]; /* the arguments may point into the slot */
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (n < 0)
        strcpy(text, "unprintable error");
    if (n >= (int)sizeof text)
        trim_partial_character(text);
    memcpy(slot, text, sizeof slot);
    return status;
}

tg_status tg_fail_prefix(tg_status status, const char *format, ...)
{
    char prefix[1024];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(prefix, sizeof prefix, format, args);
    va_end(args);
    if (n < 0)
        return status;
    if (n >= (int)sizeof prefix)
        trim_partial_character(prefix);
    return tg_fail(status, "%s: %s", prefix, slot);
}

const char *tg_error_message(void)
{
    return slot;
}

void tg_error_clear(void)
{
    slot[0] = '\0';
}

int tg_status_exit_code(tg_status status)
{
    if (status >= 0)
        return 0;
    return status == TG_ERROR_STOPPED ? 1 : -(int)status;
}
