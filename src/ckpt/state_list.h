/* state_list.h - the step folders of a checkpoint folder, and which of them go.
 *
 * Memory  a tg_state_list owns its entries. Reentrant; the folder may change meanwhile.
 */
#ifndef TG_CKPT_STATE_LIST_H
#define TG_CKPT_STATE_LIST_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tg_state_list {
    int64_t *steps; /* newest first */
    size_t count;
} tg_state_list;

/* Names of the form step-<digits>; an absent folder gives an empty list. */
tg_status tg_state_list_read(const char *folder, tg_state_list *out) TG_MUST_CHECK;
void tg_state_list_done(tg_state_list *list);

/* "FOLDER/step-N", from malloc; NULL when memory is short. */
char *tg_state_step_path(const char *folder, int64_t step);
/* Makes FOLDER/`name` lead to step-N, in one step. */
tg_status tg_state_link(const char *folder, const char *name, int64_t step) TG_MUST_CHECK;
/* The step that FOLDER/`name` leads to; -1 when it leads to none. */
int64_t tg_state_linked_step(const char *folder, const char *name);

/* Removes the step folders that state.h does not promise to keep. */
tg_status tg_state_rotate(const char *folder, size_t keep) TG_MUST_CHECK;

#endif
