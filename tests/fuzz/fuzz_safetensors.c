/* A safetensors file of arbitrary bytes: opened, and every tensor read, through the real reader. */
#include "ckpt/safetensors.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    tg_safetensors file;
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (tg_safetensors_open(path, &file) == TG_OK) {
        for (size_t i = 0; i < file.count; i++) {
            float *out = malloc(file.items[i].count * sizeof *out + 1);
            if (out && tg_safetensors_read_f32(&file, &file.items[i], out) == TG_OK)
                tg_safetensors_find(&file, file.items[i].name);
            free(out);
        }
        tg_safetensors_close(&file);
    }
    close(fd);
    return 0;
}
