#!/usr/bin/env python3
"""Writes src/kern/cpu/gelu_table.h: quadratics in t = |h| for GELU on 16-bit floats.

Piece i of 32 covers t in [(i - 1/2)/6, (i + 1/2)/6]. Each is the interpolation at Chebyshev's
points of f(t), where GELU(h) = h (1/2 + sign(h) f) or GELU'(h) = 1/2 + sign(h) f. The last piece is
the constant 1/2, so that large |h| give exactly h and 0. Needs Python alone.
"""
import math
import struct

PIECES, PER_UNIT = 32, 6.0
ROOT = math.sqrt(2 / math.pi)


def exact(t):
    return 0.5 * math.erf(t / math.sqrt(2))


def exact_slope(t):
    return exact(t) + t * math.exp(-0.5 * t * t) / math.sqrt(2 * math.pi)


def tanh(t):
    return 0.5 * math.tanh(ROOT * (t + 0.044715 * t ** 3))


def tanh_slope(t):
    u = ROOT * (t + 0.044715 * t ** 3)
    return tanh(t) + 0.5 * t * ROOT * (1 + 3 * 0.044715 * t * t) / math.cosh(u) ** 2


def piece(f, i):
    """c0, c1, c2 of the quadratic through three Chebyshev points of the piece."""
    if i == PIECES - 1:
        return 0.5, 0.0, 0.0
    low, high = max(0.0, (i - 0.5) / PER_UNIT), (i + 0.5) / PER_UNIT
    x = [(low + high) / 2 + (high - low) / 2 * math.cos(math.pi * (k + 0.5) / 3) for k in range(3)]
    y = [f(v) for v in x]
    first = [(y[1] - y[0]) / (x[1] - x[0]), (y[2] - y[1]) / (x[2] - x[1])]
    c2 = (first[1] - first[0]) / (x[2] - x[0])
    c1 = first[0] - c2 * (x[0] + x[1])
    return y[0] - x[0] * (c1 + c2 * x[0]), c1, c2


def as_float(x):
    mantissa, power = float(struct.unpack("f", struct.pack("f", x))[0]).hex().split("p")
    return mantissa.rstrip("0").rstrip(".") + "p" + power


def main():
    print("""/* gelu_table.h - written by scripts/gelu-table.py: quadratics c0 + c1 t + c2 t^2 in t = |h|.
 *
 * Piece i covers t in [(i - 1/2)/6, (i + 1/2)/6]; GELU(h) = h (1/2 + sign(h) value(t)) and
 * GELU'(h) = 1/2 + sign(h) slope(t). The values are within 1.1e-5, the slopes within 4e-5. */
#ifndef TG_KERN_CPU_GELU_TABLE_H
#define TG_KERN_CPU_GELU_TABLE_H

typedef struct gelu_table {
    float c[3][32]; /* of 1, t and t^2 */
} gelu_table;
""")
    for name, f in (("exact_value", exact), ("exact_slope", exact_slope),
                    ("tanh_value", tanh), ("tanh_slope", tanh_slope)):
        print(f"static const gelu_table gelu_{name} = {{{{")
        for power in range(3):
            numbers = [as_float(piece(f, i)[power]) + "f" for i in range(PIECES)]
            rows = [", ".join(numbers[i:i + 4]) for i in range(0, PIECES, 4)]
            print("    {" + ",\n     ".join(rows) + "},")
        print("}};\n")
    print("#endif")


main()
