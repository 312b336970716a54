#!/usr/bin/env python3
"""Makes tests/golden/image: small drawn pictures in every layout, and what Pillow and torchvision make of them.

    python3 scripts/golden/make_image_golden.py [--output tests/golden/image]

Needs Pillow, numpy, torch, torchvision and timm from PyPI; the tests need none of them, only the files. cases.csv lists one case a line:
operation, input file, arguments (spaces between), expected picture (PNG), and the largest and the mean difference allowed in levels
(mean 0: only the largest counts). The HEVC picture needs heif-enc (libheif-examples). Made with Pillow 13.0.0, torchvision 0.29.2, timm 1.0.31.
"""
import argparse
import io
import math
import os
import struct
import subprocess
import tempfile
import zlib

import numpy as np
import timm.data.auto_augment as aa
import torchvision.transforms as T
import torchvision.transforms.functional as F
from PIL import Image, ImageEnhance, ImageOps

FILTERS = {"bicubic": Image.BICUBIC, "bilinear": Image.BILINEAR}
FILL = (124, 116, 104)
CASES = []


def draw(width, height, seed=7):
    """Gradients, a hard edge, a checkerboard corner, a disc and some noise: smooth and sharp parts in every channel."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    a = np.stack([255 * x / max(width - 1, 1), 255 * y / max(height - 1, 1), 128 + 100 * np.sin(x / 5 + y / 9)], -1)
    a[(x + 2 * y) > width] += (40, -60, 20)
    corner = (x < width // 4) & (y < height // 3)
    a[corner] = np.where(((x + y) % 2 == 0)[corner][:, None], 255, 0)
    disc = (x - width * 0.65) ** 2 + (y - height * 0.4) ** 2 < (height / 5) ** 2
    a[disc] = (230, 30, 60)
    a += rng.integers(-6, 7, a.shape) * (x > width // 2)[..., None]
    return np.clip(a, 0, 255).astype(np.uint8)


def png(width, height, depth, kind, rows, palette=None, transparency=None, interlaced=False, before=()):
    """A PNG from packed rows; `rows(y, xs)` gives the packed bytes of row y at the columns xs."""
    passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
    data = b""
    for x0, y0, dx, dy in passes if interlaced else [(0, 0, 1, 1)]:
        xs = list(range(x0, width, dx))
        for y in range(y0, height, dy) if xs else []:
            data += b"\0" + rows(y, xs)

    def chunk(name, body):
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    out = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, int(interlaced)))
    for name, body in before:
        out += chunk(name, body)
    if palette is not None:
        out += chunk(b"PLTE", bytes(palette))
    if transparency is not None:
        out += chunk(b"tRNS", bytes(transparency))
    return out + chunk(b"IDAT", zlib.compress(data, 9)) + chunk(b"IEND", b"")


def packed(samples, depth):
    """Rows of big-endian samples [h, w, channels] of 1, 2, 4, 8 or 16 bits."""
    def row(y, xs):
        values = samples[y, xs].reshape(-1).astype(int)
        if depth == 16:
            return b"".join(struct.pack(">H", v) for v in values)
        if depth == 8:
            return bytes(values.tolist())
        bits = "".join(format(v, "0%db" % depth) for v in values)
        bits += "0" * (-len(bits) % 8)
        return bytes(int(bits[i:i + 8], 2) for i in range(0, len(bits), 8))
    return row


def on_white(rgb, alpha):
    a = alpha.astype(int)[..., None]
    return ((rgb.astype(int) * a + 255 * (255 - a) + 127) // 255).astype(np.uint8)


class Folder:
    def __init__(self, path):
        self.path = path
        os.makedirs(path, exist_ok=True)

    def write(self, name, data):
        with open(os.path.join(self.path, name), "wb") as f:
            f.write(data)

    def case(self, operation, source, arguments, expected, limit=0, mean=0):
        name = "want_%03d.png" % len(CASES)
        Image.fromarray(np.ascontiguousarray(np.array(expected, np.uint8))).save(os.path.join(self.path, name), optimize=True)
        CASES.append("%s,%s,%s,%s,%g,%g" % (operation, source, arguments, name, limit, mean))


def add_png(out):
    base = draw(21, 13)
    h, w = base.shape[:2]
    gray = base[..., :1]
    alpha = np.linspace(0, 255, w * h).reshape(h, w, 1).astype(np.uint8)
    for depth in (1, 2, 4, 8, 16):
        top = 2 ** depth - 1
        values = (gray.astype(int) * 257 if depth == 16 else gray.astype(int) * top // 255)
        shown = values >> 8 if depth == 16 else values * 255 // top
        three = np.repeat(shown, 3, 2)
        out.write("gray%d.png" % depth, png(w, h, depth, 0, packed(values, depth)))
        out.case("decode", "gray%d.png" % depth, "", three)
        key = int(values[0, 0, 0])
        out.write("gray%d_key.png" % depth, png(w, h, depth, 0, packed(values, depth), transparency=struct.pack(">H", key)))
        out.case("decode", "gray%d_key.png" % depth, "", np.where(values == key, 255, three))
    for depth in (8, 16):
        scale = 257 if depth == 16 else 1
        rgb, a = base.astype(int) * scale, alpha.astype(int) * scale
        key = rgb[0, 0]
        hit = (rgb == key).all(-1, keepdims=True)
        out.write("rgb%d.png" % depth, png(w, h, depth, 2, packed(rgb, depth)))
        out.case("decode", "rgb%d.png" % depth, "", base)
        out.write("rgb%d_key.png" % depth, png(w, h, depth, 2, packed(rgb, depth), transparency=struct.pack(">HHH", *map(int, key))))
        out.case("decode", "rgb%d_key.png" % depth, "", np.where(hit, 255, base))
        out.write("gray_alpha%d.png" % depth, png(w, h, depth, 4, packed(np.concatenate([rgb[..., :1], a], 2), depth)))
        out.case("decode", "gray_alpha%d.png" % depth, "", on_white(np.repeat(gray, 3, 2), alpha[..., 0]))
        out.write("rgba%d.png" % depth, png(w, h, depth, 6, packed(np.concatenate([rgb, a], 2), depth)))
        out.case("decode", "rgba%d.png" % depth, "", on_white(base, alpha[..., 0]))
    for depth in (1, 2, 4, 8):
        n = 2 ** depth
        palette = np.random.default_rng(depth).integers(0, 256, (n, 3))
        index = (gray.astype(int) * (n - 1) // 255)
        out.write("palette%d.png" % depth, png(w, h, depth, 3, packed(index, depth), palette=palette.astype(np.uint8).tobytes()))
        out.case("decode", "palette%d.png" % depth, "", palette[index[..., 0]])
        opacity = np.full(n, 255)
        opacity[0], opacity[-1] = 0, 100
        out.write("palette%d_clear.png" % depth, png(w, h, depth, 3, packed(index, depth), palette=palette.astype(np.uint8).tobytes(),
                                                     transparency=opacity.astype(np.uint8).tobytes()))
        out.case("decode", "palette%d_clear.png" % depth, "", on_white(palette[index[..., 0]], opacity[index[..., 0]]))
    out.write("interlaced.png", png(w, h, 8, 2, packed(base, 8), interlaced=True))
    out.case("decode", "interlaced.png", "", base)
    exif = Image.Exif()
    exif[0x0112] = 6
    out.write("turned.png", png(w, h, 8, 2, packed(base, 8), before=[(b"eXIf", exif.tobytes()[6:])]))
    out.case("decode", "turned.png", "", np.rot90(base, -1))
    bomb = zlib.compress(bytes(8 << 20), 9)
    out.write("text_bomb.png", png(w, h, 8, 2, packed(base, 8), before=[(b"zTXt", b"Comment\0\0" + bomb)]))
    out.case("decode", "text_bomb.png", "", base)


def saved(image, kind, **options):
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def add_jpeg(out):
    image = Image.fromarray(draw(45, 29))

    def add(name, data, limit=0):
        out.write(name, data)
        opened = Image.open(io.BytesIO(data))
        out.case("decode", name, "", np.array(ImageOps.exif_transpose(opened).convert("RGB")), limit)

    for name, sampling in (("420", 2), ("422", 1), ("444", 0)):
        add("s%s.jpg" % name, saved(image, "JPEG", quality=90, subsampling=sampling))
    add("progressive.jpg", saved(image, "JPEG", quality=90, progressive=True))
    add("restart.jpg", saved(image, "JPEG", quality=90, restart_marker_blocks=1))
    add("gray.jpg", saved(image.convert("L"), "JPEG", quality=90))
    for value in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = value
        add("turn%d.jpg" % value, saved(image, "JPEG", quality=90, exif=exif))
    cmyk = saved(image.convert("CMYK"), "JPEG", quality=90)
    at = cmyk.index(b"\xff\xee\x00\x0eAdobe")
    add("cmyk_marker.jpg", cmyk)
    add("cmyk.jpg", cmyk[:at] + cmyk[at + 16:])
    add("ycck_marker.jpg", cmyk[:at + 15] + b"\x02" + cmyk[at + 16:])


def chunk_webp(name, body):
    return name + struct.pack("<I", len(body)) + body + b"\0" * (len(body) & 1)


def add_webp(out):
    base = draw(30, 20)
    image = Image.fromarray(base)
    alpha = np.linspace(0, 255, base.shape[0] * base.shape[1]).reshape(base.shape[:2]).astype(np.uint8)
    lossy = saved(image, "WEBP", quality=80)
    out.write("lossy.webp", lossy)
    out.case("decode", "lossy.webp", "", np.array(Image.open(io.BytesIO(lossy)).convert("RGB")), 1)
    rgba = Image.fromarray(np.dstack([base, alpha]))
    out.write("alpha.webp", saved(rgba, "WEBP", lossless=True, exact=True))
    out.case("decode", "alpha.webp", "", on_white(base, alpha))
    exif = Image.Exif()
    exif[0x0112] = 8
    out.write("turned.webp", saved(image, "WEBP", lossless=True, exif=exif.tobytes()))
    out.case("decode", "turned.webp", "", np.rot90(base, 1))
    small = saved(image.crop((0, 0, 12, 10)), "WEBP", lossless=True)[12:]
    second = saved(Image.fromarray(255 - base), "WEBP", lossless=True)[12:]

    def frame(x, y, w, h, data):
        def three(v):
            return struct.pack("<I", v)[:3]
        return chunk_webp(b"ANMF", three(x // 2) + three(y // 2) + three(w - 1) + three(h - 1) + three(100) + b"\0" + data)
    body = chunk_webp(b"VP8X", struct.pack("<I", 2) + struct.pack("<I", 29)[:3] + struct.pack("<I", 19)[:3])
    body += chunk_webp(b"ANIM", b"\0" * 6) + frame(8, 4, 12, 10, small) + frame(0, 0, 30, 20, second)
    out.write("moving.webp", b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body)
    canvas = np.full_like(base, 255)
    canvas[4:14, 8:20] = base[:10, :12]
    out.case("decode", "moving.webp", "", canvas)


def add_heif(out):
    smooth = Image.fromarray((np.mgrid[0:48, 0:64].transpose(1, 2, 0)[..., [0, 1, 0]] * (5, 4, -3) + (0, 0, 200)).clip(0, 255).astype(np.uint8))
    out.write("still.avif", saved(smooth, "AVIF", quality=95, subsampling="4:4:4"))
    out.case("decode", "still.avif", "", np.array(smooth), 8, 2)
    with tempfile.TemporaryDirectory() as folder:
        source, target = os.path.join(folder, "a.png"), os.path.join(folder, "a.heic")
        smooth.save(source)
        subprocess.run(["heif-enc", "-q", "95", "-p", "chroma=444", "-o", target, source], check=True, capture_output=True)
        with open(target, "rb") as f:
            out.write("still.heic", f.read())
    out.case("decode", "still.heic", "", np.array(smooth), 8, 2)
    exif = Image.Exif()
    exif[0x0112] = 6
    out.write("turned.avif", saved(smooth, "AVIF", quality=95, subsampling="4:4:4", exif=exif))
    out.case("decode", "turned.avif", "", np.rot90(np.array(smooth), -1), 8, 2)


def add_resize(out):
    base = draw(53, 37)
    Image.fromarray(base).save(os.path.join(out.path, "source.png"), optimize=True)
    image = Image.fromarray(base)
    board = np.repeat(((np.add.outer(np.arange(48), np.arange(256)) % 2) * 255)[..., None], 3, 2).astype(np.uint8)
    Image.fromarray(board).save(os.path.join(out.path, "board.png"), optimize=True)
    for name, kind in FILTERS.items():
        for w, h in ((20, 14), (53, 12), (12, 37), (80, 56), (53, 37), (40, 7), (1, 1), (30, 60)):
            out.case("resize", "source.png", "%s %d %d" % (name, w, h), np.array(image.resize((w, h), kind)))
        box = (3.5, 2.25, 44.125, 30.75)
        out.case("resize_box", "source.png", "%s 24 18 %g %g %g %g" % (name, *box), np.array(image.resize((24, 18), kind, box=box)))
        crop = (5, 7, 31, 22)
        out.case("resize_crop", "source.png", "%s 33 33 %d %d %d %d" % (name, *crop),
                 np.array(F.resized_crop(image, crop[1], crop[0], crop[3], crop[2], [33, 33], T.InterpolationMode(name))))
        out.case("resize", "board.png", "%s 56 10" % name, np.array(Image.fromarray(board).resize((56, 10), kind)))
    tiny = Image.fromarray(base[:1, :1])
    tiny.save(os.path.join(out.path, "tiny.png"))
    out.case("resize", "tiny.png", "bicubic 9 5", np.array(tiny.resize((9, 5), Image.BICUBIC)))


def add_transforms(out):
    image = Image.open(os.path.join(out.path, "source.png"))
    tall = image.transpose(Image.ROTATE_90)
    tall.save(os.path.join(out.path, "tall.png"), optimize=True)
    thin = image.crop((0, 0, 1, 37))
    thin.save(os.path.join(out.path, "thin.png"))
    for name in ("source", "tall", "thin", "tiny"):
        picture = Image.open(os.path.join(out.path, name + ".png"))
        for size, share in ((24, 0.875), (24, 0.9), (24, 1.0), (64, 0.95)):
            if size > 24 and name != "source":
                continue
            t = T.Compose([T.Resize(math.floor(size / share), T.InterpolationMode.BICUBIC), T.CenterCrop(size)])
            out.case("eval", name + ".png", "bicubic %d %g center" % (size, share), np.array(t(picture)))
        side = math.floor(24 / 0.9)
        t = T.Compose([T.Resize((side, side), T.InterpolationMode.BILINEAR), T.CenterCrop(24)])
        out.case("eval", name + ".png", "bilinear 24 0.9 squash", np.array(t(picture)))


def add_colors(out):
    image = Image.open(os.path.join(out.path, "source.png"))
    for f in (0.3, 1.7):
        out.case("brightness", "source.png", "%g" % f, ImageEnhance.Brightness(image).enhance(f))
        out.case("contrast", "source.png", "%g" % f, ImageEnhance.Contrast(image).enhance(f))
        out.case("saturation", "source.png", "%g" % f, ImageEnhance.Color(image).enhance(f))
        out.case("sharpness", "source.png", "%g" % f, ImageEnhance.Sharpness(image).enhance(f))
    for f in (-0.3, 0.1):
        out.case("hue", "source.png", "%g" % f, F.adjust_hue(image, f))
    out.case("grayscale", "source.png", "", image.convert("L").convert("RGB"))
    out.case("posterize", "source.png", "3", ImageOps.posterize(image, 3))
    out.case("solarize", "source.png", "100", ImageOps.solarize(image, 100))
    out.case("solarize_add", "source.png", "60", aa.solarize_add(image, 60))
    out.case("invert", "source.png", "", ImageOps.invert(image))
    out.case("equalize", "source.png", "", ImageOps.equalize(image))
    dull = ImageEnhance.Contrast(image).enhance(0.4)
    dull.save(os.path.join(out.path, "dull.png"), optimize=True)
    out.case("autocontrast", "dull.png", "", ImageOps.autocontrast(dull))
    out.case("equalize", "dull.png", "", ImageOps.equalize(dull))
    for name, kind in FILTERS.items():
        options = {"resample": kind, "fillcolor": FILL}
        out.case("rotate", "source.png", "%s 27" % name, aa.rotate(image, 27, **options), 1)
        out.case("rotate", "source.png", "%s -90" % name, aa.rotate(image, -90, **options), 1)
        out.case("shear_x", "source.png", "%s 0.3" % name, aa.shear_x(image, 0.3, **options))
        out.case("shear_y", "source.png", "%s -0.2" % name, aa.shear_y(image, -0.2, **options))
        out.case("translate", "source.png", "%s 7.3 -4.6" % name, image.transform(image.size, Image.AFFINE, (1, 0, 7.3, 0, 1, -4.6), **options))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--output", default="tests/golden/image")
    out = Folder(p.parse_args().output)
    for add in (add_png, add_jpeg, add_webp, add_heif, add_resize, add_transforms, add_colors):
        add(out)
    out.write("cases.csv", ("operation,input,arguments,expected,limit,mean\n" + "\n".join(CASES) + "\n").encode())


if __name__ == "__main__":
    main()
