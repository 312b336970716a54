/* Runs stored inputs through a fuzz target without a fuzzer: every file of the folders named on the
 * command line. An empty input is always tried. Exit 1 when a named folder cannot be read. */
#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return -1;
    int result = -1;
    uint8_t *data = NULL;
    long size = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    if (size < 0 || fseek(file, 0, SEEK_SET) != 0)
        goto close_file;
    data = malloc(size > 0 ? (size_t)size : 1);
    if (!data || fread(data, 1, (size_t)size, file) != (size_t)size)
        goto free_data;
    LLVMFuzzerTestOneInput(data, (size_t)size);
    result = 0;
free_data:
    free(data);
close_file:
    fclose(file);
    return result;
}

/* Returns how many files it ran, negative when one could not be read. */
static int replay_folder(const char *folder)
{
    DIR *dir = opendir(folder);
    if (!dir)
        return -1;
    int count = 0;
    for (struct dirent *entry; count >= 0 && (entry = readdir(dir));) {
        char path[4096];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        count = replay_file(path) == 0 ? count + 1 : -1;
    }
    closedir(dir);
    return count;
}

int main(int argc, char **argv)
{
    const uint8_t nothing = 0;
    LLVMFuzzerTestOneInput(&nothing, 0);
    for (int i = 1; i < argc; i++) {
        int count = replay_folder(argv[i]);
        if (count < 0) {
            fprintf(stderr, "cannot read the inputs in %s\n", argv[i]);
            return 1;
        }
        printf("%s: %d inputs\n", argv[i], count);
    }
    return 0;
}
