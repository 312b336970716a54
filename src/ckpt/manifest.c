#include "ckpt/manifest.h"

#include "base/json.h"
#include "base/text.h"
#include "os/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define MANIFEST "manifest.json"

enum { MAX_MANIFEST_BYTES = 1 << 20, MAX_DEPTH = 4, CHUNK = 1 << 18 };

typedef struct names {
    char **items;
    size_t count;
} names;

static void names_done(names *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i]);
    free(list->items);
    *list = (names){0};
}

static tg_status names_add(names *list, char *name)
{
    char **items = realloc(list->items, (list->count + 1) * sizeof *items);
    if (!items || !name) {
        free(name);
        list->items = items ? items : list->items;
        return tg_fail(TG_ERROR_MACHINE, "out of memory for a manifest");
    }
    list->items = items;
    items[list->count++] = name;
    return TG_OK;
}

static tg_status list_files(const char *root, const char *below, int depth, names *out);

/* `name` relative to the root: a file is noted, a folder walked. */
static tg_status list_entry(const char *root, char *name, int depth, names *out)
{
    struct stat info;
    char *path = name ? tg_path_join(root, name) : NULL;
    bool known = path && lstat(path, &info) == 0;
    free(path);
    if (!known) {
        free(name);
        return tg_fail(TG_ERROR_MACHINE, "%s: cannot be listed", root);
    }
    if (S_ISREG(info.st_mode))
        return names_add(out, name);
    tg_status status = TG_OK;
    if (S_ISDIR(info.st_mode) && depth < MAX_DEPTH)
        status = list_files(root, name, depth + 1, out);
    free(name);
    return status;
}

static tg_status list_files(const char *root, const char *below, int depth, names *out)
{
    char *path = tg_path_join(root, below);
    DIR *dir = path ? opendir(path) : NULL;
    free(path);
    if (!dir)
        return tg_fail(TG_ERROR_MACHINE, "%s/%s: %s", root, below, strerror(errno));
    tg_status status = TG_OK;
    struct dirent *entry;
    while (status == TG_OK && (entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] == '.' || (depth == 0 && strcmp(entry->d_name, MANIFEST) == 0))
            continue;
        char *name = depth ? tg_path_join(below, entry->d_name) : strdup(entry->d_name);
        status = list_entry(root, name, depth, out);
    }
    closedir(dir);
    return status;
}

static tg_status sum_file(const char *path, uint64_t *out_bytes, uint32_t *out_crc)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    unsigned char *chunk = malloc(CHUNK);
    uLong crc = crc32(0, NULL, 0);
    uint64_t bytes = 0;
    ssize_t n = fd < 0 || !chunk ? -1 : 1;
    while (n > 0) {
        n = read(fd, chunk, CHUNK);
        if (n < 0 && errno == EINTR) {
            n = 1;
            continue;
        }
        if (n > 0) {
            crc = crc32(crc, chunk, (uInt)n);
            bytes += (uint64_t)n;
        }
    }
    int error = errno;
    free(chunk);
    if (fd >= 0)
        close(fd);
    if (n < 0)
        return tg_fail(error == ENOENT ? TG_ERROR_INPUT : TG_ERROR_MACHINE, "%s: %s", path,
                       strerror(error));
    *out_bytes = bytes;
    *out_crc = (uint32_t)crc;
    return TG_OK;
}

