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
# the account: rows for what a step is made of, in shares that add up; none unless it is asked for
# shellcheck disable=SC2086
"$TAGINE" bench train --json --quiet $small --batch-size 4 --threads 1 --steps 3 --profile >profile.json ||
    fault "bench train --profile failed"
grep -q operations train.json && fault "an account that nobody asked for"
sed 's/.*"operations":\[//; s/\].*//; s/},{/}\n{/g' profile.json >rows
for operation in linear_forward linear_backward_input linear_backward_weight mlp_forward mlp_backward \
    attention_forward attention_backward norm_forward norm_backward patch tokens_assemble cross_entropy adamw \
    weight_refresh; do
    grep -q "^{\"operation\":\"$operation\"" rows || fault "no $operation in the account"
done
tail -n 1 rows | grep -q '^{"operation":"other","shape":"","calls":null' || fault "no row 'other' at the end"
tail -n 1 rows | grep -q '"step_s":[0-9]' || fault "operations count time twice: $(tail -n 1 rows)"
# value of a key in every row, one a line
column() { sed -n "s/.*\"$1\":\([-0-9.e+]*\).*/\1/p" rows; }
column share | awk '{ sum += $1; if ($1 < 0) exit 1 } END { exit !((sum - 1) ^ 2 < 1e-12) }' || fault "shares: $(cat rows)"
column step_s | awk -v step="$(value profile_step_s profile.json)" '{ sum += $1 } END { exit !((sum / step - 1) ^ 2 < 1e-12) }' ||
    fault "times: $(cat rows)"
# what lies between the operations is little even in steps of a millisecond
holds "$(column share | tail -n 1) < 0.5" "the account's rest"
grep '"operation":"mlp_backward","shape":"68x64x256","calls":1,' rows | grep -q '"flops_per_s":[0-9].*"bytes_per_s":null' ||
    fault "mlp_backward: $(grep mlp_backward rows)"
grep '"operation":"adamw"' rows | grep -q '"flops_per_s":null,"peak_share":null,"bytes_per_s":[0-9]' ||
    fault "adamw: $(grep adamw rows)"
# shellcheck disable=SC2086
"$TAGINE" bench infer --quiet $small --threads 1 --steps 2 --profile >text || fault "bench infer --profile failed"
grep -q "^  operation  *shape  *calls" text && grep -q "^  other  *[0-9]" text || fault "no account: $(cat text)"

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
