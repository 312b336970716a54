#include "data/deal.h"

#include <stdbool.h>

static bool deals_pairs(const tg_loader_options *options)
{
    return options->train && (options->augment.mixup > 0 || options->augment.cutmix > 0);
}

static size_t count_units(const tg_loader_options *options, size_t n)
{
    return deals_pairs(options) ? n / 2 + n % 2 : n;
}

static int count_ranks(const tg_loader_options *options)
{
    return options->ranks > 1 ? options->ranks : 1;
}

tg_status tg_deal_check(const tg_loader_options *options)
{
    const int ranks = count_ranks(options);
    if (options->ranks < 0)
        return tg_fail(TG_ERROR_USAGE, "loader for %d ranks", options->ranks);
    if (options->rank < 0 || options->rank >= ranks)
        return tg_fail(TG_ERROR_USAGE, "loader for rank %d, which is not 0 to %d", options->rank,
                       ranks - 1);
    if (count_units(options, options->batch_size) >= (size_t)ranks)
        return TG_OK;
    if (deals_pairs(options))
        return tg_fail(TG_ERROR_USAGE,
                       "batch size %zu is too small for %d ranks, as samples are mixed in pairs "
                       "and a pair stays on one rank; take a batch size of at least %lld, fewer "
                       "ranks, or no mixup and cutmix",
                       options->batch_size, ranks, 2 * (long long)ranks - 1);
    return tg_fail(TG_ERROR_USAGE,
                   "batch size %zu is too small for %d ranks; take a batch size of at least %d, or "
                   "fewer ranks",
                   options->batch_size, ranks, ranks);
}

tg_deal tg_deal_make(const tg_loader_options *options, size_t n)
{
    const size_t ranks = (size_t)count_ranks(options), r = (size_t)options->rank;
    const size_t units = count_units(options, n), each = units / ranks, more = units % ranks;
    const size_t begin = r * each + (r < more ? r : more);
    const size_t end = begin + each + (r < more);
    tg_deal deal = {.count = end - begin, .low = begin, .low_count = end - begin, .high = end};
    if (deals_pairs(options)) {
        /* the second run mirrors the first; a middle sample, or nothing at all, has no mirror */
        size_t high = n - end, high_end = n - begin;
        deal.high = high > end ? high : end;
        deal.count += high_end > deal.high ? high_end - deal.high : 0;
    }
    return deal;
}

size_t tg_deal_place(const tg_deal *deal, size_t at)
{
    return at < deal->low_count ? deal->low + at : deal->high + (at - deal->low_count);
}

uint64_t tg_deal_epoch(const tg_loader_options *options, uint64_t photos)
{
    const uint64_t B = options->batch_size;
    return photos / B * tg_deal_make(options, options->batch_size).count +
           tg_deal_make(options, (size_t)(photos % B)).count;
}
