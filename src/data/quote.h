/* quote.h - a file name made fit for one line of text.
 *
 * Names are bytes: control characters would break a log line in two. Bytes below 0x20, 0x7f and the
 * backslash are written as \xHH; everything else stays (UTF-8 is readable as it is). The text is
 * put between quotation marks; a name that is too long keeps its end, which tells files apart.
 */
#ifndef TG_DATA_QUOTE_H
#define TG_DATA_QUOTE_H

#define TG_QUOTE_BYTES 1024

/* Returns out. Reentrant. */
const char *tg_quote(const char *name, char out[TG_QUOTE_BYTES]);

#endif
