/* folder.h - whole folders: made, replaced in one step, removed, cleaned of what killed writers
 * left.
 *
 * See file.h for how writing aside works, its guarantees, errors and threads.
 */
#ifndef TG_OS_FOLDER_H
#define TG_OS_FOLDER_H

#include "base/status.h"

/* A folder written aside: begin makes an empty folder temp_path; fill it by any means; commit
 * forces every file in it to disk and swaps it with the target, whose old content is then removed.
 */
typedef struct tg_new_folder {
    char *path;
    char *temp_path; /* NULL once committed */
    int fd;          /* holds the lock */
} tg_new_folder;

tg_status tg_new_folder_open(const char *path, tg_new_folder *out) TG_MUST_CHECK;
tg_status tg_new_folder_commit(tg_new_folder *folder) TG_MUST_CHECK;
void tg_new_folder_discard(tg_new_folder *folder);

/* Makes the folder and those above it; one that exists (or that another process makes meanwhile) is
 * fine, and where others remove one of them meanwhile it begins again, for TG_FILE_PATIENCE_S (file.h). */
tg_status tg_folder_make(const char *path) TG_MUST_CHECK;
/* Removes a file or a folder with all that is in it; links are removed, not followed. Absent is
 * fine. */
tg_status tg_tree_remove(const char *path) TG_MUST_CHECK;
/* Removes the temporaries in `folder` whose writers are gone, and puts an old folder back whose
 * swap was cut half-way on a file system that cannot swap in one step. An absent folder is fine. */
tg_status tg_temp_clean(const char *folder) TG_MUST_CHECK;
/* Forces the entries of a folder to disk (after a rename in it). */
tg_status tg_folder_sync(const char *path) TG_MUST_CHECK;

#endif
