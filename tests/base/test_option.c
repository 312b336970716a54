/* The option table: both ways to give a value, who wins, what is refused, and that what is printed
 * reads back. */
#include "support/check.h"

#include "base/option.h"

#include <locale.h>
#include <math.h>
#include <string.h>

typedef struct settings {
    bool amp, flip;
    int64_t epochs, workers;
    double lr, clip_grad, near;
    const char *output, *data, *config;
    int opt;
    tg_option_doubles mean;
} settings;

static const char *const OPTS[] = {"adamw", "sgd", NULL};

#define AT(field) offsetof(settings, field)
static const tg_option OPTIONS[] = {
    {.name = "amp", .type = TG_OPTION_BOOL, .offset = AT(amp), .help = "mixed precision"},
    {.name = "flip", .type = TG_OPTION_BOOL, .offset = AT(flip), .initial = "true", .help = "flip"},
    {.name = "epochs",
     .letter = 'e',
     .type = TG_OPTION_INT,
     .offset = AT(epochs),
     .initial = "10",
     .metavar = "N",
     .help = "passes over the data",
     .low = 1,
     .high = 1e6},
    {.name = "workers",
     .type = TG_OPTION_INT,
     .offset = AT(workers),
     .initial = "auto",
     .metavar = "N",
     .help = "decoding threads",
     .flags = TG_OPTION_AUTO},
    {.name = "lr",
     .type = TG_OPTION_DOUBLE,
     .offset = AT(lr),
     .initial = "5e-4",
     .metavar = "RATE",
     .help = "learning rate",
     .low = 0,
     .high = 10,
     .flags = TG_OPTION_SOFT_LOW},
    {.name = "clip-grad",
     .type = TG_OPTION_DOUBLE,
     .offset = AT(clip_grad),
     .metavar = "NORM",
     .help = "clip the gradient's norm"},
    {.name = "output",
     .letter = 'o',
     .type = TG_OPTION_STRING,
     .offset = AT(output),
     .metavar = "DIR",
     .help = "where the run is written"},
    {.name = "data",
     .type = TG_OPTION_STRING,
     .offset = AT(data),
     .metavar = "DIR",
     .help = "where the photos are",
     .flags = TG_OPTION_FOLDER},
    {.name = "near",
     .type = TG_OPTION_DOUBLE,
     .offset = AT(near),
     .help = "limits of both kinds",
     .low = -1048576,
     .high = 0.015},
    {.name = "opt",
     .type = TG_OPTION_CHOICE,
     .offset = AT(opt),
     .initial = "adamw",
     .choices = OPTS,
     .help = "optimizer"},
    {.name = "mean",
     .type = TG_OPTION_DOUBLES,
     .offset = AT(mean),
     .metavar = "R G B",
     .help = "mean of the channels"},
    {.name = "config",
     .type = TG_OPTION_STRING,
     .offset = AT(config),
     .metavar = "FILE",
     .help = "YAML file with options",
     .flags = TG_OPTION_NO_CONFIG},
};

static settings got;
static const tg_option_group GROUPS[] = {{"Training", OPTIONS, 12, &got}};

#define PARSE(options, ...) parse((options), (const char *const[]){__VA_ARGS__, NULL})
static tg_status parse(tg_options *options, const char *const *argv)
{
    int count = 0;
    while (argv[count])
        count++;
    TG_TRY(tg_options_init(options, GROUPS, 1));
    return tg_options_parse_arguments(options, count, argv);
}

static tg_status add_yaml(tg_options *options, const char *text)
{
    return tg_options_parse_yaml(options, text, strlen(text), "c.yaml");
}

static void defaults(void **state)
{
    (void)state;
    tg_options options;
    assert_ok(tg_options_init(&options, GROUPS, 1));
    assert_true(!got.amp && got.flip && got.epochs == 10 && got.lr == 5e-4 && got.opt == 0);
    assert_int_equal(got.workers, TG_OPTION_AUTO_VALUE);
    assert_true(isnan(got.clip_grad));
    assert_null(got.output);
    assert_int_equal(got.mean.count, 0);
    tg_options_done(&options);
    tg_options_done(&options);
}

