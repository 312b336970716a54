/* Ten optimizer steps of plain training and of every distillation loss give PyTorch's losses,
 * gradient norms and weights (limits: docs/NUMERICS.md). */
#include "support/check.h"
#include "support/device.h"
#include "support/golden.h"

#include "train/step.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { STEPS = 10, BATCHES = 2, B = 4 };

static tg_stream *stream;
static tg_json index_file;
static tg_safetensors inputs;

/* One model with its weights in a flat buffer that has room for the projection. */
typedef struct network {
    tg_vit_config config;
    tg_param_table table;
    float *params;
    tg_vit *vit;
} network;

typedef struct sequence {
    tg_json_node node;
    const char *name;
    const tg_kern *kern;
    tg_arena data, arena;
    network student, teacher;
    tg_projection projection;
    tg_optimizer optimizer;
    tg_step step;
} sequence;

/* Appends the projection to the student's parameters, as the recipe does: last layer's rate. */
static void add_projection(network *student, size_t C_t)
{
    const size_t shape[] = {C_t, student->config.embed_dim};
    int top = (int)student->config.depth + 1;
    assert_ok(tg_param_add(&student->table, "projection.weight", 2, shape, top, true));
    assert_ok(tg_param_add(&student->table, "projection.bias", 1, shape, top, false));
}

static float *floats(sequence *q, size_t count)
{
    float *out = tg_arena_alloc(&q->data, count * sizeof *out);
    assert_non_null(out);
    memset(out, 0, count * sizeof *out);
    return out;
}

/* Weights of `prefix`, the projection's from its own. */
static void read_start(sequence *q, network *n, const char *prefix)
{
    n->params = floats(q, n->table.elements);
    for (size_t i = 0; i < n->table.count; i++) {
        const tg_param *p = &n->table.items[i];
        char name[2 * TG_PARAM_NAME_BYTES];
        bool projection = strncmp(p->name, "projection.", 11) == 0;
        snprintf(name, sizeof name, "%s%s%s", projection ? "" : prefix, projection ? "" : "/",
                 p->name);
        for (char *c = name; projection && *c; c++)
            if (*c == '.') {
                *c = '/';
                break;
            }
        memcpy(n->params + p->offset, tg_golden_tensor(&inputs, name, p->count, &q->data),
               p->count * sizeof(float));
    }
}

static void open_network(sequence *q, network *n, const tg_json_node *config, const char *prefix,
                         bool trainable, size_t projection_to)
{
    tg_golden_config(config, &n->config);
    assert_ok(tg_vit_params(&n->config, &n->table));
    if (projection_to)
        add_projection(n, projection_to);
    read_start(q, n, prefix);
    assert_ok(tg_vit_new(&n->config, q->kern, stream, TG_F32, trainable, n->params, &n->vit));
    assert_ok(tg_vit_refresh(n->vit));
}

static tg_kd_loss kd_loss_of(const char *name)
{
    if (strcmp(name, "kl") == 0)
        return TG_KD_KL;
    if (strcmp(name, "hard") == 0)
        return TG_KD_HARD;
    return strcmp(name, "feature") == 0 ? TG_KD_FEATURE : TG_KD_NONE;
}

static tg_objective objective_of(const tg_json_node *s)
{
    bool mean = strcmp(tg_golden_string(s, "kd_reduction"), "mean") == 0;
    return (tg_objective){.kd = kd_loss_of(tg_golden_string(s, "kd_loss")),
                          .alpha = tg_golden_number(s, "kd_alpha"),
                          .temperature = tg_golden_number(s, "kd_temperature"),
                          .reduction = mean ? TG_KD_MEAN : TG_KD_BATCHMEAN};
}

static void open_projection(sequence *q)
{
    const tg_param *w = tg_param_find(&q->student.table, "projection.weight");
    const tg_param *b = tg_param_find(&q->student.table, "projection.bias");
    q->projection = (tg_projection){.bias = q->student.params + b->offset,
                                    .dw = q->step.grads + w->offset,
                                    .db = q->step.grads + b->offset,
                                    .C_s = w->shape[1],
                                    .C_t = w->shape[0],
                                    .dtype = TG_F32};
    assert_ok(q->kern->linear.weight_new(stream, w->shape[0], w->shape[1], TG_F32, true,
                                         &q->projection.weight));
    q->step.projection_params = q->student.params + w->offset;
    assert_ok(
        q->kern->linear.weight_refresh(stream, q->projection.weight, q->step.projection_params));
    q->step.projection = &q->projection;
}

