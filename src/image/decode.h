/* decode.h - photo bytes to upright RGB pixels: one rule for every door (train, eval, predict,
 * serve).
 *
 * Format       found from the first bytes, never from a name: JPEG (baseline, progressive,
 *              arithmetic; gray, YCbCr, RGB, CMYK, YCCK), PNG (all layouts), WebP (lossy, lossless,
 *              alpha, animated), HEIF (HEVC, AV1 where libheif has the codec). Anything else is
 *              refused, and the message says what the bytes look like (GIF, BMP, TIFF, HTML, ...).
 * Orientation  the EXIF tag of JPEG, PNG (eXIf) and WebP (EXIF) is applied; HEIF carries its turn
 * as a property of the picture, which its decoder applies once, and its EXIF tag is not applied
 * again. Pillow's older "Raw profile type exif" text is not read. Alpha        composed on white:
 * alpha channels, and PNG transparency chunks of gray, RGB and palette pictures. (Pillow's
 * convert("RGB") drops alpha instead.) Depth        1, 2 and 4 bits are scaled to 0..255; of 16
 * bits the upper 8 are kept (within one level of rounding). Pillow does the same for RGB; for
 * 16-bit gray it clips on old versions. Four inks    CMYK and YCCK JPEGs are read as Adobe writes
 * them (inverted inks) with and without the Adobe marker, then R = K' - (255 - C') K' / 255 with
 * stored values C', K'; as Pillow. ICC profiles are not applied to any format. Animation    first
 * frame, on a white canvas of the full size. Damage       Accepted with a warning: junk between
 * markers, a missing end marker with all rows present, odd codes, and up to TG_IMAGE_MISSING_SHARE
 * of the rows missing at the end (they stay gray in JPEG, white in PNG). More missing rows, wrong
 * PNG checksums, a cut WebP or HEIF, and a progressive JPEG cut before its first full pass are
 * broken. Pillow refuses some of those that are accepted here (it wants the last scan whole) and
 * accepts progressive files that are refused here. `strict` refuses every warning. Limits Bytes,
 * width x height and (JPEG) the number of scans are checked before memory for the pixels is taken.
 * Side blocks (text, profiles) are not unpacked. Memory       the picture, plus in scratch 4 bytes
 * a pixel for pictures with alpha or a turn, plus what the codecs take: one band of rows (baseline
 * JPEG), 2 bytes a sample (progressive), the picture (WebP, HEIF). Errors       TG_ERROR_INPUT for
 * what the bytes are to blame for (the caller adds the file's name with tg_fail_prefix),
 * TG_ERROR_MACHINE for memory. Codec faults come back as values: nothing is printed and the process
 * goes on. Threads      reentrant, one scratch per thread.
 */
#ifndef TG_IMAGE_DECODE_H
#define TG_IMAGE_DECODE_H

#include "base/status.h"
#include "image/image.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum tg_image_format {
    TG_IMAGE_UNKNOWN,
    TG_IMAGE_JPEG,
    TG_IMAGE_PNG,
    TG_IMAGE_WEBP,
    TG_IMAGE_HEIF,
} tg_image_format;

/* Share of rows that may be missing at the end of a cut JPEG or PNG. */
#define TG_IMAGE_MISSING_SHARE 0.10

typedef struct tg_decode_options {
    bool exif_orientation; /* turn upright; default true */
    bool strict;           /* a warning is an error; default false */
    uint64_t max_pixels;   /* width x height; default 89,478,485 (Pillow's warning limit) */
    uint64_t max_bytes;    /* of the file; default 256 MiB */
} tg_decode_options;

typedef struct tg_decode_report {
    tg_image_format format;
    int width_px, height_px;  /* whole picture, upright when orientation is applied */
    int orientation;          /* EXIF value found, 1..8; 1 when absent or not a valid value */
    bool orientation_applied; /* the pixels were turned because of it */
    bool has_alpha;           /* transparency was present and composed on white */
    int channels;             /* of the stored picture: 1, 3, 4 ... */
    int scale_denominator;    /* 1, 2, 4, 8: reduced decoding by this much */
    double missing_share;     /* of rows, 0 when whole */
    int warning_count;
    char warning[200]; /* the first warning, "" when none */
} tg_decode_report;

/* The defaults stated above. */
tg_decode_options tg_decode_options_default(void);

/* "JPEG", "PNG", "WebP", "HEIF", "unknown". */
const char *tg_image_format_name(tg_image_format format);

/* Format by the first bytes; TG_IMAGE_UNKNOWN for all others. */
tg_image_format tg_image_sniff(const void *bytes, size_t n);

/* Reads the header only: format, upright size, orientation, channels; checks the limits. Options
 * may be NULL (defaults). */
tg_status tg_image_probe(const void *bytes, size_t n, const tg_decode_options *options,
                         tg_decode_report *out_report) TG_MUST_CHECK;

/* Decodes the whole picture. `options` and `out_report` may be NULL. On failure `out` has size 0
 * or its old pixels are undefined; out_report is filled as far as the header went. */
tg_status tg_image_decode(const void *bytes, size_t n, const tg_decode_options *options,
                          tg_image_scratch *scratch, tg_image *out,
                          tg_decode_report *out_report) TG_MUST_CHECK;

/* Decodes what a crop needs and no more.
 *
 * `crop`    in upright pixels of the whole picture (tg_image_probe gives its size), inside it.
 * target    the size the crop will be resized to, so that JPEG may be decoded at 1/2, 1/4 or 1/8
 *           where both sides of the crop stay at least `reserve` times the target afterwards;
 *           reserve <= 0: always full size. With TG_IMAGE_REDUCE_RESERVE the resized crop differs
 *           from that of full decoding by at most 1.0 grey level on average and 32 at any sample
 *           (tested; 0.46 and 23 are the largest seen on photos of 12 megapixels and of 512 px).
 * `out`     the pixels of the crop: exactly the crop at full size, else the smallest reduced
 *           rectangle that covers it.
 * `out_box` the crop within `out`: the whole of it at full size. Resize with it as the box.
 * At full size the pixels equal those of tg_image_decode. A JPEG without its end marker is decoded
 * whole, so that it is judged by the same rule; faults in rows below the crop of a file that has
 * one are not seen. */
#define TG_IMAGE_REDUCE_RESERVE 2.0
tg_status tg_image_decode_region(const void *bytes, size_t n, const tg_decode_options *options,
                                 tg_image_rect crop, int target_width_px, int target_height_px,
                                 double reserve, tg_image_scratch *scratch, tg_image *out,
                                 tg_image_box *out_box, tg_decode_report *out_report) TG_MUST_CHECK;

#endif
