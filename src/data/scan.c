#include "data/scan.h"

#include "base/log.h"
#include "base/text.h"
#include "data/grow.h"
#include "data/quote.h"
#include "os/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Folders still to be entered. Links wait until every real folder has been entered. */
typedef struct todo_item {
    char *path;
    uint32_t part;
    int32_t label;
} todo_item;

typedef struct todo {
    todo_item *items;
    size_t count, capacity, next;
} todo;

static tg_status out_of_memory(void)
{
    return tg_fail(TG_ERROR_MACHINE, "out of memory for the list of photos");
}

static tg_status todo_add(todo *list, char *path, uint32_t part, int32_t label)
{
    if (!path)
        return out_of_memory();
    tg_status status =
        tg_grow((void **)&list->items, &list->capacity, list->count + 1, sizeof *list->items);
    if (status < 0) {
        free(path);
        return status;
    }
    list->items[list->count++] = (todo_item){path, part, label};
    return TG_OK;
}

static void todo_done(todo *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i].path);
    free(list->items);
}

static bool is_photo_extension(const char *extension)
{
    static const char *const known[] = {"jpg", "jpeg", "png", "webp", "heic", "heif"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcasecmp(extension, known[i]) == 0)
            return true;
    return false;
}

static void count_extension(tg_scan *scan, const char *extension)
{
    const size_t room = sizeof scan->extensions / sizeof *scan->extensions;
    char name[sizeof scan->extensions->name] = "";
    for (size_t i = 0; extension[i] && i + 1 < sizeof name; i++) {
        unsigned char c = (unsigned char)extension[i];
        bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c >= 0x80;
        name[i] = c >= 'A' && c <= 'Z' ? (char)(c + 32) : plain ? (char)c : '?';
    }
    scan->passed_over.extension++;
    size_t at = 0;
    while (at < scan->extension_count && strcmp(scan->extensions[at].name, name) != 0)
        at++;
    if (at == room)
        at = room - 1;
    if (at == scan->extension_count) {
        memcpy(scan->extensions[at].name, at == room - 1 ? "others" : name,
               at == room - 1 ? sizeof "others" : sizeof name);
        scan->extension_count++;
    }
    scan->extensions[at].count++;
}

/* Whether the name is a photo's; counts it when not. */
static bool accept_name(tg_scan *scan, const char *name)
{
    const char *dot = strrchr(name, '.');
    const char *extension = dot ? dot + 1 : "";
    if (is_photo_extension(extension))
        return true;
    count_extension(scan, extension);
    return false;
}

static void count_left_out(tg_scan *scan, const tg_listing *folder)
{
    scan->passed_over.hidden += folder->hidden;
    scan->passed_over.broken_links += folder->broken_links;
    scan->passed_over.other += folder->other;
}

static tg_status add_photo(tg_scan *scan, const char *folder, const char *name, uint32_t part,
                           int32_t label)
{
    TG_TRY(tg_grow((void **)&scan->photos, &scan->photo_capacity, scan->photo_count + 1,
                   sizeof *scan->photos));
    char *path = tg_path_join(folder, name);
    if (!path)
        return out_of_memory();
    scan->photos[scan->photo_count++] = (tg_scan_photo){path, part, label};
    return TG_OK;
}

/* Enters one folder: photos are kept, folders below join the lists. */
static tg_status enter(tg_scan *scan, todo_item item, todo *real, todo *linked)
{
    tg_listing folder;
    tg_status status = TG_OK;
    TG_TRY(tg_listing_read(item.path, &folder));
    count_left_out(scan, &folder);
    for (size_t i = 0; i < folder.count; i++) {
        const tg_listing_entry *entry = &folder.entries[i];
        if (entry->is_folder)
            status = todo_add(entry->is_link ? linked : real, tg_path_join(item.path, entry->name),
                              item.part, item.label);
        else if (accept_name(scan, entry->name))
            status = add_photo(scan, item.path, entry->name, item.part, item.label);
        if (status < 0)
            break;
    }
    tg_listing_done(&folder);
    return status;
}

/* Empties both lists, real folders first. `known` first items of each are in the set already. */
static tg_status enter_all(tg_scan *scan, todo *real, todo *linked, size_t real_known,
                           size_t linked_known)
{
    while (real->next < real->count || linked->next < linked->count) {
        todo *list = real->next < real->count ? real : linked;
        size_t index = list->next++;
        bool known = index < (list == real ? real_known : linked_known);
        tg_status fresh = known ? TG_OK : tg_seen_folders_add(&scan->seen, list->items[index].path);
        TG_TRY(fresh);
        if (fresh == TG_OK)
            TG_TRY(enter(scan, list->items[index], real, linked));
    }
    return TG_OK;
}

/* The name goes into the model's config.json, which holds UTF-8 only: other bytes would come back as
 * another name, and the model would not know its own class. */
static tg_status check_class_name(const char *folder, const char *name)
{
    char quoted[TG_QUOTE_BYTES], where[TG_QUOTE_BYTES];
    if (tg_text_is_utf8(name, strlen(name)))
        return TG_OK;
    return tg_fail(TG_ERROR_INPUT,
                   "class folder %s in %s: a class name has to be UTF-8; rename the folder",
                   tg_quote(name, quoted), tg_quote(folder, where));
}

