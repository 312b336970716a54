/* attention_exp2.h - the table behind tg_exp2_near_ps of attention_avx512bf16.h. */
#ifndef TG_KERN_CPU_ATTENTION_EXP2_H
#define TG_KERN_CPU_ATTENTION_EXP2_H

#include <stdint.h>

extern const uint32_t tg_exp2_table_words[32];

#endif
