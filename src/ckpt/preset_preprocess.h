/* preset_preprocess.h - the usual preprocessing of an architecture: what a fresh model starts with
 * and what a config.json leaves open.
 *
 * Mean, std and crop of timm's default weights of the same name (ViT 0.5, others ImageNet's; crop
 * 0.9 at 224, 1.0 above), bicubic, centre crop, the configuration's own image size. An architecture
 * that is no preset gets ImageNet's values and 0.9. Reentrant, no memory.
 */
#ifndef TG_CKPT_PRESET_PREPROCESS_H
#define TG_CKPT_PRESET_PREPROCESS_H

#include "image/preprocess.h"
#include "model/config.h"

tg_preprocess tg_preset_preprocess(const tg_vit_config *config);

#endif