static tg_status sum_named(const char *folder, const char *name, uint64_t *out_bytes,
                           uint32_t *out_crc)
{
    char *path = tg_path_join(folder, name);
    tg_status status = path ? sum_file(path, out_bytes, out_crc)
                            : tg_fail(TG_ERROR_MACHINE, "out of memory for a manifest");
    free(path);
    return status;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Takes the word of who wrote it for the content, but not for the size. */
static tg_status check_known(const char *folder, const tg_manifest_file *file)
{
    struct stat info;
    char *path = tg_path_join(folder, file->name);
    if (!path)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for a manifest");
    bool same =
        stat(path, &info) == 0 && info.st_size >= 0 && (uint64_t)info.st_size == file->bytes;
    free(path);
    if (same)
        return TG_OK;
    return tg_fail(TG_ERROR_MACHINE, "%s/%s: not there with the %llu bytes that were written",
                   folder, file->name, (unsigned long long)file->bytes);
}

typedef struct knowledge {
    const tg_manifest_file *files;
    size_t count;
} knowledge;

static tg_status sum_listed(const char *folder, const char *name, const knowledge *known,
                            tg_manifest_file *out)
{
    *out = (tg_manifest_file){.name = name};
    for (size_t i = 0; i < known->count; i++)
        if (strcmp(known->files[i].name, name) == 0) {
            *out = known->files[i];
            return TG_OK;
        }
    return sum_named(folder, name, &out->bytes, &out->crc);
}

static tg_status describe(const char *folder, const names *list, const knowledge *known,
                          tg_text *out)
{
    tg_text_append_string(out, "{\"version\":1,\"files\":[");
    for (size_t i = 0; i < list->count; i++) {
        tg_manifest_file file;
        TG_TRY(sum_listed(folder, list->items[i], known, &file));
        tg_text_append_string(out, i ? ",\n{\"name\":" : "\n{\"name\":");
        tg_text_append_json_string(out, file.name, strlen(file.name));
        tg_text_append_format(out, ",\"bytes\":%llu,\"crc32\":\"%08x\"}",
                              (unsigned long long)file.bytes, file.crc);
    }
    tg_text_append_string(out, "\n]}\n");
    return tg_text_check(out, MANIFEST);
}

tg_status tg_manifest_write(const char *folder, const tg_manifest_file *known, size_t count)
{
    names list = {0};
    tg_text text = {0};
    char *path = tg_path_join(folder, MANIFEST);
    tg_status status = path ? TG_OK : tg_fail(TG_ERROR_MACHINE, "out of memory for a manifest");
    TG_TRY_GOTO(status, free_all);
    for (size_t i = 0; i < count; i++)
        TG_TRY_GOTO(check_known(folder, &known[i]), free_all);
    TG_TRY_GOTO(list_files(folder, "", 0, &list), free_all);
    qsort(list.items, list.count, sizeof *list.items, by_name);
    TG_TRY_GOTO(describe(folder, &list, &(knowledge){known, count}, &text), free_all);
    status = tg_file_write(path, text.data, text.length);
free_all:
    free(path);
    tg_text_done(&text);
    names_done(&list);
    return status;
}

static tg_status check_file(const char *folder, const tg_json_node *entry)
{
    const char *name, *crc_text;
    size_t expected;
    uint64_t bytes = 0;
    uint32_t crc = 0;
    char found[16];
    TG_TRY(tg_json_get_string(entry, "name", TG_REQUIRED, &name));
    TG_TRY(tg_json_get_size(entry, "bytes", TG_REQUIRED, &expected));
    TG_TRY(tg_json_get_string(entry, "crc32", TG_REQUIRED, &crc_text));
    if (name[0] == '/' || strstr(name, ".."))
        return tg_json_fail(entry, "a name leads out of the folder");
    TG_TRY(sum_named(folder, name, &bytes, &crc));
    if (bytes != expected)
        return tg_fail(TG_ERROR_INPUT, "%s/%s: %llu bytes, its manifest says %zu", folder, name,
                       (unsigned long long)bytes, expected);
    snprintf(found, sizeof found, "%08x", crc);
    if (strcmp(found, crc_text) != 0)
        return tg_fail(TG_ERROR_INPUT,
                       "%s/%s: the content differs from its manifest (CRC %s, %.16s)", folder, name,
                       found, crc_text);
    return TG_OK;
}

static tg_status check_document(const char *folder, const tg_json *document)
{
    tg_json_node root = tg_json_root(document), files;
    if (tg_json_node_kind(&root) != TG_JSON_OBJECT)
        return tg_json_fail(&root, "not a manifest");
    TG_TRY(tg_json_get_array(&root, "files", TG_REQUIRED, &files, NULL));
    if (tg_json_count(&files) == 0)
        return tg_json_fail(&files, "names no file");
    for (size_t i = 0; i < tg_json_count(&files); i++) {
        tg_json_node entry = tg_json_element(&files, i);
        if (tg_json_node_kind(&entry) != TG_JSON_OBJECT)
            return tg_json_fail(&entry, "not a file's entry");
        TG_TRY(check_file(folder, &entry));
    }
    return TG_OK;
}

tg_status tg_manifest_check(const char *folder)
{
    tg_json document = {0};
    char *path = tg_path_join(folder, MANIFEST), *bytes = NULL;
    size_t length;
    tg_status status = path ? tg_file_read(path, MAX_MANIFEST_BYTES, &bytes, &length)
                            : tg_fail(TG_ERROR_MACHINE, "out of memory for a manifest");
    TG_TRY_GOTO(status, free_all);
    TG_TRY_GOTO(tg_json_parse(bytes, length, path, &document), free_all);
    status = check_document(folder, &document);
free_all:
    tg_json_done(&document);
    free(bytes);
    free(path);
    return status;
}
