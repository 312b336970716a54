#!/usr/bin/env python3
"""Makes tests/golden/model: what PyTorch, timm and transformers compute for tiny vision transformers.

    python3 scripts/golden/make_model_golden.py [OUTPUT_FOLDER]

Needs torch, timm, transformers and safetensors from PyPI; the tests need none of them. Everything is
computed in float64 on the CPU and rounded once to float32, so a file holds the true value of the
formula and the limits of the tests are about our rounding alone. index.json also records how far
PyTorch's own float32 and its bfloat16 autocast are from these values. The formulas are written down in
docs/NUMERICS.md.

Files
    index.json                   the cases; field names of "config" are those of src/model/config.h
    <case>.safetensors           weight/<name>, grad/<name> (timm's names), image, target,
                                 target_dist, logits, logits_dist, logits_eval, feature, dfeature
    <case>/, <case>_grad/        a Hugging Face model folder with weights, and one with gradients
    train_inputs.safetensors     images of student and teacher, labels, both models' weights
    <sequence>.safetensors       final/<name>: weights after ten optimizer steps
    positions.safetensors        position tables and their resampled forms
"""

import json
import math
import pathlib
import sys

import timm
import torch
import torch.nn.functional as F
import transformers
from safetensors.torch import save_file
from timm.layers import resample_abs_pos_embed
from timm.models.deit import VisionTransformerDistilled
from timm.models.vision_transformer import VisionTransformer
from timm.optim import param_groups_layer_decay, param_groups_weight_decay

STEPS = 10


# ---------------------------------------------------------------------------------------- models


def config(**changes):
    """A tiny plain ViT in the field names of src/model/config.h."""
    base = dict(
        family="vit", img_h=16, img_w=16, patch=4, embed_dim=16, depth=2, num_heads=2,
        mlp_hidden=32, num_classes=5, class_token=True, dist_token=False, reg_tokens=0,
        no_embed_class=False, layer_scale=False, qkv_bias=True, pool="token", gelu="exact",
        norm_eps=1e-6,
    )
    assert set(changes) <= set(base), changes
    return base | changes


MODELS = {
    "vit_token": config(embed_dim=32, num_heads=4, mlp_hidden=64),
    "vit_avg": config(pool="avg", embed_dim=24, mlp_hidden=48),
    "vit_avg_no_class": config(pool="avg", class_token=False, num_heads=4),
    "vit_gelu_tanh": config(gelu="tanh", num_heads=1),
    "vit_nonsquare": config(img_h=32, img_w=48, patch=8, depth=1),
    "vit_no_qkv_bias": config(qkv_bias=False, embed_dim=20, mlp_hidden=44, num_classes=7,
                              depth=1),
    "vit_features": config(num_classes=0),
    "vit_reg4": config(reg_tokens=4, no_embed_class=True, layer_scale=True, embed_dim=24,
                       num_heads=3, mlp_hidden=48),
    "deit_distilled": config(family="deit", dist_token=True, embed_dim=24, num_heads=3,
                             mlp_hidden=48),
    "deit3": config(family="deit", no_embed_class=True, layer_scale=True, mlp_hidden=64),
    "dinov2": config(family="dinov2", img_h=28, img_w=42, patch=14, layer_scale=True, depth=1,
                     mlp_hidden=64),
}


def build_timm(c):
    assert c["mlp_hidden"] == int(c["embed_dim"] * (c["mlp_hidden"] / c["embed_dim"]))
    arguments = dict(
        img_size=(c["img_h"], c["img_w"]), patch_size=c["patch"], embed_dim=c["embed_dim"],
        depth=c["depth"], num_heads=c["num_heads"], mlp_ratio=c["mlp_hidden"] / c["embed_dim"],
        num_classes=c["num_classes"], qkv_bias=c["qkv_bias"],
        init_values=1.0 if c["layer_scale"] else None, no_embed_class=c["no_embed_class"],
        act_layer="gelu_tanh" if c["gelu"] == "tanh" else None,
    )
    if c["dist_token"]:
        model = VisionTransformerDistilled(**arguments)
    else:
        model = VisionTransformer(global_pool=c["pool"], class_token=c["class_token"],
                                  reg_tokens=c["reg_tokens"], **arguments)
    assert model.blocks[0].norm1.eps == c["norm_eps"]
    return model


