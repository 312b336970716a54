#!/usr/bin/env python3
"""Holds model folders against timm and transformers: random weights, no downloads.

usage: check-interchange.py PROGRAM      (PROGRAM: the test program test_ckpt_interchange)

Three directions, each compared by logits (largest difference over largest value):
  theirs -> ours      a folder that timm or transformers wrote, read by PROGRAM
  ours -> theirs      the same model written by PROGRAM in both namings, opened with
                      timm.create_model('local-dir:...') and AutoModelForImageClassification
  resampled           the model read at another image size by both
Needs torch, timm, transformers and safetensors.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import timm
import torch
import transformers
from safetensors.torch import load_file, save_file
from timm.models import save_for_hf

LIMIT = 2e-5
transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
small = dict(embed_dim=48, depth=2, num_heads=3, num_classes=5)
width = dict(hidden_size=48, num_hidden_layers=2, num_attention_heads=3)
labels = dict(id2label={i: f"class {i}" for i in range(5)},
              label2id={f"class {i}": i for i in range(5)})

TIMM = {
    "vit": ("vit_tiny_patch16_224", dict(img_size=64)),
    "vit avg": ("vit_tiny_patch16_224", dict(img_size=64, global_pool="avg", class_token=False)),
    "vit tanh, no bias": ("vit_tiny_patch16_224",
                          dict(img_size=64, act_layer="gelu_tanh", qkv_bias=False, mlp_ratio=2.5)),
    "vit non-square": ("vit_tiny_patch16_224", dict(img_size=(64, 96))),
    "deit distilled": ("deit_tiny_distilled_patch16_224", dict(img_size=64)),
    "deit3": ("deit3_small_patch16_224", dict(img_size=64)),
    "dinov2": ("vit_small_patch14_dinov2", dict(img_size=56)),
    "dinov2 reg": ("vit_small_patch14_reg4_dinov2", dict(img_size=56)),
}
T = transformers
HF = {
    "hf vit": T.ViTForImageClassification(
        T.ViTConfig(**width, **labels, intermediate_size=96, image_size=64)),
    "hf deit": T.DeiTForImageClassification(
        T.DeiTConfig(**width, **labels, intermediate_size=96, image_size=64)),
    "hf deit teacher": T.DeiTForImageClassificationWithTeacher(
        T.DeiTConfig(**width, **labels, intermediate_size=96, image_size=64)),
    "hf dinov2": T.Dinov2Model(T.Dinov2Config(**width, mlp_ratio=2, image_size=56, patch_size=14)),
    "hf dinov2 reg": T.Dinov2WithRegistersModel(
        T.Dinov2WithRegistersConfig(**width, mlp_ratio=2, image_size=56, patch_size=14)),
}


def shake(model):
    """No tensor stays at a constant start, so that every one of them matters."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn(p.shape, generator=generator) * 0.1)
    return model.eval()


def evaluate(model, image, **more):
    with torch.no_grad():
        out = model(image, **more)
    if isinstance(out, torch.Tensor):
        return out
    return out.logits if "logits" in out else out.last_hidden_state[:, 0]


class Checker:
    def __init__(self, program, folder):
        self.program, self.folder, self.failed = program, folder, 0

    def run(self, *args):
        done = subprocess.run([self.program, *map(str, args)], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr.strip())

    def ours(self, model, image, size=None):
        save_file({"image": image.contiguous()}, self.folder / "image.safetensors")
        self.run(*(["--size", *size] if size else []), "--logits", model,
                 self.folder / "image.safetensors", self.folder / "logits.safetensors")
        return load_file(self.folder / "logits.safetensors")["logits"]

    def compare(self, what, got, want):
        error = ((got - want).abs().max() / want.abs().max()).item()
        bad = not error < LIMIT
        self.failed += bad
        print(f"{'FAIL' if bad else 'ok'}  {what:45s} {error:.1e}")

    def theirs(self, path, naming, image):
        if naming == "timm":
            return evaluate(timm.create_model(f"local-dir:{path}", pretrained=True).eval(), image)
        has_head = "id2label" in json.loads((path / "config.json").read_text())
        opened = (T.AutoModelForImageClassification if has_head else T.AutoModel)
        return evaluate(opened.from_pretrained(path).eval(), image)

    def model(self, name, path, want, image, namings):
        self.compare(f"{name} -> ours", self.ours(path, image), want)
        for naming in namings:
            out = self.folder / "converted"
            self.run("--convert", path, out, naming)
            self.compare(f"{name} -> ours -> {naming}", self.theirs(out, naming, image), want)
            self.compare(f"{name} -> ours -> {naming} -> ours", self.ours(out, image), want)


def pictures(size):
    return torch.randn(2, 3, *size, generator=torch.Generator().manual_seed(2))


def check_timm(check):
    for name, (architecture, args) in TIMM.items():
        size = args["img_size"] if isinstance(args["img_size"], tuple) else (args["img_size"],) * 2
        path, image = check.folder / name.replace(" ", "_"), pictures(size)
        model = shake(timm.create_model(architecture, **small, **args))
        save_for_hf(model, path, safe_serialization=True,
                    model_config=dict(label_names=[f"class {i}" for i in range(5)]))
        namings = ["timm"] + ([] if "avg" in name else ["hf"])
        check.model(name, path, evaluate(model, image), image, namings)
        for other in ((size[0] * 2, size[1] * 2), (size[0], size[1] * 2)):
            resized = timm.create_model(f"local-dir:{path}", pretrained=True, img_size=other).eval()
            image = pictures(other)
            check.compare(f"{name} at {other}", check.ours(path, image, other),
                          evaluate(resized, image))


def check_hf(check):
    for name, model in HF.items():
        path, size = check.folder / name.replace(" ", "_"), (model.config.image_size,) * 2
        shake(model).save_pretrained(path)
        image = pictures(size)
        namings = ["hf"] + ([] if model.config.layer_norm_eps != 1e-6 else ["timm"])
        check.model(name, path, evaluate(model, image), image, namings)
        for other in ((size[0] * 2, size[1] * 2), (size[0], size[1] * 2)):
            image = pictures(other)
            more = {} if "dino" in name else {"interpolate_pos_encoding": True}
            check.compare(f"{name} at {other}", check.ours(path, image, other),
                          evaluate(model, image, **more))


def main():
    with tempfile.TemporaryDirectory() as folder:
        check = Checker(sys.argv[1], pathlib.Path(folder))
        check_timm(check)
        check_hf(check)
    print(f"{check.failed} differ by more than {LIMIT}")
    return 1 if check.failed else 0


if __name__ == "__main__":
    sys.exit(main())
