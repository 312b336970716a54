#include "data/listing.h"

#include "data/grow.h"
#include "data/quote.h"
#include "os/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static tg_status fail_read(const char *path, int error)
{
    char quoted[TG_QUOTE_BYTES];
    return tg_fail(tg_file_read_fault(error), "cannot read folder %s: %s", tg_quote(path, quoted),
                   strerror(error));
}

/* Says what the entry is; false when it is to be left out (counted here). */
static bool classify(int folder_fd, const struct dirent *item, tg_listing *folder,
                     tg_listing_entry *out)
{
    struct stat info;
    *out = (tg_listing_entry){.is_folder = item->d_type == DT_DIR};
    if (item->d_name[0] == '.') {
        if (strcmp(item->d_name, ".") != 0 && strcmp(item->d_name, "..") != 0)
            folder->hidden++;
        return false;
    }
    if (item->d_type == DT_DIR || item->d_type == DT_REG)
        return true;
    if (fstatat(folder_fd, item->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0)
        out->is_link = S_ISLNK(info.st_mode);
    if (fstatat(folder_fd, item->d_name, &info, 0) != 0) {
        folder->broken_links++;
        return false;
    }
    out->is_folder = S_ISDIR(info.st_mode);
    if (!out->is_folder && !S_ISREG(info.st_mode)) {
        folder->other++;
        return false;
    }
    return true;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const tg_listing_entry *)a)->name, ((const tg_listing_entry *)b)->name);
}

static tg_status append(tg_listing *folder, tg_listing_entry entry, const char *name)
{
    TG_TRY(tg_grow((void **)&folder->entries, &folder->capacity, folder->count + 1,
                   sizeof *folder->entries));
    entry.name = strdup(name);
    if (!entry.name)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for a file name");
    folder->entries[folder->count++] = entry;
    return TG_OK;
}

tg_status tg_listing_read(const char *path, tg_listing *out)
{
    tg_listing folder = {0};
    tg_listing_entry entry;
    tg_status status = TG_OK;
    DIR *stream = opendir(path);
    if (!stream)
        return fail_read(path, errno);
    for (;;) {
        errno = 0;
        const struct dirent *item = readdir(stream);
        if (!item) {
            if (errno != 0)
                status = fail_read(path, errno);
            break;
        }
        if (!classify(dirfd(stream), item, &folder, &entry))
            continue;
        TG_TRY_GOTO(append(&folder, entry, item->d_name), close_stream);
    }
close_stream:
    closedir(stream);
    if (status < 0) {
        tg_listing_done(&folder);
        return status;
    }
    if (folder.count > 1)
        qsort(folder.entries, folder.count, sizeof *folder.entries, compare_names);
    *out = folder;
    return TG_OK;
}

void tg_listing_done(tg_listing *folder)
{
    if (!folder)
        return;
    for (size_t i = 0; i < folder->count; i++)
        free(folder->entries[i].name);
    free(folder->entries);
    *folder = (tg_listing){0};
}

/* The slot that holds the id, or the free slot where it belongs. */
static struct tg_folder_id *find_slot(const tg_seen_folders *set, uint64_t device, uint64_t inode)
{
    uint64_t hash = (inode ^ device * 0x9E3779B97F4A7C15u) * 0xD6E8FEB86659FD93u;
    for (size_t i = (size_t)(hash >> 32);; i++) {
        struct tg_folder_id *slot = &set->slots[i & (set->capacity - 1)];
        if (!slot->used || (slot->device == device && slot->inode == inode))
            return slot;
    }
}

static tg_status rehash(tg_seen_folders *set)
{
    tg_seen_folders bigger = {.count = set->count,
                              .capacity = set->capacity ? set->capacity * 2 : 64};
    bigger.slots = calloc(bigger.capacity, sizeof *bigger.slots);
    if (!bigger.slots)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for the list of folders seen");
    for (size_t i = 0; i < set->capacity; i++)
        if (set->slots[i].used)
            *find_slot(&bigger, set->slots[i].device, set->slots[i].inode) = set->slots[i];
    free(set->slots);
    *set = bigger;
    return TG_OK;
}

tg_status tg_seen_folders_add(tg_seen_folders *set, const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return fail_read(path, errno);
    if (!S_ISDIR(info.st_mode))
        return fail_read(path, ENOTDIR);
    if (set->count * 2 >= set->capacity)
        TG_TRY(rehash(set));
    struct tg_folder_id *slot = find_slot(set, (uint64_t)info.st_dev, (uint64_t)info.st_ino);
    if (slot->used)
        return TG_END;
    *slot = (struct tg_folder_id){(uint64_t)info.st_dev, (uint64_t)info.st_ino, true};
    set->count++;
    return TG_OK;
}

void tg_seen_folders_done(tg_seen_folders *set)
{
    if (!set)
        return;
    free(set->slots);
    *set = (tg_seen_folders){0};
}