static tg_status add_class(tg_scan *scan, const char *folder, const tg_listing_entry *entry,
                           uint32_t part)
{
    TG_TRY(check_class_name(folder, entry->name));
    TG_TRY(tg_grow((void **)&scan->classes, &scan->class_capacity, scan->class_count + 1,
                   sizeof *scan->classes));
    tg_scan_class item = {.name = strdup(entry->name),
                          .path = tg_path_join(folder, entry->name),
                          .part = part,
                          .is_link = entry->is_link,
                          .label = -1};
    scan->classes[scan->class_count++] = item;
    return item.name && item.path ? TG_OK : out_of_memory();
}

static tg_status list_classes(tg_scan *scan, const char *path, uint32_t part)
{
    tg_listing folder;
    tg_status status = TG_OK;
    TG_TRY(tg_listing_read(path, &folder));
    count_left_out(scan, &folder);
    for (size_t i = 0; i < folder.count && status >= 0; i++) {
        if (folder.entries[i].is_folder)
            status = add_class(scan, path, &folder.entries[i], part);
        else if (accept_name(scan, folder.entries[i].name))
            scan->passed_over.stray++;
    }
    tg_listing_done(&folder);
    return status;
}

tg_status tg_scan_part(tg_scan *scan, const char *path, uint32_t part, bool unlabelled)
{
    char quoted[TG_QUOTE_BYTES];
    tg_status fresh = tg_seen_folders_add(&scan->seen, path);
    TG_TRY(fresh);
    if (fresh == TG_END)
        return tg_fail(TG_ERROR_USAGE, "data folder %s is named twice", tg_quote(path, quoted));
    if (!unlabelled)
        return list_classes(scan, path, part);
    todo real = {0}, linked = {0};
    tg_status status = todo_add(&real, strdup(path), part, -1);
    if (status >= 0)
        status = enter_all(scan, &real, &linked, 1, 0);
    todo_done(&real);
    todo_done(&linked);
    return status;
}

/* Puts the class folder on a list, unless the same folder is there under another name. */
static tg_status queue_class(tg_scan *scan, const tg_scan_class *item, todo *list)
{
    char quoted[TG_QUOTE_BYTES];
    tg_status fresh = tg_seen_folders_add(&scan->seen, item->path);
    TG_TRY(fresh);
    if (fresh == TG_OK)
        return todo_add(list, strdup(item->path), item->part, item->label);
    tg_log_warning("data: class folder %s is a link to a folder that is read under another name; "
                   "its photos are not taken again",
                   tg_quote(item->path, quoted));
    return TG_OK;
}

tg_status tg_scan_classes(tg_scan *scan)
{
    todo real = {0}, linked = {0};
    tg_status status = TG_OK;
    for (int links = 0; links < 2 && status >= 0; links++)
        for (size_t i = 0; i < scan->class_count && status >= 0; i++)
            if (scan->classes[i].is_link == (links == 1) && scan->classes[i].label >= 0)
                status = queue_class(scan, &scan->classes[i], links ? &linked : &real);
    if (status >= 0)
        status = enter_all(scan, &real, &linked, real.count, linked.count);
    todo_done(&real);
    todo_done(&linked);
    return status;
}

static size_t append_count(char *line, size_t room, size_t used, size_t count, const char *what)
{
    if (count == 0 || used >= room)
        return used;
    int n = snprintf(line + used, room - used, "%s%zu %s", used ? ", " : "", count, what);
    return n > 0 ? used + (size_t)n : used;
}

void tg_scan_report(const tg_scan *scan)
{
    char line[1024], what[64];
    size_t used = 0;
    line[0] = 0;
    for (size_t i = 0; i < scan->extension_count; i++) {
        const tg_scan_extension *extension = &scan->extensions[i];
        if (extension->name[0])
            snprintf(what, sizeof what, ".%s", extension->name);
        else
            snprintf(what, sizeof what, "without extension");
        used = append_count(line, sizeof line, used, extension->count, what);
    }
    const tg_passed_over *over = &scan->passed_over;
    used = append_count(line, sizeof line, used, over->hidden, "beginning with a dot");
    used = append_count(line, sizeof line, used, over->broken_links, "broken links");
    used = append_count(line, sizeof line, used, over->stray, "photos outside class folders");
    used = append_count(line, sizeof line, used, over->other, "neither file nor folder");
    if (used > 0)
        tg_log(over->broken_links || over->stray ? TG_LOG_WARNING : TG_LOG_INFO,
               "data: passed over: %s", line);
}

void tg_scan_done(tg_scan *scan)
{
    if (!scan)
        return;
    for (size_t i = 0; i < scan->class_count; i++) {
        free(scan->classes[i].name);
        free(scan->classes[i].path);
    }
    for (size_t i = 0; i < scan->photo_count; i++)
        free(scan->photos[i].path);
    free(scan->classes);
    free(scan->photos);
    tg_seen_folders_done(&scan->seen);
    *scan = (tg_scan){0};
}
