/* predict.c - what is on a photo, through libtagine's public interface.
 *
 *   cc predict.c -o predict $(pkg-config --cflags --libs tagine)
 * (a prefix with blanks: eval "cc predict.c -o predict $(pkg-config --cflags --libs tagine)")
 *   ./predict MODEL PHOTO...
 */
#include <stdio.h>
#include <tagine/tagine.h>

enum { TOP = 3 };

static int show(tagine_predictor *predictor, const char *path)
{
    tagine_prediction best[TOP];
    size_t count;
    if (tagine_predict_file(predictor, path, TOP, best, &count) != TAGINE_OK) {
        fprintf(stderr, "%s\n", tagine_error());
        return 1;
    }
    printf("%s:", path);
    for (size_t i = 0; i < count; i++)
        printf("  %s %.1f %%", best[i].class_name, 100 * (double)best[i].score);
    printf("\n");
    return 0;
}

int main(int argc, char **argv)
{
    tagine_predictor *predictor;
    int failed = 0;
    if (argc < 3) {
        fprintf(stderr, "usage: predict MODEL PHOTO...\n");
        return 2;
    }
    tagine_status status = tagine_predictor_open(argv[1], NULL, &predictor);
    if (status != TAGINE_OK) {
        fprintf(stderr, "%s\n", tagine_error());
        return (int)status;
    }
    for (int i = 2; i < argc; i++)
        failed += show(predictor, argv[i]);
    tagine_predictor_close(predictor);
    return failed ? TAGINE_INPUT : 0;
}
