#if defined(__x86_64__)
#include "kern/cpu/rows_table.h"

const tg_rows tg_rows_avx512 = TG_ROWS_TABLE;
#endif
