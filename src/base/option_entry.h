/* option_entry.h - what option.c (values), option_parse.c (reading) and option_print.c share. */
#ifndef TG_BASE_OPTION_ENTRY_H
#define TG_BASE_OPTION_ENTRY_H

#include "base/option.h"
#include "base/yaml.h"

typedef struct tg_option_entry {
    const tg_option *option;
    void *field;
    tg_option_source source;
} tg_option_entry;

/* Where a value is being read from, for messages. */
typedef struct tg_option_origin {
    tg_option_source source;
    const tg_yaml_node *node; /* FILE */
} tg_option_origin;

/* Reads `text` into the entry's field, or refuses it with the origin's place. */
tg_status tg_option_store(tg_options *options, tg_option_entry *entry, const tg_option_origin *from,
                          const char *text) TG_MUST_CHECK;
/* The entry of a name as typed ('_' counts as '-'), or NULL. */
tg_option_entry *tg_option_find(const tg_options *options, const char *typed, size_t length);

#endif
