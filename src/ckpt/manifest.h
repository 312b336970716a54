/* manifest.h - manifest.json: what a folder holds, so that a damaged or mixed one is found out.
 *
 * Format   {"version":1,"files":[{"name":"model/config.json","bytes":N,"crc32":"8 hex digits"},...]}
 *          with every regular file below the folder, sorted by name. CRC-32 as in zlib.
 * Errors   TG_ERROR_INPUT naming the file that is absent, of another size or of another content;
 *          TG_ERROR_MACHINE for the disk. Reentrant.
 */
#ifndef TG_CKPT_MANIFEST_H
#define TG_CKPT_MANIFEST_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/* A file whose sum its writers know. */
typedef struct tg_manifest_file {
    const char *name; /* relative to the folder */
    uint64_t bytes;
    uint32_t crc;
} tg_manifest_file;

/* Writes `folder`'s manifest.json. Files that are not `known` are read; of those that are, the size is
 * compared (TG_ERROR_MACHINE when it differs or one is absent). */
tg_status tg_manifest_write(const char *folder, const tg_manifest_file *known,
                            size_t count) TG_MUST_CHECK;
/* Reads the manifest and all files that it names. */
tg_status tg_manifest_check(const char *folder) TG_MUST_CHECK;

#endif
