#include "base/arena.h"

#include "base/checked.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum { HUGE_PAGE_BYTES = 2 << 20 };

tg_status tg_arena_init(tg_arena *arena, size_t bytes, const char *what)
{
    *arena = (tg_arena){0};
    size_t size;
    if (!tg_round_up_size(bytes ? bytes : 1, 4096, &size))
        return tg_fail(TG_ERROR_MACHINE, "%s: %zu bytes are more than this machine can address",
                       what, bytes);
    void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return tg_fail(TG_ERROR_MACHINE,
                       "%s: cannot reserve %.1f MiB of memory (%s); use a smaller batch or model",
                       what, (double)size / 1048576.0, strerror(errno));
    if (size >= HUGE_PAGE_BYTES)
        (void)madvise(base, size, MADV_HUGEPAGE); /* a hint: without it only speed is lost */
    arena->base = base;
    arena->size = size;
    return TG_OK;
}

void tg_arena_done(tg_arena *arena)
{
    if (arena && arena->base)
        munmap(arena->base, arena->size);
    if (arena)
        *arena = (tg_arena){0};
}

void *tg_arena_alloc(tg_arena *arena, size_t bytes)
{
    size_t need, end;
    if (!tg_round_up_size(bytes, TG_ALIGN, &need) || !tg_add_size(arena->used, need, &end) ||
        end > arena->size)
        return NULL;
    void *block = arena->base + arena->used;
    arena->used = end;
    if (end > arena->peak)
        arena->peak = end;
    return block;
}

size_t tg_arena_mark(const tg_arena *arena)
{
    return arena->used;
}

void tg_arena_release(tg_arena *arena, size_t mark)
{
    if (mark <= arena->used)
        arena->used = mark;
}