static void open_optimizer(sequence *q)
{
    const tg_optimizer_options options = {.beta1 = tg_golden_number(&q->node, "beta1"),
                                          .beta2 = tg_golden_number(&q->node, "beta2"),
                                          .eps = tg_golden_number(&q->node, "eps"),
                                          .weight_decay =
                                              tg_golden_number(&q->node, "weight_decay"),
                                          .layer_decay = tg_golden_number(&q->node, "layer_decay"),
                                          .clip_grad = tg_golden_number(&q->node, "clip_grad")};
    size_t n = q->student.table.elements;
    assert_ok(tg_optimizer_init(&q->optimizer, &options, q->kern, stream, &q->student.table,
                                q->student.params, floats(q, n), floats(q, n), NULL));
}

static void open_models(sequence *q, tg_kd_loss kd)
{
    tg_json_node root = tg_json_root(&index_file), students, student, teacher;
    const char *which = tg_golden_string(&q->node, "student");
    assert_ok(tg_json_get_object(&root, "students", TG_REQUIRED, &students, NULL));
    assert_ok(tg_json_get_object(&students, which, TG_REQUIRED, &student, NULL));
    assert_ok(tg_json_get_object(&root, "teacher", TG_REQUIRED, &teacher, NULL));
    if (kd != TG_KD_NONE)
        open_network(q, &q->teacher, &teacher, "teacher", false, 0);
    size_t C_t = kd == TG_KD_FEATURE ? q->teacher.config.embed_dim : 0;
    open_network(q, &q->student, &student, which, true, C_t);
}

static void sequence_open(sequence *q, tg_json_node node, const tg_kern *kern)
{
    *q = (sequence){.node = node, .name = tg_golden_string(&node, "name"), .kern = kern};
    assert_ok(tg_arena_init(&q->data, 1 << 22, "golden tensors"));
    tg_objective objective = objective_of(&node);
    open_models(q, objective.kd);
    open_optimizer(q);
    q->step = (tg_step){.kern = kern,
                        .stream = stream,
                        .student = q->student.vit,
                        .teacher = q->teacher.vit,
                        .objective = objective,
                        .optimizer = &q->optimizer,
                        .arena = &q->arena,
                        .grads = floats(q, q->student.table.elements),
                        .num_classes = q->student.config.num_classes,
                        .mean_over = B};
    if (objective.kd == TG_KD_FEATURE)
        open_projection(q);
    assert_ok(tg_arena_init(&q->arena, tg_step_arena_bytes(&q->step, B, TG_F32), "a step"));
}

static void network_close(network *n)
{
    tg_vit_free(n->vit);
    tg_param_table_done(&n->table);
}

static void sequence_close(sequence *q)
{
    q->kern->linear.weight_free(q->projection.weight);
    tg_optimizer_done(&q->optimizer);
    network_close(&q->student);
    network_close(&q->teacher);
    tg_arena_done(&q->arena);
    tg_arena_done(&q->data);
}

/* Pictures of one model, [BATCHES,B,3,S,S]. */
static float *pictures(sequence *q, const char *name, const tg_vit_config *config, int batch)
{
    size_t count = (size_t)B * 3 * config->img_h * config->img_w;
    float *all = tg_golden_tensor(&inputs, name, BATCHES * count, &q->data);
    return all + (size_t)batch * count;
}

/* (1 - e) onehot + e/K */
static float *smoothed_targets(sequence *q, int batch)
{
    const size_t K = q->step.num_classes;
    double smoothing = tg_golden_number(&q->node, "smoothing");
    const float *labels = tg_golden_tensor(&inputs, "labels", BATCHES * B, &q->data);
    float *target = floats(q, B * K);
    for (size_t b = 0; b < B; b++)
        for (size_t k = 0; k < K; k++) {
            bool hit = k == (size_t)labels[(size_t)batch * B + b];
            target[b * K + k] = (float)((hit ? 1 - smoothing : 0) + smoothing / (double)K);
        }
    return target;
}

static void near(const sequence *q, int step, const char *what, double got, double want,
                 double rtol)
{
    if (!(fabs(got - want) <= rtol * fabs(want)))
        fail_msg("%s (%s) step %d: %s %.9g, PyTorch %.9g, off by %.3g relative", q->name,
                 q->kern->name, step, what, got, want, fabs(got / want - 1));
}

