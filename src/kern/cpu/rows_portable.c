#include "kern/cpu/rows_table.h"

const tg_rows tg_rows_portable = TG_ROWS_TABLE;
