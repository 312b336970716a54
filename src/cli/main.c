/* tagine COMMAND [OPTION]...: finds the command, resolves its options, runs it, and turns its
 * status into the exit code. */
#include "base/log.h"
#include "base/nearest.h"
#include "base/number.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/options_parallel.h"
#include "dev/dev.h"
#include "os/cpu.h"
#include "os/file.h"
#include "cli/signal.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { CONFIG_MAX_BYTES = 4 << 20 };

/* The scheduler's share of cores; 0 when there is none. */
static int scheduler_cpus(void)
{
    const char *text = getenv("SLURM_CPUS_PER_TASK");
    int64_t value;
    if (text && tg_number_parse_i64(text, strlen(text), &value) && value > 0 && value < 1 << 20)
        return (int)value;
    return 0;
}

void tg_invocation_share(tg_cpu_share *out)
{
    tg_cpu_share_read("", 0, scheduler_cpus(), out);
}

int tg_invocation_threads(const tg_invocation *invocation)
{
    tg_cpu_share share;
    if (invocation->common->threads != TG_OPTION_AUTO_VALUE)
        return (int)invocation->common->threads;
    tg_invocation_share(&share);
    return share.cpus < tg_dev_thread_limit() ? share.cpus : tg_dev_thread_limit();
}

/* A message is shown even with --quiet. */
static int report(const char *name, tg_status status)
{
    tg_console_close();
    if (status >= 0)
        return 0;
    if (tg_console_reader_left()) { /* as a program that does not catch SIGPIPE */
        signal(SIGPIPE, SIG_DFL);
        raise(SIGPIPE);
    }
    tg_console_set_command(name);
    tg_console_error(tg_error_message());
    if (status == TG_ERROR_STOPPED && tg_signal_stop())
        return tg_signal_exit_code();
    return tg_status_exit_code(status);
}

static tg_status print_and_free(tg_text *text)
{
    tg_status status = tg_console_print(text);
    tg_text_done(text);
    return status;
}

static tg_status read_config(tg_options *options, const char *path)
{
    char *bytes;
    size_t length;
    TG_TRY(tg_file_read(path, CONFIG_MAX_BYTES, &bytes, &length));
    tg_status status = tg_options_parse_yaml(options, bytes, length, path);
    free(bytes);
    return status;
}

static tg_status check_arguments(const tg_command *command, const tg_options *options)
{
    size_t count = options->positional_count;
    if (count < command->arguments_min)
        return tg_fail(TG_ERROR_USAGE, "missing argument: tagine %s [OPTION]... %s", command->name,
                       command->arguments);
    if (count > command->arguments_max)
        return tg_fail(TG_ERROR_USAGE, "unexpected argument \"%s\"; --help shows the usage",
                       options->positionals[command->arguments_max]);
    return TG_OK;
}

/* More threads than cores meet at every barrier only after the last one got its turn. */
static void warn_of_threads(const tg_common_options *common)
{
    tg_cpu_share share;
    tg_invocation_share(&share);
    if (common->threads > share.cpus)
        tg_log_warning(
            "--threads %lld is more than the %d core%s this process may use: that is far "
            "slower than --threads %d",
            (long long)common->threads, share.cpus, share.cpus == 1 ? "" : "s", share.cpus);
}

/* Commands that several ranks may do together. */
static bool joins(const tg_command *command)
{
    for (size_t i = 0; i < command->group_count; i++)
        if (command->groups[i].options == tg_parallel_option_table)
            return true;
    return false;
}

/* As far as the arguments show, whatever else is wrong with them. */
static bool asks_for_mpi(int count, const char *const *argv)
{
    for (int i = 0; i < count; i++)
        if (strcmp(argv[i], "--comm=mpi") == 0 ||
            (strcmp(argv[i], "--comm") == 0 && i + 1 < count && strcmp(argv[i + 1], "mpi") == 0))
            return true;
    return false;
}

static tg_status run_resolved(const tg_command *command, const tg_options *options,
                              const tg_common_options *common, const void *settings)
{
    tg_text text = {0};
    tg_invocation invocation = {.command = command,
                                .common = common,
                                .settings = settings,
                                .arguments = options->positionals,
                                .argument_count = options->positional_count,
                                .options = options};
    if (common->print_config) {
        tg_options_print(options, &text);
        return print_and_free(&text);
    }
    TG_TRY(check_arguments(command, options));
    tg_console_open(common->quiet || (joins(command) && tg_parallel_rank() > 0), common->verbose);
    warn_of_threads(common);
    TG_TRY(tg_signal_install());
    return command->run(&invocation);
}

