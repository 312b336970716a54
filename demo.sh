#!/bin/sh
# The main job from nothing: install what is missing, build, take or make photos, train a teacher,
# distil a student from it, train the same student without a teacher, compare the three, and predict.
#
#   ./demo.sh                  generated pictures of food (no download beyond packages)
#   ./demo.sh PHOTO_FOLDER     your own: PHOTO_FOLDER/train and /val with a folder per class, or class
#                              folders alone (a fifth is then kept for validation)
#
# Results lie in runs/demo (or $TAGINE_DEMO_DIR). A second run reuses the build and the pictures; what it
# trains takes the place of the first's, which stays as NAME.previous until then.
# $TAGINE_DEMO_SCALE shortens or lengthens the training (1 is a few minutes on 2 cores).
set -eu

usage() { sed -n '2,11s/^# \{0,1\}//p' "$0"; }
case ${1:-} in
-h | --help)
    usage
    exit 0
    ;;
-*)
    printf 'demo.sh: no option %s\n\n' "$1" >&2
    usage >&2
    exit 2
    ;;
esac
photos=
if [ $# -gt 0 ]; then
    photos=$(cd -- "$1" 2>/dev/null && pwd) || {
        printf 'demo.sh: no folder %s\n' "$1" >&2
        exit 3
    }
fi
cd "$(dirname "$0")"

scale=${TAGINE_DEMO_SCALE:-1}
out=${TAGINE_DEMO_DIR:-runs/demo}
build=build/release
tagine=$build/tagine
started=$(date +%s)

say() { printf '\n\033[1m== %s\033[0m\n' "$*" >&2; }
epochs() { awk -v n="$1" -v s="$scale" 'BEGIN { e = int(n * s + 0.5); print e < 1 ? 1 : e }'; }
# field FILE KEY: a number of a one-line JSON object
field() { sed -n "s/.*\"$2\":\([-0-9.e+]*\).*/\1/p" "$1" | head -n 1; }

say "1/7 packages"
scripts/install-dependencies.sh

say "2/7 build"
mkdir -p build
# One line that counts on a terminal, nothing elsewhere; all of it when it fails.
show_build() {
    if [ -t 2 ]; then
        awk '/^\[/ { printf "\r%-76.76s", $0 > "/dev/stderr" } END { printf "\r%-76s\r", "" > "/dev/stderr" }'
    else
        cat >/dev/null
    fi
}
{ { cmake --preset release && cmake --build --preset release --target tagine_program; } 2>&1 ||
    echo failed >build/demo.failed; } | tee build/demo.log | show_build
if [ -e build/demo.failed ]; then
    rm -f build/demo.failed
    tail -n 40 build/demo.log >&2
    exit 1
fi

mkdir -p "$out"
say "3/7 photos"
if [ -n "$photos" ]; then
    data=$photos
    if [ -d "$data/train" ] && [ -d "$data/val" ]; then split=val; else split=0.2; fi
else
    data=$out/photos
    split=val
    if [ ! -f "$data/complete" ]; then
        rm -rf "$data"
        "$tagine" data synth --output "$data" --classes 12 --per-class 600 --img-size 64 --seed 1
        : >"$data/complete"
    fi
fi
"$tagine" data stats --data "$data" --val-split "$split"

common="--val-split $split --amp --batch-size 64 --workers auto --warmup-epochs 2"
shape="--img-size 64 --patch-size 8"

# train NAME COMMAND OPTIONS...: an earlier NAME is kept as NAME.previous until the new one is done
train() {
    name=$1 command=$2
    shift 2
    if [ -d "$out/$name" ]; then
        rm -rf "${out:?}/$name.previous"
        mv "$out/$name" "$out/$name.previous"
    fi
    # shellcheck disable=SC2086
    "$tagine" "$command" --data "$data" $common $shape --output "$out/$name" "$@" --json >"$out/$name.json"
    rm -rf "${out:?}/$name.previous"
}

teacher_shape="--model vit_tiny_patch16_224 --embed-dim 192 --depth 6 --num-heads 3"
student_shape="--model vit_tiny_patch16_224 --embed-dim 64 --depth 3 --num-heads 2"

say "4/7 teacher: labels"
# shellcheck disable=SC2086
train teacher train $teacher_shape --epochs "$(epochs 20)" --lr 1e-3 --scale 0.5 1
say "5/7 student alone: labels"
# shellcheck disable=SC2086
train alone train $student_shape --epochs "$(epochs 12)" --lr 1e-3 --scale 0.5 1
say "6/7 student distilled: the teacher's answers"
# shellcheck disable=SC2086
train distilled distill $student_shape --epochs "$(epochs 12)" --lr 1e-3 --scale 0.5 1 \
    --teacher "$out/teacher/model" --kd-alpha 0.9 --kd-temperature 3

say "7/7 comparison"
row() {
    "$tagine" eval --model "$out/$1/model" --data "$data" --val-split "$split" --json --quiet \
        >"$out/$1.eval.json"
    "$tagine" bench infer --model "$out/$1/model" --batch-size 1 --threads 1 --steps 30 --json --quiet \
        >"$out/$1.bench.json"
    bytes=$(wc -c <"$out/$1/model/model.safetensors")
    awk -v name="$2" -v p="$(field "$out/$1.json" parameters)" -v a="$(field "$out/$1.eval.json" top1)" \
        -v i="$(field "$out/$1.bench.json" images_per_s)" -v b="$bytes" \
        'BEGIN { printf "%-20s %11.2f M %10.1f %% %13.0f %10.1f MB\n", name, p / 1e6, a, i, b / 1e6 }'
}
printf '\n%-20s %13s %12s %13s %13s\n' model parameters 'accuracy' 'images/s' size
row teacher teacher
row alone 'student alone'
row distilled 'student distilled'
printf '(accuracy on the validation photos; images/s: one photo at a time on one core)\n'

say "a few photos, with what is in them"
if [ "$split" = val ]; then pool=$data/val; else pool=$data; fi
find -L "$pool" -type f -iname '*.jp*g' | sort | awk 'NR % 97 == 1' | head -n 3 >"$out/sample.txt"
set --
while IFS= read -r photo; do set -- "$@" "$photo"; done <"$out/sample.txt"
if [ $# -gt 0 ]; then "$tagine" predict --model "$out/distilled/model" --topk 3 "$@"; fi

printf '\nEverything is in %s: a run directory each for teacher, alone and distilled (records in\n' "$out"
printf 'metrics.jsonl, checkpoints, the model in model/). Finished in %s s.\n' \
    "$(($(date +%s) - started))"
