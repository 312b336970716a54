/* config_json.h - config.json (and preprocessor_config.json) of a model folder, both styles.
 *
 * timm       architecture, num_classes, model_args (what differs from the architecture's own
 *            arguments), label_names, pretrained_cfg {input_size, mean, std, crop_pct, ...}. What
 *            timm has no word for stands under "tagine": norm_eps, exif_orientation.
 * HF         model_type vit, deit, dinov2, dinov2_with_registers; id2label; layer_norm_eps; ...
 *            with the preprocessing in preprocessor_config.json.
 *
 * Anything that would make another network than the one we build (SwiGLU, normalised queries, ...)
 * is refused by name; keys that do not change the result are passed over.
 * Errors     TG_ERROR_INPUT with path and key. Memory: as model_folder.h. Reentrant.
 */
#ifndef TG_CKPT_CONFIG_JSON_H
#define TG_CKPT_CONFIG_JSON_H

#include "base/json.h"
#include "ckpt/model_folder.h"

/* Reads `folder`/config.json and what belongs to it. */
tg_status tg_config_json_read(const char *folder, tg_model_info *out) TG_MUST_CHECK;
/* Writes them into an existing folder. TG_ERROR_USAGE when the scheme cannot say it. */
tg_status tg_config_json_write(const char *folder, const tg_model_info *info,
                               tg_naming naming) TG_MUST_CHECK;

/* The two styles; `config` and `preprocessor` are documents' roots, the latter NULL when absent. */
tg_status tg_config_timm_read(const tg_json_node *config, tg_model_info *out) TG_MUST_CHECK;
tg_status tg_config_hf_read(const tg_json_node *config, const tg_json_node *preprocessor,
                            tg_model_info *out) TG_MUST_CHECK;

/* Forgets the class names alone. */
void tg_model_names_done(tg_model_info *info);
/* Class names from an array of strings, or an object "0": name, ...; all of 0..count-1 must be
 * there, none empty and no two equal: a name is how data, teacher and answers meet. number_equal:
 * equal ones get their class number behind them instead ("crane (134)"), said in the log. */
tg_status tg_config_read_names(const tg_json_node *names, bool number_equal,
                               tg_model_info *out) TG_MUST_CHECK;
/* [height, width] from a number or a pair. */
tg_status tg_config_read_size(const tg_json_node *node, size_t out[2]) TG_MUST_CHECK;

#endif
