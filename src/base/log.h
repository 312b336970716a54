/* log.h - lines for people, sent to one sink that the program sets.
 *
 * Library code never writes to stderr itself. The default sink drops everything, so a program that
 * embeds the library stays silent. Each call is one line: control characters in it (from the names
 * of files) reach the sink as \xHH. The sink is called under a lock.
 */
#ifndef TG_BASE_LOG_H
#define TG_BASE_LOG_H

#include "base/status.h"

/* An own warning is one that other ranks of the same job have no cause for: about a photo of this one's share,
 * say. The usual ones come to all ranks alike. */
typedef enum tg_log_level {
    TG_LOG_DEBUG,
    TG_LOG_INFO,
    TG_LOG_WARNING,
    TG_LOG_OWN_WARNING,
    TG_LOG_ERROR
} tg_log_level;

typedef void (*tg_log_sink)(void *user, tg_log_level level, const char *line);

/* Sets the sink (NULL: drop all) and the lowest level that reaches it. Not thread-safe: call before
 * threads start. `user` is borrowed until the next call. */
void tg_log_set(tg_log_sink sink, void *user, tg_log_level lowest);

void tg_log(tg_log_level level, const char *format, ...) TG_PRINTF(2, 3);

#define tg_log_info(...) tg_log(TG_LOG_INFO, __VA_ARGS__)
#define tg_log_warning(...) tg_log(TG_LOG_WARNING, __VA_ARGS__)
#define tg_log_own_warning(...) tg_log(TG_LOG_OWN_WARNING, __VA_ARGS__)
#define tg_log_debug(...) tg_log(TG_LOG_DEBUG, __VA_ARGS__)

#endif
