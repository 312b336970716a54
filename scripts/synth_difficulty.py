#!/usr/bin/env python3
"""Measures how hard a folder of generated pictures is (not part of the test suite).

    tagine data synth --output DIR --classes 12 --per-class 250 --img-size 64
    scripts/synth_difficulty.py DIR [linear|vit|all] [EPOCHS]

Prints the validation accuracy of
  linear  multinomial logistic regression on a 256-bin HSV histogram (16 hues x 4 saturations x
          4 values) and the 8x8 RGB thumbnail; the best of several weight penalties, chosen on the
          validation pictures themselves, so the figure errs in the linear model's favour;
  vit     a vision transformer, 8-pixel patches, width 128, depth 4, 4 heads, trained from scratch
          with AdamW, cosine schedule, mirroring and small shifts.
Needs torch, numpy and Pillow.
"""
import math
import os
import sys
import time

import numpy as np
import torch
from PIL import Image
from torch import nn


def load(folder, names):
    pixels, labels = [], []
    for label, name in enumerate(names):
        for file in sorted(os.listdir(os.path.join(folder, name))):
            with Image.open(os.path.join(folder, name, file)) as picture:
                pixels.append(np.asarray(picture.convert("RGB")))
            labels.append(label)
    return np.stack(pixels), torch.tensor(labels)


def features(pixels):
    rows = []
    for rgb in pixels:
        picture = Image.fromarray(rgb)
        hsv = np.asarray(picture.convert("HSV")).reshape(-1, 3).astype(int)
        bins = (hsv[:, 0] // 16) * 16 + (hsv[:, 1] // 64) * 4 + hsv[:, 2] // 64
        histogram = np.sqrt(np.bincount(bins, minlength=256) / len(bins))
        thumbnail = np.asarray(picture.resize((8, 8), Image.BOX)).reshape(-1) / 255
        rows.append(np.concatenate([histogram, thumbnail]))
    return torch.tensor(np.array(rows), dtype=torch.float32)


def fit_linear(x, y, penalty, classes):
    weight = torch.zeros(x.shape[1], classes, requires_grad=True)
    bias = torch.zeros(classes, requires_grad=True)
    optimizer = torch.optim.LBFGS([weight, bias], max_iter=300, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(x @ weight + bias, y) + penalty * weight.square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    return weight.detach(), bias.detach()


def linear(train, val, classes):
    x, xv = features(train[0]), features(val[0])
    mean, std = x.mean(0), x.std(0) + 1e-3
    x, xv = (x - mean) / std, (xv - mean) / std
    best = 0.0
    for penalty in (1e-4, 1e-3, 1e-2, 3e-2, 1e-1):
        weight, bias = fit_linear(x, train[1], penalty, classes)
        right = ((xv @ weight + bias).argmax(1) == val[1]).float().mean().item()
        best = max(best, right)
    print(f"linear: {100 * best:.1f} % of {len(val[1])}", flush=True)


class Vit(nn.Module):
    def __init__(self, size, classes, patch=8, width=128, depth=4, heads=4):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.positions = nn.Parameter(torch.randn(1, (size // patch) ** 2, width) * 0.02)
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, "gelu", batch_first=True,
                                           norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, depth, nn.LayerNorm(width),
                                            enable_nested_tensor=False)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2) + self.positions
        return self.head(self.blocks(x).mean(1))


def augment(x):
    if torch.rand(()) < 0.5:
        x = x.flip(3)
    shift = torch.randint(-6, 7, (2,)).tolist()
    return x.roll(shift, (2, 3))


def vit(train, val, classes, epochs):
    torch.manual_seed(0)

    def tensor(pixels):
        return torch.tensor(pixels).permute(0, 3, 1, 2).float() / 127.5 - 1

    x, xv, y = tensor(train[0]), tensor(val[0]), train[1]
    model = Vit(x.shape[2], classes)
    parameters = sum(p.numel() for p in model.parameters())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
    batch, step = 50, 0
    total = epochs * (len(x) // batch)
    start = time.time()
    for epoch in range(epochs):
        order = torch.randperm(len(x))
        for at in range(0, len(x) - batch + 1, batch):
            warm = min(1.0, step / (0.05 * total + 1))
            rate = 1e-3 * warm * 0.5 * (1 + math.cos(math.pi * step / total))
            optimizer.param_groups[0]["lr"] = rate
            index = order[at:at + batch]
            loss = nn.functional.cross_entropy(model(augment(x[index])), y[index],
                                               label_smoothing=0.1)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            step += 1
        if epoch % 5 == 4 or epoch == epochs - 1:
            with torch.no_grad():
                guess = torch.cat([model(part).argmax(1) for part in xv.split(100)])
            right = (guess == val[1]).float().mean().item()
            print(f"vit: epoch {epoch + 1} of {epochs}, loss {loss.item():.3f}, "
                  f"{100 * right:.1f} % of {len(xv)}, {parameters} parameters, "
                  f"{time.time() - start:.0f} s", flush=True)
    return guess


def main():
    folder = sys.argv[1]
    what = sys.argv[2] if len(sys.argv) > 2 else "all"
    epochs = int(sys.argv[3]) if len(sys.argv) > 3 else 40
    names = sorted(os.listdir(os.path.join(folder, "train")))
    train = load(os.path.join(folder, "train"), names)
    val = load(os.path.join(folder, "val"), names)
    if what in ("linear", "all"):
        linear(train, val, len(names))
    if what in ("vit", "all"):
        guess = vit(train, val, len(names), epochs)
        for label, name in enumerate(names):
            mine = guess[val[1] == label]
            print(f"  {name:24s} {100 * (mine == label).float().mean().item():.0f} %")


if __name__ == "__main__":
    main()
