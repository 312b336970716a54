#!/bin/sh
# --workers auto: losses are those of any fixed number to the bit, trials and the choice are recorded, a resumed run takes the
# choice up, short runs take the rule, ranks go on together. No number of a machine's speed is asserted.
set -u
export OMP_WAIT_POLICY=passive # more tests may share these cores
[ -n "${TAGINE:-}" ] || { echo "skipped: the program was not built"; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
faults=0
fault() { echo "FAULT: $*"; faults=$((faults + 1)); }
losses() { sed -n 's/.*"loss":\([^,]*\),.*"grad_norm":\([^,]*\),.*/\1 \2/p' "$1/metrics.jsonl"; }

"$TAGINE" data synth --output photos --classes 2 --per-class 60 --seed 3 --img-size 32 >/dev/null 2>&1 ||
    fault "no photos"
small="--data photos --img-size 16 --patch-size 8 --embed-dim 32 --depth 1 --num-heads 2 --threads 1 --seed 5"

# 12 steps an epoch: trials are whole epochs; 200 a epoch of single photos: they are a few steps
for batch in 8 1; do
    long="$small --batch-size $batch --epochs $([ $batch = 8 ] && echo 24 || echo 2)"
    # shellcheck disable=SC2086
    "$TAGINE" train $long --workers 2 --output fixed-$batch >out 2>&1 || fault "fixed: $(cat out)"
    # shellcheck disable=SC2086
    "$TAGINE" train $long --workers auto --output auto-$batch >out 2>&1 || fault "auto: $(cat out)"
    losses fixed-$batch >want
    losses auto-$batch >got
    [ -s want ] || fault "no losses"
    cmp -s want got || fault "batch $batch: losses differ from those of a fixed number: $(diff want got | head -3)"
    grep -q "workers: images/s by number 0: " out || fault "nothing said of the trials: $(cat out)"
    grep -q "workers: going on with [0-9]* worker.*trials took [0-9]* steps.* and cost " out ||
        fault "nothing said of the choice: $(cat out)"
    grep -q '"reason":"start"' auto-$batch/tune.json || fault "tune.json: $(cat auto-$batch/tune.json)"
    for key in points trials images_per_s wait_share voluntary_per_s involuntary_per_s compute_involuntary_per_s run_queue \
        pressure why chosen cost_s; do
        grep -q "\"$key\":" auto-$batch/tune.json || fault "tune.json has no $key"
    done
    chosen=$(sed -n 's/.*"chosen":\([0-9]*\).*/\1/p' auto-$batch/tune.json)
    grep -q "\"workers\":$chosen," auto-$batch/run.json || fault "run.json does not have $chosen workers"
    [ ! -e fixed-$batch/tune.json ] || fault "a fixed number was measured"
done

# the choice is taken up, and not measured again
# shellcheck disable=SC2086
"$TAGINE" train $small --batch-size 8 --epochs 40 --output auto-8 --resume auto >out 2>&1 || fault "resume: $(cat out)"
grep -q "workers: going on with [0-9]*, as measured before" out || fault "not taken up: $(cat out)"
[ "$(grep -o '"reason"' auto-8/tune.json | wc -l)" = 1 ] || fault "measured again: $(cat auto-8/tune.json)"

# too short to measure
# shellcheck disable=SC2086
"$TAGINE" train $small --batch-size 8 --epochs 2 --output short >out 2>&1 || fault "short: $(cat out)"
grep -q "workers: 1 by rule: too few steps" out || fault "no rule: $(cat out)"
[ ! -e short/tune.json ] || fault "a short run has trials"

[ "$faults" = 0 ] || exit 1
