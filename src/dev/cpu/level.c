#include "dev/dev.h"

#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

static const char *const names[TG_CPU_LEVEL_COUNT] = {"portable", "avx2", "avx512", "avx512_bf16",
                                                      "amx"};

const char *tg_cpu_level_name(tg_cpu_level level)
{
    return names[level];
}

tg_cpu_level tg_cpu_level_from_name(const char *name)
{
    for (int i = 0; i < TG_CPU_LEVEL_COUNT; i++)
        if (strcmp(names[i], name) == 0)
            return (tg_cpu_level)i;
    return TG_CPU_LEVEL_COUNT;
}

#if defined(__x86_64__)

enum {
    XCR0_AVX = 0x6,
    XCR0_AVX512 = 0xE0,
    XCR0_AMX = 0x60000,
    ARCH_REQ_XCOMP_PERM = 0x1023,
    XFEATURE_XTILEDATA = 18
};

static unsigned read_xcr0(void)
{
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

static int bit(unsigned word, int n)
{
    return (int)((word >> n) & 1);
}

/* Tile data is off until the process asks the kernel for it. */
static int amx_permitted(void)
{
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}

tg_cpu_level tg_cpu_level_detect(void)
{
    unsigned a, b, c, d, a1, b1, c1, d1;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !bit(c, 27)) /* OSXSAVE */
        return TG_CPU_PORTABLE;
    unsigned xcr0 = read_xcr0();
    int fma = bit(c, 12), f16c = bit(c, 29);
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d))
        return TG_CPU_PORTABLE;
    if (!(bit(b, 5) && fma && f16c && (xcr0 & XCR0_AVX) == XCR0_AVX))
        return TG_CPU_PORTABLE;
    int avx512 = bit(b, 16) && bit(b, 30) && bit(b, 17) && bit(b, 31);
    if (!avx512 || (xcr0 & XCR0_AVX512) != XCR0_AVX512)
        return TG_CPU_AVX2;
    if (!__get_cpuid_count(7, 1, &a1, &b1, &c1, &d1) || !bit(a1, 5))
        return TG_CPU_AVX512;
    int amx = bit(d, 22) && bit(d, 24) && bit(d, 25);
    if (!amx || (xcr0 & XCR0_AMX) != XCR0_AMX || !amx_permitted())
        return TG_CPU_AVX512_BF16;
    return TG_CPU_AMX;
}

#else

tg_cpu_level tg_cpu_level_detect(void)
{
    return TG_CPU_PORTABLE;
}

#endif