/* --help wins wherever it stands, and whatever else is wrong. */
static bool wants_help(int count, const char *const *argv)
{
    for (int i = 0; i < count && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strncmp(argv[i], "--help=", 7) == 0 ||
            strcmp(argv[i], "-h") == 0)
            return true;
    return false;
}

static tg_status show_help(const tg_command *command)
{
    tg_text text = {0};
    tg_command_help(command, &text);
    return print_and_free(&text);
}

static tg_status resolve_and_run(const tg_command *command, int count, const char *const *argv,
                                 void *settings)
{
    tg_options options;
    tg_common_options common = {0};
    tg_option_group groups[TG_COMMAND_GROUPS_MAX];
    size_t group_count = tg_command_groups(command, settings, &common, groups);
    TG_TRY(tg_options_init(&options, groups, group_count));
    tg_status status = tg_options_parse_arguments(&options, count, argv);
    if (status == TG_OK && common.config)
        status = read_config(&options, common.config);
    if (status == TG_OK)
        status = run_resolved(command, &options, &common, settings);
    tg_options_done(&options);
    return status;
}

/* New threads have a stack of that size as well. */
static tg_status check_stack(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        limit.rlim_cur < TG_DEV_STACK_BYTES)
        return tg_fail(
            TG_ERROR_MACHINE,
            "the stack is limited to %llu KiB: raise the limit (ulimit -s) to %d or more",
            (unsigned long long)limit.rlim_cur / 1024, TG_DEV_STACK_BYTES / 1024);
    return TG_OK;
}

static int run_command(const tg_command *command, int count, const char *const *argv)
{
    tg_console_set_command(command->name);
    if (wants_help(count, argv))
        return report(command->name, show_help(command));
    tg_status status = check_stack();
    if (status < 0)
        return report(command->name, status);
    void *settings = calloc(1, command->settings_bytes ? command->settings_bytes : 1);
    if (!settings)
        return report(command->name, tg_fail(TG_ERROR_MACHINE, "out of memory"));
    status = resolve_and_run(command, count, argv, settings);
    free(settings);
    if (status < 0 && joins(command))
        status = tg_parallel_tell_failure(status, asks_for_mpi(count, argv));
    return report(command->name, status);
}

/* The commands that begin with the word of a family ("data"), with or without their summaries; nothing
 * when there is no such family. */
static void append_family(const char *word, bool summaries, tg_text *out)
{
    size_t count, n = strlen(word);
    const tg_command *const *commands = tg_commands(&count);
    for (size_t i = 0; i < count; i++) {
        if (strncmp(commands[i]->name, word, n) != 0 || commands[i]->name[n] != ' ')
            continue;
        if (summaries)
            tg_text_append_format(out, "  %-14s %s\n", commands[i]->name, commands[i]->summary);
        else
            tg_text_append_format(out, "%s%s", out->length ? ", " : "", commands[i]->name);
    }
}

/* "tagine data --help": true when it was that. */
static bool family_help(const char *word, const char *second, int *out_code)
{
    tg_text family = {0}, text = {0};
    bool asked = second && (strcmp(second, "--help") == 0 || strcmp(second, "-h") == 0);
    append_family(word, true, &family);
    asked = asked && family.length;
    if (asked) {
        tg_text_append_format(&text,
                              "Usage: tagine %s COMMAND [OPTION]...\n\nCommands:\n%s\n"
                              "\"tagine %s COMMAND --help\" shows a command's options.\n",
                              word, tg_text_string(&family), word);
        *out_code = report(NULL, print_and_free(&text));
    }
    tg_text_done(&family);
    return asked;
}

