/* What config.json says twice or leaves unclear: class names that are empty or equal, and photos of
 * another size than the network is made for. */
#include "support/check.h"

#include "base/log.h"
#include "ckpt/model_folder.h"
#include "os/file.h"
#include "os/folder.h"

#include <stdio.h>
#include <string.h>

static char folder[512], config_path[600], processor_path[600];
static char said[4096]; /* what was logged */

static void listen(void *user, tg_log_level level, const char *line)
{
    (void)user;
    (void)level;
    strncat(said, line, sizeof said - strlen(said) - 1);
    strncat(said, "\n", sizeof said - strlen(said) - 1);
}

static tg_status read_config(const char *config, const char *processor, tg_model_info *out)
{
    said[0] = '\0';
    assert_ok(tg_folder_make(folder));
    assert_ok(tg_file_write(config_path, config, strlen(config)));
    remove(processor_path);
    if (processor)
        assert_ok(tg_file_write(processor_path, processor, strlen(processor)));
    return tg_model_read_info(folder, out);
}

static void refuses(const char *config, const char *processor, const char *part)
{
    tg_model_info info;
    assert_error(read_config(config, processor, &info), TG_ERROR_INPUT, part);
    assert_non_null(strstr(tg_error_message(), processor ? processor_path : config_path));
}

static void takes_size(const char *config, const char *processor, size_t h, size_t w)
{
    tg_model_info info = {0};
    assert_ok(read_config(config, processor, &info));
    assert_int_equal(info.config.img_h, h);
    assert_int_equal(info.config.img_w, w);
    assert_int_equal(info.preprocess.height_px, h);
    assert_int_equal(info.preprocess.width_px, w);
    tg_model_info_done(&info);
}

#define TIMM(names)                                                                                \
    "{\"architecture\":\"vit_tiny_patch16_224\",\"num_classes\":3,\"label_names\":" names "}"
#define HF(names)                                                                                  \
    "{\"model_type\":\"vit\",\"architectures\":[\"ViTForImageClassification\"],"                   \
    "\"id2label\":" names "}"

static void names_are_there_and_differ(void **state)
{
    (void)state;
    tg_model_info info = {0};
    refuses(TIMM("[\"a\",\"b\",\"a\"]"), NULL, "classes 0 and 2 have the same name \"a\"");
    refuses(TIMM("{\"2\":\"b\",\"1\":\"b\",\"0\":\"a\"}"), NULL, "classes 1 and 2");
    refuses(TIMM("[\"a\",\"\",\"c\"]"), NULL, "name of class 1 is empty");
    refuses(TIMM("[\"a\",\"b\",\"  \"]"), NULL, "name of class 2 is empty");
    refuses(HF("{\"0\":\"\",\"1\":\"pie\"}"), NULL, "name of class 0 is empty");
    assert_ok(read_config(TIMM("[\"a\",\"b\",\"A\"]"), NULL, &info)); /* case makes a difference */
    tg_model_info_done(&info);
}

/* The published ImageNet models of the hub have two cranes: the bird and the machine. */
static void equal_names_of_the_hub_are_told_apart(void **state)
{
    (void)state;
    tg_model_info info = {0};
    assert_ok(read_config(HF("{\"0\":\"crane\",\"1\":\"pie\",\"2\":\"crane\"}"), NULL, &info));
    assert_string_equal(info.class_names[0], "crane (0)");
    assert_string_equal(info.class_names[1], "pie");
    assert_string_equal(info.class_names[2], "crane (2)");
    assert_non_null(strstr(said, "\"crane (2)\""));
    tg_model_info_done(&info);
    refuses(HF("{\"0\":\"crane\",\"1\":\"crane (2)\",\"2\":\"crane\"}"), NULL, "the same name");
}

#define SIZED(args, input)                                                                         \
    "{\"architecture\":\"vit_tiny_patch16_224\",\"model_args\":{" args "},"                        \
    "\"pretrained_cfg\":{\"input_size\":" input "}}"

static void photos_have_the_networks_size(void **state)
{
    (void)state;
    takes_size(SIZED("", "[3,64,32]"), NULL, 64, 32);
    takes_size(SIZED("\"img_size\":[64,32]", "[3,64,32]"), NULL, 64, 32);
    takes_size("{\"architecture\":\"vit_tiny_patch16_224\",\"model_args\":{\"img_size\":64}}", NULL,
               64, 64);
    refuses(SIZED("\"img_size\":32", "[3,64,64]"), NULL,
            "the photos are 64x64, but model_args.img_size makes a network for 32x32");
    refuses(SIZED("\"img_size\":32,\"dynamic_img_size\":false", "[3,32,64]"), NULL, "32x64");
    takes_size(SIZED("\"img_size\":32,\"dynamic_img_size\":true", "[3,64,64]"), NULL, 64, 64);
}

#define CROP(px)                                                                                   \
    "{\"size\":{\"shortest_edge\":256},\"do_center_crop\":true,"                                   \
    "\"crop_size\":{\"height\":" px ",\"width\":" px "}}"
#define SQUASH(px) "{\"size\":{\"height\":" px ",\"width\":" px "}}"

static void processors_have_the_networks_size(void **state)
{
    (void)state;
    takes_size("{\"model_type\":\"vit\"}", SQUASH("224"), 224, 224);
    takes_size("{\"model_type\":\"deit\"}", CROP("224"), 224, 224);
    takes_size("{\"model_type\":\"vit\"}", "{\"size\":{\"shortest_edge\":300}}", 224, 224);
    refuses("{\"model_type\":\"vit\"}", SQUASH("384"),
            "the photos are 384x384, but image_size in config.json is 224x224");
    refuses("{\"model_type\":\"deit\"}", CROP("192"), "192x192");
    /* DINOv2 takes any size */
    takes_size("{\"model_type\":\"dinov2\",\"image_size\":518,\"patch_size\":14}", CROP("224"), 224,
               224);
    takes_size("{\"model_type\":\"dinov2\",\"image_size\":518,\"patch_size\":14}", NULL, 518, 518);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_there_and_differ),
        cmocka_unit_test(equal_names_of_the_hub_are_told_apart),
        cmocka_unit_test(photos_have_the_networks_size),
        cmocka_unit_test(processors_have_the_networks_size),
    };
    snprintf(folder, sizeof folder, "%s/m", tg_test_temp_dir());
    snprintf(config_path, sizeof config_path, "%s/config.json", folder);
    snprintf(processor_path, sizeof processor_path, "%s/preprocessor_config.json", folder);
    tg_log_set(listen, NULL, TG_LOG_INFO);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