static void run_step(sequence *q, int step, double lr, const tg_json_node *want)
{
    static const uint64_t order[B] = {0, 1, 2, 3};
    size_t mark = tg_arena_mark(&q->data);
    int batch = step % BATCHES;
    tg_batch data = {.count = B,
                     .image = pictures(q, "student_image", &q->student.config, batch),
                     .target = smoothed_targets(q, batch),
                     .sample_index = (uint64_t *)order};
    if (q->teacher.vit)
        data.teacher_image = pictures(q, "teacher_image", &q->teacher.config, batch);
    tg_step_report report;
    assert_ok(tg_step_micro(&q->step, &data, 0, true));
    assert_ok(tg_step_update(&q->step, lr, 0, &report));
    assert_false(report.skipped);
    near(q, step, "loss", report.loss, tg_golden_number(want, "loss"), TG_GOLDEN_FORWARD);
    if (!isnan(report.task) || q->step.objective.alpha < 1)
        near(q, step, "task", report.task, tg_golden_number(want, "loss_task"), TG_GOLDEN_FORWARD);
    if (q->teacher.vit)
        near(q, step, "kd", report.kd, tg_golden_number(want, "loss_kd"), TG_GOLDEN_FORWARD);
    near(q, step, "gradient norm", report.grad_norm, tg_golden_number(want, "grad_norm"),
         TG_GOLDEN_FORWARD);
    tg_arena_release(&q->data, mark);
}

/* Relative to the tensor's largest weight; the bias of keys, whose gradient is zero by symmetry,
 * within the sum of the learning rates. */
static void weights_agree(sequence *q, const double *lr)
{
    double moved = 0;
    tg_safetensors final;
    for (int i = 0; i < STEPS; i++)
        moved += lr[i];
    tg_golden_open(tg_golden_string(&q->node, "file"), &final);
    for (size_t i = 0; i < q->student.table.count; i++) {
        const tg_param *p = &q->student.table.items[i];
        char name[2 * TG_PARAM_NAME_BYTES], what[3 * TG_PARAM_NAME_BYTES];
        snprintf(name, sizeof name, "final/%s", p->name);
        snprintf(what, sizeof what, "%s (%s): %s", q->name, q->kern->name, name);
        const float *want = tg_golden_tensor(&final, name, p->count, &q->data);
        float *got = q->student.params + p->offset;
        size_t third = strstr(p->name, "attn.qkv.bias") ? p->count / 3 : 0;
        assert_close(got + third, want + third, third, moved, 0, what);
        memcpy(got + third, want + third, third * sizeof *got);
        assert_close(got, want, p->count, 0, TG_GOLDEN_FORWARD, what);
    }
    tg_safetensors_close(&final);
}

static void ten_steps(tg_json_node node, const tg_kern *kern)
{
    sequence q;
    double lr[STEPS];
    tg_json_node steps;
    sequence_open(&q, node, kern);
    assert_ok(tg_json_get_doubles(&node, "lr", TG_REQUIRED, STEPS, lr));
    assert_ok(tg_json_get_array(&node, "steps", TG_REQUIRED, &steps, NULL));
    for (int i = 0; i < STEPS; i++) {
        tg_json_node want = tg_json_element(&steps, (size_t)i);
        run_step(&q, i, lr[i], &want);
    }
    weights_agree(&q, lr);
    sequence_close(&q);
}

static void every_sequence(const tg_kern *kern)
{
    tg_json_node root = tg_json_root(&index_file), training;
    assert_ok(tg_json_get_array(&root, "training", TG_REQUIRED, &training, NULL));
    assert_int_equal(tg_json_count(&training), 10);
    for (size_t i = 0; i < tg_json_count(&training); i++)
        ten_steps(tg_json_element(&training, i), kern);
}

static void reference_table(void **state)
{
    (void)state;
    every_sequence(tg_kern_ref());
}

static void selected_table(void **state)
{
    (void)state;
    every_sequence(tg_kern_select(stream));
}

static int begin(void **state)
{
    (void)state;
    stream = tg_test_stream();
    tg_golden_index(&index_file);
    tg_golden_open("train_inputs.safetensors", &inputs);
    return 0;
}

static int end(void **state)
{
    (void)state;
    tg_safetensors_close(&inputs);
    tg_json_done(&index_file);
    tg_stream_close(stream);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reference_table),
        cmocka_unit_test(selected_table),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