/* "data" alone, or "data chekc": the commands that begin with that word. */
static tg_status unknown_command(const char *word, const char *second)
{
    size_t count;
    char joined[128];
    tg_text family = {0};
    const tg_command *const *commands = tg_commands(&count);
    append_family(word, false, &family);
    if (family.length)
        (void)tg_fail(TG_ERROR_USAGE, "\"%s%s%s\" is no command; there are: %s", word,
                      second ? " " : "", second ? second : "", tg_text_string(&family));
    bool known = family.length;
    tg_text_done(&family);
    if (known)
        return TG_ERROR_USAGE;
    if (strcmp(word, "version") == 0)
        return tg_fail(TG_ERROR_USAGE, "\"version\" is no command; \"tagine --version\" shows it");
    snprintf(joined, sizeof joined, "%s", word);
    tg_nearest nearest = {.word = joined};
    for (size_t i = 0; i < count; i++)
        tg_nearest_offer(&nearest, commands[i]->name);
    return tg_fail(TG_ERROR_USAGE, "\"%s\" is no command" TG_NEAREST_FORMAT "%s", word,
                   TG_NEAREST_HINT(nearest.best),
                   nearest.best ? "" : "; \"tagine --help\" lists them");
}

static int program_text(bool version)
{
    tg_text text = {0};
    if (version)
        tg_text_append_string(&text, "tagine " TG_PROGRAM_VERSION "\n");
    else
        tg_program_help(&text);
    return report(NULL, print_and_free(&text));
}

/* OpenMP threads that wait for one another spin for milliseconds by default. Where loader threads or
 * other jobs want the same cores, that takes the cores from the very thread that is waited for: a
 * training step was measured 6 to 18 times slower on a busy machine. True when something was set. */
static bool limit_spinning(void)
{
    if (getenv("GOMP_SPINCOUNT") || getenv("OMP_WAIT_POLICY") || getenv("KMP_BLOCKTIME"))
        return false;
    return setenv("GOMP_SPINCOUNT", "1000", 1) == 0 && setenv("KMP_BLOCKTIME", "0", 1) == 0;
}

/* Stacks of another size than ulimit -s says, meant for other programs: too small they end this one
 * with a signal, too large the runtime ends it before it can say why. True when one was set. */
static bool drop_stack_sizes(void)
{
    static const char *const names[] = {"OMP_STACKSIZE", "GOMP_STACKSIZE", "KMP_STACKSIZE"};
    bool dropped = false;
    for (size_t i = 0; i < TG_COUNT_OF(names); i++)
        if (getenv(names[i]))
            dropped |= unsetenv(names[i]) == 0;
    return dropped;
}

/* The OpenMP runtime reads its settings when it is loaded, so the program starts itself again with
 * those that suit it. */
static void settle_openmp(char **argv)
{
    bool spinning = limit_spinning(), stacks = drop_stack_sizes();
    if (!spinning && !stacks)
        return;
    char path[4096]; /* by its own name, so that ps and top show it */
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n <= 0)
        return;
    path[n] = '\0';
    execv(path, argv); /* returns only when it failed: then all works as before */
}

/* With a standard stream closed, the next file opened would take its number, and results or messages
 * would be written into a checkpoint. Standard output stays unwritable, so that a lost result is an
 * error. */
static void occupy_standard_streams(void)
{
    static const int modes[3] = {O_RDONLY, O_RDONLY, O_WRONLY};
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)!open("/dev/null", modes[fd]); /* takes the lowest free number: fd */
}

int main(int argc, char **argv)
{
    occupy_standard_streams();
    settle_openmp(argv);
    const char *const *words = (const char *const *)argv;
    if (argc < 2)
        return report(NULL,
                      tg_fail(TG_ERROR_USAGE, "no command given; \"tagine --help\" lists them"));
    if (strcmp(words[1], "--version") == 0)
        return program_text(true);
    if (strcmp(words[1], "--help") == 0 || strcmp(words[1], "-h") == 0 ||
        strcmp(words[1], "help") == 0)
        return program_text(false);
    char two[128];
    snprintf(two, sizeof two, "%s %s", words[1], argc > 2 ? words[2] : "");
    const tg_command *command = argc > 2 ? tg_command_find(two) : NULL;
    if (command)
        return run_command(command, argc - 3, words + 3);
    command = tg_command_find(words[1]);
    int code;
    if (!command && family_help(words[1], argc > 2 ? words[2] : NULL, &code))
        return code;
    if (!command)
        return report(NULL, unknown_command(words[1], argc > 2 ? words[2] : NULL));
    return run_command(command, argc - 2, words + 2);
}
