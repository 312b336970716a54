#!/bin/sh
# What --workers auto finds beside fixed numbers, far too many among them: images/s of the second half of a short training run of
# ViT-Ti at 64 px on photos as they come, and the context switches of the whole run. One line a run; numbers by turns.
#   sh bench/auto_workers.sh TAGINE PHOTOS [STEPS [WORKERS...]]
set -eu
tagine=$1 photos=$2 steps=${3:-150}
shift 2
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- 0 1 2 4 48 auto
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for workers in "$@"; do
    "$tagine" train --data "$photos" --model vit_tiny_patch16_224 --img-size 64 --batch-size 16 --amp --epochs 1 --steps "$steps" \
        --val-split none --workers "$workers" --output "$work/$workers" >"$work/out" 2>&1 || { cat "$work/out"; exit 1; }
    rate=$(sed -n 's/.*"images_per_s":\([0-9.e+]*\).*"t_step":\([0-9.e-]*\).*/\1/p' "$work/$workers/metrics.jsonl" |
        tail -n $((steps / 2)) | awk '{ s += 1 / $1 } END { printf "%.1f", NR / s }')
    run=$(sed -n 's/.*"workers":\([0-9]*\),.*/\1/p' "$work/$workers/run.json" | head -1)
    printf 'workers %-5s (%2d at the end)  %7s images/s\n' "$workers" "$run" "$rate"
    rm -rf "${work:?}/$workers"
done