def fill(model, generator):
    """Weights large enough that no part of the model is nearly linear, each exact in bfloat16."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            noise = torch.randn(p.shape, generator=generator)
            if "norm" in name and name.endswith("weight"):
                value = 1 + 0.2 * noise
            elif name.endswith(".gamma") or name.endswith("lambda1"):
                value = 0.5 + 0.2 * noise
            elif p.ndim == 1:
                value = 0.1 * noise
            elif "token" in name or "position" in name or "pos_embed" in name:
                value = 0.3 * noise
            else:
                value = noise * 1.2 / math.sqrt(p[0].numel())
            p.copy_(value.bfloat16())


def soft_target(generator, B, K):
    return torch.softmax(1.5 * torch.randn(B, K, generator=generator), 1)


def random_inputs(c, generator):
    B = 2 if c["img_w"] > 16 else 3
    data = {"image": torch.randn(B, 3, c["img_h"], c["img_w"], generator=generator)}
    if c["num_classes"]:
        data["target"] = soft_target(generator, B, c["num_classes"])
        if c["dist_token"]:
            data["target_dist"] = soft_target(generator, B, c["num_classes"])
    else:
        data["dfeature"] = torch.randn(B, c["embed_dim"], generator=generator) / B
    return data


def evaluate(model, c, data, dtype):
    """Everything a case records, computed in `dtype`; gradients by name in `grad/`."""
    model = model.to(dtype)
    model.zero_grad()
    tensors = {k: v.to(dtype) for k, v in data.items()}
    out = {}
    if c["dist_token"]:
        model.distilled_training = True
        model.train()
        logits, logits_dist = model(tensors["image"])
        loss = 0.5 * F.cross_entropy(logits, tensors["target"]) + \
            0.5 * F.cross_entropy(logits_dist, tensors["target_dist"])
        out |= {"logits": logits, "logits_dist": logits_dist,
                "feature": model.forward_features(tensors["image"])[:, 0]}
        loss.backward()
        model.eval()
        out["logits_eval"] = model(tensors["image"])
    else:
        hidden = model.forward_features(tensors["image"])
        out["feature"] = model.forward_head(hidden, pre_logits=True)
        if c["num_classes"]:
            out["logits"] = model.forward_head(hidden)
            loss = F.cross_entropy(out["logits"], tensors["target"])
        else:
            loss = (out["feature"] * tensors["dfeature"]).sum()
        loss.backward()
    out["loss"] = loss.reshape(1)
    out |= {f"grad/{n}": p.grad.clone() for n, p in model.named_parameters()}
    return {k: v.detach() for k, v in out.items()}


def relative(a, b):
    return ((a.double() - b.double()).abs().max() / b.double().abs().max().clamp_min(1e-30)).item()


def under_autocast(evaluate, *arguments):
    with torch.autocast("cpu", torch.bfloat16):
        return evaluate(*arguments, torch.float32)


def worst(single, double):
    """Largest difference of PyTorch's narrow types from float64, relative to each tensor's largest.
    Gradients that are zero by symmetry (the bias of keys) have no scale and are left out."""
    return {
        "output": max(relative(single[k], v) for k, v in double.items() if not k.startswith("grad/")),
        "gradient": max(relative(single[k], v) for k, v in double.items()
                        if k.startswith("grad/") and v.abs().max() > 1e-12),
    }


def packed(tensors):
    return {k: v.detach().clone().contiguous() for k, v in tensors.items()}


def rounded(tensors):
    return {k: v.float() if v.is_floating_point() else v for k, v in tensors.items()}


def model_case(name, c, seed, folder):
    generator = torch.Generator().manual_seed(seed)
    model = build_timm(c)
    fill(model, generator)
    data = random_inputs(c, generator)
    single = evaluate(model, c, data, torch.float32)
    half = under_autocast(evaluate, model, c, data)
    double = evaluate(model, c, data, torch.float64)
    weights = {f"weight/{n}": p.bfloat16() for n, p in model.named_parameters()}
    save_file(packed(weights | data | rounded(double)), folder / f"{name}.safetensors")
    return {"name": name, "config": c, "batch": len(data["image"]), "file": f"{name}.safetensors",
            "torch_float32_error": worst(single, double),
            "torch_bfloat16_error": worst(half, double)}


# --------------------------------------------------------------------------------- Hugging Face


def hf_models():
    common = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, image_size=16,
                  patch_size=4, num_channels=3)
    labels = dict(id2label={i: f"class {i}" for i in range(5)},
                  label2id={f"class {i}": i for i in range(5)})
    vit = transformers.ViTConfig(intermediate_size=32, layer_norm_eps=1e-12, **labels, **common)
    deit = transformers.DeiTConfig(intermediate_size=32, **labels, **common)
    dino = transformers.Dinov2Config(mlp_ratio=2, **common)
    return {
        "hf_vit": (transformers.ViTForImageClassification(vit),
                   config(norm_eps=1e-12)),
        "hf_deit": (transformers.DeiTForImageClassificationWithTeacher(deit),
                    config(family="deit", norm_eps=deit.layer_norm_eps, dist_token=True)),
        "hf_dinov2": (transformers.Dinov2Model(dino),
                      config(family="dinov2", norm_eps=dino.layer_norm_eps, layer_scale=True,
                         num_classes=0)),
    }


def hf_evaluate(model, c, data, dtype):
    model = model.to(dtype).eval()
    model.zero_grad()
    tensors = {k: v.to(dtype) for k, v in data.items()}
    base = getattr(model, getattr(model, "base_model_prefix", ""), model)
    result = model(pixel_values=tensors["image"])
    out = {"feature": base(pixel_values=tensors["image"]).last_hidden_state[:, 0]}
    if c["dist_token"]:
        out |= {"logits": result.cls_logits, "logits_dist": result.distillation_logits,
                "logits_eval": result.logits}
        loss = 0.5 * F.cross_entropy(out["logits"], tensors["target"]) + \
            0.5 * F.cross_entropy(out["logits_dist"], tensors["target_dist"])
    elif c["num_classes"]:
        out["logits"] = result.logits
        loss = F.cross_entropy(out["logits"], tensors["target"])
    else:
        loss = (out["feature"] * tensors["dfeature"]).sum()
    loss.backward()
    out["loss"] = loss.reshape(1)
    out |= {f"grad/{n}": (torch.zeros_like(p) if p.grad is None else p.grad.clone())
            for n, p in model.named_parameters()}
    return {k: v.detach() for k, v in out.items()}


def hf_case(name, model, c, seed, folder):
    generator = torch.Generator().manual_seed(seed)
    fill(model, generator)
    data = random_inputs(c, generator)
    model = model.float()
    model.save_pretrained(folder / name)
    single = hf_evaluate(model, c, data, torch.float32)
    half = under_autocast(hf_evaluate, model, c, data)
    double = hf_evaluate(model, c, data, torch.float64)
    with torch.no_grad():
        for n, p in model.named_parameters():
            p.copy_(double[f"grad/{n}"])
    model.float().save_pretrained(folder / f"{name}_grad")
    outputs = {k: v for k, v in rounded(double).items() if not k.startswith("grad/")}
    save_file(packed(data | outputs), folder / f"{name}.safetensors")
    return {"name": name, "config": c, "batch": len(data["image"]), "file": f"{name}.safetensors",
            "weights": name, "gradients": f"{name}_grad",
            "torch_float32_error": worst(single, double),
            "torch_bfloat16_error": worst(half, double)}


# ------------------------------------------------------------------------------------- training

STUDENT = config()
STUDENT_DIST = STUDENT | dict(family="deit", dist_token=True)
TEACHER = config(img_h=18, img_w=18, patch=6, embed_dim=24, depth=1, num_heads=3, mlp_hidden=48)
SMOOTHING = 0.1
HYPER = dict(weight_decay=0.05, beta1=0.9, beta2=0.999, eps=1e-8, clip_grad=0.0, layer_decay=1.0,
             smoothing=SMOOTHING)
KD = dict(kd_loss="none", kd_alpha=0.0, kd_temperature=4.0, kd_reduction="batchmean", student="plain")

SEQUENCES = {
    "train_plain": {},
    "train_clip": dict(clip_grad=1.0, beta2=0.95, eps=1e-6, weight_decay=0.3),
    "train_layer_decay": dict(layer_decay=0.65),
    "distill_kl_batchmean": dict(kd_loss="kl", kd_alpha=0.5),
    "distill_kl_mean": dict(kd_loss="kl", kd_alpha=0.5, kd_temperature=3.0, kd_reduction="mean"),
    "distill_kl_alone": dict(kd_loss="kl", kd_alpha=1.0, kd_temperature=2.0),
    "distill_hard": dict(kd_loss="hard", kd_alpha=0.5),
    "distill_token_kl": dict(kd_loss="kl", kd_alpha=0.5, student="distilled"),
    "distill_token_hard": dict(kd_loss="hard", kd_alpha=0.3, student="distilled"),
    "distill_feature": dict(kd_loss="feature", kd_alpha=0.5),
}


def learning_rates():
    """A short warm-up and a fall, so that a rate used one step late is seen."""
    return [1e-3 * min((t + 1) / 3, 1 - (t - 2) / 10) for t in range(STEPS)]


def parameter_groups(model, s):
    """timm's groups: vectors, biases, tokens and positions do not decay."""
    skip = model.no_weight_decay()
    if s["layer_decay"] != 1:
        groups = param_groups_layer_decay(model, s["weight_decay"], skip, layer_decay=s["layer_decay"])
    else:
        groups = param_groups_weight_decay(model, s["weight_decay"], no_weight_decay_list=skip)
    return groups