static void arguments(void **state)
{
    (void)state;
    tg_options options;
    assert_ok(PARSE(&options, "--amp", "--no-flip", "--epochs=3", "-e4", "a.jpg", "--workers", "2",
                    "--lr", "0.001", "-o", "out dir", "--opt", "sgd", "--mean", "0.5", "0.25",
                    "1e-1", "b.jpg", "--clip_grad", "1", "--", "--amp", "-"));
    assert_true(got.amp && !got.flip && got.epochs == 4 && got.workers == 2 && got.lr == 0.001);
    assert_string_equal(got.output, "out dir");
    assert_int_equal(got.opt, 1);
    assert_true(got.clip_grad == 1);
    assert_int_equal(got.mean.count, 3);
    assert_true(got.mean.values[0] == 0.5 && got.mean.values[2] == 0.1);
    assert_int_equal(options.positional_count, 4);
    assert_string_equal(options.positionals[1], "b.jpg");
    assert_string_equal(options.positionals[2], "--amp");
    tg_options_done(&options);
    assert_ok(PARSE(&options, "--amp=no", "--mean=0.1,0.2"));
    assert_true(!got.amp && got.mean.count == 2);
    tg_options_done(&options);
}

static void refused_arguments(void **state)
{
    (void)state;
    const struct {
        const char *argument, *value, *part;
    } cases[] = {
        {"--epoch", "3", "unknown option --epoch; did you mean --epochs?"},
        {"--learning-rate=3", NULL, "unknown option --learning-rate; here it is --lr"},
        {"--no-epochs", NULL, "unknown option --no-epochs"},
        {"-z", NULL, "unknown option -z"},
        {"--epochs", NULL, "--epochs needs a value: --epochs N"},
        {"--output", "--amp", "--output needs a value: --output DIR"},
        {"--epochs", "1.5", "--epochs: \"1.5\" is not a whole number"},
        {"--epochs", "0", "\"0\" is below 1"},
        {"--epochs", "auto", "is not a whole number"},
        {"--workers", "many", "neither a whole number nor auto"},
        {"--lr", "0,001", "\"0,001\" is not a number like 0.5"},
        {"--lr", "0", "has to be above 0"},
        {"--lr", "11", "above the highest allowed, 10"},
        {"--lr", "nan", "is not a number"},
        {"--opt", "adam", "is not one of adamw, sgd"},
        {"--amp=perhaps", NULL, "is not true or false"},
        {"--epochs", "1000001", "\"1000001\" is above the highest allowed, 1000000"},
        {"--near", "1", "is above the highest allowed, 0.015"},
        {"--near", "-1048577", "is below -1048576, the lowest allowed"},
        {"--data=", NULL, "--data: \"\" is the name of nothing"},
        {"--mean", "1,x", "\"x\" is not a number"},
        {"--mean", "1,2,3,4,5,6,7,8,9", "too many"},
        {"--mean=0.5", "0.25", "--mean 0.5 0.25, or has commas, --mean=0.5,0.25"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tg_options options;
        assert_error(PARSE(&options, cases[i].argument, cases[i].value), TG_ERROR_USAGE,
                     cases[i].part);
        tg_options_done(&options);
    }
}

static void arguments_win_over_the_file(void **state)
{
    (void)state;
    tg_options options;
    assert_ok(PARSE(&options, "--lr", "1"));
    assert_ok(add_yaml(&options, "lr: 2\nepochs: 7\namp: yes\nworkers: auto\nclip_grad:\n"
                                 "mean: [0.5, 1]\nopt: sgd\noutput: 007\n"));
    assert_true(got.lr == 1 && got.epochs == 7 && got.amp && got.opt == 1 && got.mean.count == 2);
    assert_string_equal(got.output, "007");
    assert_true(isnan(got.clip_grad));
    assert_int_equal(tg_options_source(&options, "lr"), TG_OPTION_FROM_ARGUMENTS);
    assert_int_equal(tg_options_source(&options, "epochs"), TG_OPTION_FROM_FILE);
    assert_int_equal(tg_options_source(&options, "flip"), TG_OPTION_FROM_DEFAULT);
    tg_options_done(&options);
}

static void refused_files(void **state)
{
    (void)state;
    const char *cases[][2] = {
        {"lr: 1\nepoch: 3\n",
         "c.yaml: line 2, column 8: epoch: unknown option; did you mean epochs?"},
        {"lr: 0,5\n", "c.yaml: line 1, column 5: lr: \"0,5\" is not a number"},
        {"epochs: [1]\n", "expected a single value, found a list"},
        {"epochs: {a: 1}\n", "expected a single value, found a map"},
        {"config: x\n", "only be given on the command line"},
        {"- lr\n", "expected lines like"},
        {"lr: 1\nlr: 2\n", "appears twice"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tg_options options;
        assert_ok(tg_options_init(&options, GROUPS, 1));
        assert_error(add_yaml(&options, cases[i][0]), TG_ERROR_USAGE, cases[i][1]);
        tg_options_done(&options);
    }
}

static void printed_options_read_back(void **state)
{
    (void)state;
    const char *outputs[] = {"plain/x.y", "a: b #c", "no", "1e5", "tab\there \"q\"", ""};
    for (size_t i = 0; i < sizeof outputs / sizeof outputs[0]; i++) {
        tg_options options;
        tg_text first = {0}, second = {0};
        assert_ok(PARSE(&options, "--amp", "--lr", "1e-5", "--mean", "0.1,3", "-o", outputs[i]));
        tg_options_print(&options, &first);
        assert_non_null(strstr(first.data, "lr: 1.0e-05\n"));
        assert_non_null(strstr(first.data, "# clip-grad:\n"));
        assert_non_null(strstr(first.data, "workers: auto\n"));
        assert_null(strstr(first.data, "config"));
        tg_options_done(&options);
        assert_ok(tg_options_init(&options, GROUPS, 1));
        assert_ok(add_yaml(&options, first.data));
        assert_string_equal(got.output, outputs[i]);
        assert_true(got.amp && got.lr == 1e-5 && got.mean.count == 2 && got.mean.values[0] == 0.1);
        tg_options_print(&options, &second);
        assert_string_equal(first.data, second.data);
        tg_options_done(&options);
        tg_text_done(&first);
        tg_text_done(&second);
    }
}

static void help_fits_and_names_everything(void **state)
{
    (void)state;
    tg_text text = {0};
    tg_options_help(GROUPS, 1, &text);
    for (size_t i = 0; i < 10; i++)
        assert_non_null(strstr(text.data, OPTIONS[i].name));
    assert_non_null(strstr(text.data, "--[no-]flip"));
    assert_non_null(strstr(text.data, "-e, --epochs N"));
    assert_non_null(strstr(text.data, "--opt adamw|sgd"));
    assert_non_null(strstr(text.data, "[5e-4]"));
    for (const char *line = text.data; *line;) {
        size_t length = strcspn(line, "\n");
        assert_true(length <= TG_HELP_WIDTH);
        line += length + 1;
    }
    tg_text_done(&text);
}

static void same_in_any_locale(void **state)
{
    (void)state;
    if (!setlocale(LC_ALL, "de_DE.UTF-8"))
        skip();
    arguments(NULL);
    printed_options_read_back(NULL);
    setlocale(LC_ALL, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),
        cmocka_unit_test(arguments),
        cmocka_unit_test(refused_arguments),
        cmocka_unit_test(arguments_win_over_the_file),
        cmocka_unit_test(refused_files),
        cmocka_unit_test(printed_options_read_back),
        cmocka_unit_test(help_fits_and_names_everything),
        cmocka_unit_test(same_in_any_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
