#include "data/quote.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static bool needs_escape(unsigned char byte)
{
    return byte < 0x20 || byte == 0x7f || byte == '\\';
}

static size_t quoted_length(const char *name)
{
    size_t length = 0;
    for (const char *c = name; *c; c++)
        length += needs_escape((unsigned char)*c) ? 4 : 1;
    return length;
}

const char *tg_quote(const char *name, char out[TG_QUOTE_BYTES])
{
    static const char hex[] = "0123456789abcdef";
    const size_t room = TG_QUOTE_BYTES - sizeof "'...'";
    size_t length = quoted_length(name), n = 0;
    out[n++] = '\'';
    if (length > room) {
        memcpy(out + n, "...", 3);
        n += 3;
        for (; length > room || ((unsigned char)*name & 0xC0u) == 0x80u; name++)
            length -= needs_escape((unsigned char)*name) ? 4 : 1;
    }
    for (; *name; name++) {
        unsigned char byte = (unsigned char)*name;
        if (needs_escape(byte)) {
            const char escape[4] = {'\\', 'x', hex[byte >> 4], hex[byte & 15]};
            memcpy(out + n, escape, 4);
            n += 4;
        } else {
            out[n++] = (char)byte;
        }
    }
    out[n++] = '\'';
    out[n] = 0;
    return out;
}
