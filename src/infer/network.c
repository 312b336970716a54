#include "infer/network.h"

#include "ckpt/preset_preprocess.h"

#include <string.h>
#include <sys/stat.h>

bool tg_network_is_path(const char *model)
{
    struct stat st;
    return strchr(model, '/') != NULL || stat(model, &st) == 0;
}

static void apply_width(const tg_network_shape *shape, tg_vit_config *config)
{
    size_t C = (size_t)shape->embed_dim, D = config->embed_dim / config->num_heads;
    config->mlp_hidden = C * (config->mlp_hidden / config->embed_dim);
    if (!shape->num_heads)
        config->num_heads = C % D == 0 ? C / D : 1;
    config->embed_dim = C;
}

/* Overrides of the architecture itself: only for fresh models. */
static void apply_architecture(const tg_network_shape *shape, tg_vit_config *config)
{
    if (shape->embed_dim)
        apply_width(shape, config);
    if (shape->num_heads)
        config->num_heads = (size_t)shape->num_heads;
    if (shape->patch_size)
        config->patch = (size_t)shape->patch_size;
    if (shape->depth)
        config->depth = (size_t)shape->depth;
    if (shape->reg_tokens >= 0)
        config->reg_tokens = (size_t)shape->reg_tokens;
    if (shape->global_pool)
        config->pool = (tg_pool)(shape->global_pool - 1);
    if (shape->num_classes >= 0)
        config->num_classes = (size_t)shape->num_classes;
    if (shape->img_size)
        config->img_h = config->img_w = (size_t)shape->img_size;
}

static tg_status describe_fresh(const tg_network_request *request, tg_model_info *out)
{
    tg_model_info info = {0};
    TG_TRY(tg_vit_config_preset(request->model, &info.config));
    apply_architecture(&request->shape, &info.config);
    TG_TRY(tg_vit_config_check(&info.config));
    info.preprocess = tg_preset_preprocess(&info.config);
    *out = info;
    return TG_OK;
}

static tg_model_want want_of(const tg_network_request *request, const tg_model_info *info)
{
    const tg_network_shape *s = &request->shape;
    tg_model_want want = {.seed = request->seed};
    if (s->img_size)
        want.img_h = want.img_w = (size_t)s->img_size;
    if (request->fresh_head && s->num_classes >= 0 &&
        (size_t)s->num_classes != info->config.num_classes) {
        want.fresh_head = true;
        want.num_classes = (size_t)s->num_classes;
    }
    return want;
}

static tg_status describe_stored(const tg_network_request *request, tg_model_info *out,
                                 tg_model_want *out_want)
{
    const tg_network_shape *s = &request->shape;
    if (s->patch_size || s->embed_dim || s->depth || s->num_heads || s->reg_tokens >= 0 ||
        s->global_pool)
        return tg_fail(TG_ERROR_USAGE,
                       "%s: the architecture of stored weights cannot be changed; leave out "
                       "--patch-size, --embed-dim, --depth, --num-heads, --reg-tokens and "
                       "--global-pool",
                       request->model);
    TG_TRY(tg_model_read_info(request->model, out));
    *out_want = want_of(request, out);
    tg_model_apply_want(out, out_want);
    return TG_OK;
}

tg_status tg_network_describe(const tg_network_request *request, tg_model_info *out)
{
    tg_model_want want;
    if (tg_network_is_path(request->model))
        TG_TRY(describe_stored(request, out, &want));
    else
        TG_TRY(describe_fresh(request, out));
    out->config.drop_path = (float)request->shape.drop_path;
    return TG_OK;
}

static tg_status open_weights(const tg_network_request *request, const tg_model_want *want,
                              tg_network *network)
{
    TG_TRY(tg_vit_params(&network->info.config, &network->table));
    size_t bytes = (network->table.elements + request->extra_floats) * sizeof(float);
    TG_TRY(tg_arena_init(&network->memory, bytes, "model parameters"));
    network->params = tg_arena_alloc(&network->memory, bytes);
    if (network->loaded)
        return tg_model_read_weights(request->model, &network->info, &network->table, want,
                                     network->params);
    tg_vit_init_weights(&network->info.config, &network->table, request->seed, network->params);
    return TG_OK;
}

tg_status tg_network_open(const tg_network_request *request, const tg_kern *kern, tg_stream *stream,
                          tg_network *out)
{
    tg_network network = {.loaded = tg_network_is_path(request->model)};
    tg_model_want want = {0};
    tg_status status;
    if (network.loaded)
        TG_TRY_GOTO(describe_stored(request, &network.info, &want), close_network);
    else
        TG_TRY_GOTO(describe_fresh(request, &network.info), close_network);
    network.info.config.drop_path = (float)request->shape.drop_path;
    TG_TRY_GOTO(open_weights(request, &want, &network), close_network);
    TG_TRY_GOTO(tg_vit_new(&network.info.config, kern, stream, request->dtype, request->trainable,
                           network.params, &network.vit),
                close_network);
    TG_TRY_GOTO(tg_vit_refresh(network.vit), close_network);
    *out = network;
    return TG_OK;
close_network:
    tg_network_close(&network);
    return status;
}

void tg_network_close(tg_network *network)
{
    if (!network)
        return;
    tg_vit_free(network->vit);
    tg_arena_done(&network->memory);
    tg_param_table_done(&network->table);
    tg_model_info_done(&network->info);
    *network = (tg_network){0};
}
