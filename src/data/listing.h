/* listing.h - one folder's entries in bytewise order, and the set of folders already seen.
 *
 * Rule       names that begin with a dot are never entries (desktop litter, "._a.jpg" companions);
 *            they are counted. Links are resolved: an entry's kind is that of its target; links
 *            that lead nowhere are counted. Sockets, pipes and devices are counted as other.
 * Names      any bytes but NUL and slash.
 * Errors     TG_ERROR_INPUT naming the path when the folder cannot be read; TG_ERROR_MACHINE.
 * Handles    the folder is closed again before the call returns: deep trees need one handle.
 */
#ifndef TG_DATA_LISTING_H
#define TG_DATA_LISTING_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tg_listing_entry {
    char *name;     /* owned by the folder */
    bool is_folder; /* else a regular file */
    bool is_link;
} tg_listing_entry;

typedef struct tg_listing {
    tg_listing_entry *entries;
    size_t count, capacity;
    size_t hidden, broken_links, other;
} tg_listing;

tg_status tg_listing_read(const char *path, tg_listing *out) TG_MUST_CHECK;
void tg_listing_done(tg_listing *folder);

/* Folders known by device and inode; zeroed = empty. */
typedef struct tg_seen_folders {
    struct tg_folder_id {
        uint64_t device, inode;
        bool used;
    } * slots;
    size_t count, capacity;
} tg_seen_folders;

/* TG_OK when `path` was not in the set and now is; TG_END when it was there already. */
tg_status tg_seen_folders_add(tg_seen_folders *set, const char *path) TG_MUST_CHECK;
void tg_seen_folders_done(tg_seen_folders *set);

#endif
