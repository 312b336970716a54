/* annotate.c - where a program's time goes, through libtagine's public interface.
 *
 *   cc annotate.c -o annotate $(pkg-config --cflags --libs tagine)
 *   ./annotate OUT.json.gz            then open it in ui.perfetto.dev
 */
#include <stdio.h>
#include <tagine/trace.h>
#include <time.h>

static void work(tagine_trace *trace, const char *what, long ms)
{
    const struct timespec time = {.tv_nsec = ms * 1000000};
    tagine_annotate_begin(trace, what);
    nanosleep(&time, NULL);
    tagine_annotate_end(trace);
}

int main(int argc, char **argv)
{
    tagine_trace *trace = NULL; /* stays NULL without an argument: annotations then cost nothing */
    if (argc > 1 && tagine_trace_start(argv[1], &trace) != TAGINE_OK) {
        fprintf(stderr, "%s\n", tagine_error());
        return 1;
    }
    for (int photo = 0; photo < 3; photo++) {
        tagine_annotate_begin(trace, "photo");
        work(trace, "read", 2);
        work(trace, "resize", 5);
        tagine_annotate_end(trace);
    }
    if (tagine_trace_stop(trace) != TAGINE_OK) {
        fprintf(stderr, "%s\n", tagine_error());
        return 1;
    }
    return 0;
}