def kd_term(s, student, teacher, student_feature, teacher_feature, projection):
    T = s["kd_temperature"]
    if s["kd_loss"] == "kl":
        value = F.kl_div(F.log_softmax(student / T, 1), F.log_softmax(teacher / T, 1),
                         reduction="sum", log_target=True) * T * T
        return value / (len(student) if s["kd_reduction"] == "batchmean" else student.numel())
    if s["kd_loss"] == "hard":
        return F.cross_entropy(student, teacher.argmax(1))
    if s["kd_loss"] == "feature":
        return F.mse_loss(projection(student_feature), teacher_feature)
    return torch.zeros((), dtype=student.dtype)


def run_sequence(s, start, inputs, dtype):
    """Ten optimizer steps; the records of each and the weights after the last."""
    c = STUDENT_DIST if s["student"] == "distilled" else STUDENT
    model = build_timm(c)
    model.load_state_dict(start[s["student"]])
    model = model.to(dtype).train()
    model.distilled_training = True
    teacher = build_timm(TEACHER)
    teacher.load_state_dict(start["teacher"])
    teacher = teacher.to(dtype).eval()
    groups = parameter_groups(model, s)
    projection = None
    if s["kd_loss"] == "feature":
        projection = torch.nn.Linear(STUDENT["embed_dim"], TEACHER["embed_dim"])
        projection.load_state_dict(start["projection"])
        projection = projection.to(dtype)
        groups += [{"params": [projection.weight], "weight_decay": s["weight_decay"]},
                   {"params": [projection.bias], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=1, betas=(s["beta1"], s["beta2"]), eps=s["eps"])
    named = dict(model.named_parameters())
    if projection is not None:
        named |= {f"projection.{n}": p for n, p in projection.named_parameters()}
    records = []
    for lr in learning_rates():
        for g in optimizer.param_groups:
            g["lr"] = lr * g.get("lr_scale", 1.0)
        records.append(one_step(s, model, teacher, projection, optimizer, named, inputs, dtype,
                                len(records)))
    scales = {n: (g.get("lr_scale", 1.0), g["weight_decay"]) for g in optimizer.param_groups
              for n, p in named.items() if any(p is q for q in g["params"])}
    return records, {n: p.detach().clone() for n, p in named.items()}, scales


def one_step(s, model, teacher, projection, optimizer, named, inputs, dtype, step):
    which = step % len(inputs["student_image"])
    image = inputs["student_image"][which].to(dtype)
    labels = inputs["labels"][which]
    with torch.no_grad():
        teacher_hidden = teacher.forward_features(inputs["teacher_image"][which].to(dtype))
        teacher_feature = teacher.forward_head(teacher_hidden, pre_logits=True)
        teacher_logits = teacher.forward_head(teacher_hidden)
    optimizer.zero_grad()
    if s["student"] == "distilled":
        logits, kd_logits = model(image)
        feature = None
    else:
        hidden = model.forward_features(image)
        feature = model.forward_head(hidden, pre_logits=True)
        logits = kd_logits = model.forward_head(hidden)
    task = F.cross_entropy(logits, labels, label_smoothing=s["smoothing"])
    kd = kd_term(s, kd_logits, teacher_logits, feature, teacher_feature, projection)
    loss = (1 - s["kd_alpha"]) * task + s["kd_alpha"] * kd
    loss.backward()
    parameters = [p for p in named.values() if p.grad is not None]
    norm = torch.nn.utils.clip_grad_norm_(parameters, s["clip_grad"] or float("inf"))
    optimizer.step()
    return {"loss": loss.item(), "loss_task": task.item(), "loss_kd": kd.item(),
            "grad_norm": norm.item()}


def state(model):
    return {k: v.detach().clone() for k, v in model.state_dict().items()}


def training_inputs(folder):
    generator = torch.Generator().manual_seed(77)
    batches, B, K = 2, 4, STUDENT["num_classes"]
    models = {"plain": build_timm(STUDENT), "distilled": build_timm(STUDENT_DIST),
              "teacher": build_timm(TEACHER),
              "projection": torch.nn.Linear(STUDENT["embed_dim"], TEACHER["embed_dim"])}
    for model in models.values():
        fill(model, generator)
    start = {name: state(model) for name, model in models.items()}
    inputs = {
        "student_image": torch.randn(batches, B, 3, 16, 16, generator=generator),
        "teacher_image": torch.randn(batches, B, 3, 18, 18, generator=generator),
        "labels": torch.randint(0, K, (batches, B), generator=generator),
    }
    stored = {f"{m}/{n}": v.bfloat16() for m, weights in start.items() for n, v in weights.items()}
    save_file(packed(inputs | stored), folder / "train_inputs.safetensors")
    return start, inputs


def key_bias(name, tensor):
    """Hides the gradient-free rows: adding a constant to every key changes no softmax."""
    if name.endswith("attn.qkv.bias"):
        tensor = tensor.clone()
        third = len(tensor) // 3
        tensor[third:2 * third] = 0
    return tensor


def train_case(name, changes, start, inputs, folder):
    s = HYPER | KD | changes
    single, weights32, _ = run_sequence(s, start, inputs, torch.float32)
    double, weights, scales = run_sequence(s, start, inputs, torch.float64)
    save_file(packed({f"final/{n}": w.float() for n, w in weights.items()}),
              folder / f"{name}.safetensors")
    error = {
        "loss": max(abs(a["loss"] - b["loss"]) / abs(b["loss"]) for a, b in zip(single, double)),
        "grad_norm": max(abs(a["grad_norm"] - b["grad_norm"]) / b["grad_norm"]
                         for a, b in zip(single, double)),
        "weight": max(relative(key_bias(n, weights32[n]), key_bias(n, w))
                      for n, w in weights.items()),
    }
    case = {"name": name, "file": f"{name}.safetensors"} | s
    case |= {"lr": learning_rates(), "steps": double, "torch_float32_error": error}
    if s["layer_decay"] != 1:
        case["lr_scale"] = {n: scale for n, (scale, _) in scales.items()}
    case["no_decay"] = sorted(n for n, (_, decay) in scales.items() if decay == 0)
    return case


# ------------------------------------------------------------------------------------ positions


def positions(folder):
    """A 6x6 table with a class row resampled to other grids, keys <way>/<rows>x<columns>: antialias
    as timm, plain as the DeiT code and transformers, offset as the DINOv2 code (grid + 0.1)."""
    generator = torch.Generator().manual_seed(5)
    C, tensors = 4, {}
    table = torch.randn(1, 1 + 36, C, generator=generator)
    tensors["table"] = table
    for h, w in [(4, 4), (9, 9), (5, 8), (3, 7)]:
        tensors[f"antialias/{h}x{w}"] = resample_abs_pos_embed(table.double(), [h, w], [6, 6]).float()
        patches = table[:, 1:].reshape(1, 6, 6, C).permute(0, 3, 1, 2).double()
        for key, scale in (("plain", None), ("offset", ((h + 0.1) / 6, (w + 0.1) / 6))):
            grid = F.interpolate(patches, size=None if scale else (h, w), scale_factor=scale,
                                 mode="bicubic", align_corners=False)
            assert grid.shape[-2:] == (h, w)
            grid = grid.permute(0, 2, 3, 1).reshape(1, -1, C)
            tensors[f"{key}/{h}x{w}"] = torch.cat([table[:, :1].double(), grid], 1).float()
    save_file(packed(tensors), folder / "positions.safetensors")


def one_object_a_line(index):
    """JSON with one case a line: small, and a change shows as one line of a diff."""
    lines = []
    for key, value in index.items():
        if isinstance(value, list):
            text = "[\n  " + ",\n  ".join(json.dumps(v) for v in value) + "\n ]"
        else:
            text = json.dumps(value)
        lines.append(f" {json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n}"


def main():
    default = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden" / "model"
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    folder.mkdir(parents=True, exist_ok=True)
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    models = [model_case(n, c, 100 + i, folder) for i, (n, c) in enumerate(MODELS.items())]
    models += [hf_case(n, m, c, 200 + i, folder) for i, (n, (m, c)) in enumerate(hf_models().items())]
    start, inputs = training_inputs(folder)
    training = [train_case(n, s, start, inputs, folder) for n, s in SEQUENCES.items()]
    positions(folder)
    index = {
        "generator": {"torch": torch.__version__.split("+")[0], "timm": timm.__version__,
                      "transformers": transformers.__version__},
        "models": models,
        "students": {"plain": STUDENT, "distilled": STUDENT_DIST},
        "teacher": TEACHER,
        "training": training,
    }
    (folder / "index.json").write_text(one_object_a_line(index) + "\n")


if __name__ == "__main__":
    main()
