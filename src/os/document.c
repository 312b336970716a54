#include "os/document.h"

#include "os/file.h"

#include <stdlib.h>

tg_status tg_json_read(const char *path, tg_json *out)
{
    return tg_json_read_within(path, TG_DOCUMENT_MAX_BYTES, out);
}

tg_status tg_json_read_within(const char *path, size_t max_bytes, tg_json *out)
{
    char *bytes;
    size_t length;
    TG_TRY(tg_file_read(path, max_bytes, &bytes, &length));
    tg_status status = tg_json_parse(bytes, length, path, out);
    free(bytes);
    return status;
}
