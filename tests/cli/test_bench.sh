#!/bin/sh
# bench: the promised keys, FLOPs by the usual count, numbers that fit each other, every kind of step.
set -u
export OMP_WAIT_POLICY=passive # more tests may share these cores
[ -n "${TAGINE:-}" ] || { echo "skipped: the program was not built"; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
faults=0
fault() { echo "FAULT: $*"; faults=$((faults + 1)); }
# value KEY FILE: the number behind a key
value() { sed -n "s/.*\"$1\":\([-0-9.e+]*\).*/\1/p" "$2"; }
# holds EXPRESSION: an awk comparison
holds() { awk "BEGIN { exit !($1) }" || fault "$1 does not hold ($2)"; }

small="--img-size 32 --patch-size 8 --embed-dim 64 --depth 2 --num-heads 2 --num-classes 5"
# shellcheck disable=SC2086  # lists of words
"$TAGINE" plan --json $small >plan.json || fault "plan failed"
forward=$(value flops_forward plan.json)

# run KIND FLOPS ARGUMENT...: FLOPs of an image, and the numbers that follow from one another
run() {
    kind=$1 flops=$2
    shift 2
    # shellcheck disable=SC2086
    "$TAGINE" bench "$kind" --json --quiet $small --batch-size 4 --threads 1 --steps 3 "$@" >"$kind.json" ||
        fault "bench $kind failed"
    for key in images_per_s step_s flops_per_s matmul_peak_flops_per_s peak_rss_mib; do
        [ -n "$(value $key "$kind.json")" ] || fault "bench $kind: no $key in $(cat "$kind.json")"
    done
    step=$(value step_s "$kind.json") rate=$(value images_per_s "$kind.json")
    holds "$(value flops_per_image "$kind.json") == $flops" "$kind: FLOPs"
    holds "($rate * $step - 4) ^ 2 < 1e-12" "$kind: rate"
    holds "($(value flops_per_s "$kind.json") / ($rate * ($flops)) - 1) ^ 2 < 1e-12" "$kind: FLOP/s"
    holds "$(value step_min_s "$kind.json") <= $step && $step <= $(value step_max_s "$kind.json")" "$kind: median"
    holds "$(value matmul_peak_flops_per_s "$kind.json") > 1e8" "$kind: peak"
}
run infer "$forward" --amp-dtype float32
run train "3 * $forward" --amp-dtype bfloat16
teacher=$("$TAGINE" plan --json --model vit_tiny_patch16_224 --num-classes 5 | sed 's/.*"flops_forward":\([0-9.e+]*\).*/\1/')
run distill "3 * $forward + $teacher" --teacher vit_tiny_patch16_224 --amp-dtype float32
grep -q '"teacher_s":[0-9]' distill.json || fault "no teacher's time: $(cat distill.json)"
grep -q '"teacher_s":null' train.json || fault "a teacher's time without teacher: $(cat train.json)"
# shellcheck disable=SC2086
"$TAGINE" bench infer --quiet $small --threads 1 --steps 2 >text || fault "bench infer failed"
grep -q "share of peak" text || fault "no share of the peak: $(cat text)"
# a model pretrained without labels is trained with a head
"$TAGINE" bench train --json --quiet --model vit_small_patch14_dinov2 --img-size 28 --depth 1 --batch-size 2 \
    --threads 1 --steps 1 --warmup 0 >/dev/null || fault "no head for a model without classes"

"$TAGINE_BINARY_DIR/tests/tagine_test_fixture" . || exit 1
echo "no picture" >data/val/sushi/bad.jpg
"$TAGINE" bench loader --json --quiet --data data --train-split val --img-size 32 --batch-size 4 --workers 1 \
    >loader.json || fault "bench loader failed"
holds "$(value images loader.json) == 18 && $(value skipped loader.json) == 1" "loader: photos"
holds "$(value images_per_s loader.json) > 0 && $(value images_per_s_per_core loader.json) > 0" "loader: rate"
"$TAGINE" bench loader --quiet --data data --train-split val --img-size 32 | grep -q "a core" || fault "bench loader"
"$TAGINE" bench infer --model nowhere/ 2>err && fault "no model and no error"
grep -q nowhere err || fault "no name in: $(cat err)"

[ "$faults" -eq 0 ] || { echo "$faults faults"; exit 1; }
