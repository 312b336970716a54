/* rows_table.h - initialiser of a tg_rows with the kernels that this file was compiled for. */
#ifndef TG_KERN_CPU_ROWS_TABLE_H
#define TG_KERN_CPU_ROWS_TABLE_H

#include "kern/cpu/gelu_rows.h"
#include "kern/cpu/loss_rows.h"
#include "kern/cpu/norm_rows.h"
#include "kern/cpu/optim_rows.h"
#include "kern/cpu/tokens_rows.h"

#define TG_ROWS_TABLE                                                                              \
    {                                                                                              \
        .norm_forward = norm_forward_rows, .norm_backward = norm_backward_rows,                    \
        .gelu_forward = gelu_forward_rows, .gelu_backward = gelu_backward_rows,                    \
        .column_sums = column_sums_rows, .patch_rows = patch_rows,                                 \
        .tokens_assemble = tokens_assemble_rows, .tokens_backward = tokens_backward_rows,          \
        .tokens_mean = tokens_mean_rows, .tokens_mean_backward = tokens_mean_backward_rows,        \
        .convert = convert_rows, .cross_entropy = cross_entropy_row, .kl = kl_row,                 \
        .squared_error = squared_error_row, .adamw = adamw_rows, .sum_squares = sum_squares_rows,  \
        .average = average_rows,                                                                   \
    }

#endif
