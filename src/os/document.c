#include "os/document.h"

#include "os/file.h"

#include <stdlib.h>

tg_status tg_json_read(const char *path, tg_json *out)
{
    char *bytes;
    size_t length;
    TG_TRY(tg_file_read(path, TG_DOCUMENT_MAX_BYTES, &bytes, &length));
    tg_status status = tg_json_parse(bytes, length, path, out);
    free(bytes);
    return status;
}
