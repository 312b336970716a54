#!/bin/sh
# compare: two runs of one recipe, one with more loader threads and one with another batch; JSON; several; what cannot be.
# No number of a machine's speed is asserted.
set -u
export OMP_WAIT_POLICY=passive # more tests may share these cores
[ -n "${TAGINE:-}" ] || { echo "skipped: the program was not built"; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
faults=0
fault() { echo "FAULT: $*"; faults=$((faults + 1)); }

"$TAGINE" data synth --output data --classes 2 --per-class 48 --img-size 32 --quiet >/dev/null || fault "synth"
small="--data data --img-size 16 --patch-size 8 --embed-dim 32 --depth 1 --num-heads 2 --warmup-epochs 0 --epochs 4 --quiet"
# shellcheck disable=SC2086
{
    "$TAGINE" train $small --batch-size 8 --workers 9 --output a >/dev/null || fault "train a"
    "$TAGINE" train $small --batch-size 8 --workers 1 --output b >/dev/null || fault "train b"
    "$TAGINE" train $small --batch-size 16 --workers 1 --output c >/dev/null || fault "train c"
}

"$TAGINE" compare a b >out 2>err || fault "compare: $(cat err)"
sed -n '/^set differently/,/^$/p' out | grep -q '^  workers  *9  *1$' || fault "settings: $(cat out)"
[ "$(sed -n '/^set differently/,/^$/p' out | wc -l)" -eq 3 ] || fault "more than one setting: $(cat out)"
for part in "^  images/s " "^  step " "^  backward " "^  all of it .*100.0 %" "^  they do: .*losses differ" "the first 48 steps" \
    "^  loss after as many photos .*none$" "^  top-1 after epoch 4 .*none$"; do
    tr '\n' ' ' <out | grep -q "$(printf '%s' "$part" | tr -d '^$')" || fault "no $part in: $(cat out)"
done
awk 'length > 80' out | grep -q . && fault "wider than 80: $(cat out)"
# times of steps of another size are those of as many photos
"$TAGINE" compare b c >out 2>err || fault "compare: $(cat err)"
grep -q '^A step of A has 8 photos, one of B 16: times of B are those of 8 photos.$' out || fault "photos: $(cat out)"

"$TAGINE" compare a b --json >out 2>err || fault "--json: $(cat err)"
[ "$(wc -l <out)" -eq 1 ] || fault "more than a line: $(cat out)"
for key in '"settings":\[{"name":"workers","option":true,"a":"9","b":"1","may_change_time":true}\]' '"key":"step_s"' '"a_ledger":{' \
    '"alike":{"alike":true,"within":1,"most":0,"equal_steps":48}' '"findings":\[' '"together":{"followed":'; do
    grep -q "$key" out || fault "no $key in: $(cat out)"
done
"$TAGINE" compare a b c >out 2>err || fault "three: $(cat err)"
[ "$(grep -c '^[abc]  ' out)" -eq 3 ] || fault "three: $(cat out)"
[ "$("$TAGINE" compare a b c --json | grep -c '"images_per_s":[0-9]')" -eq 3 ] || fault "three as JSON"

# refuse CODE PART ARGUMENT...
refuse() {
    code=$1 part=$2
    shift 2
    "$TAGINE" compare "$@" >out 2>err
    [ $? -eq "$code" ] || fault "compare $*: not exit code $code: $(cat out err)"
    grep -qF -- "$part" err || fault "compare $*: no '$part' in: $(cat err)"
}
refuse 2 "missing argument" a
refuse 3 "nowhere" a nowhere
refuse 3 "no run directory" data a
refuse 3 "nowhere" a b nowhere

[ "$faults" -eq 0 ] || { echo "$faults faults"; exit 1; }
