#!/bin/sh
# Settings of the OpenMP runtime change no answer and no gradient: overruled, or refused by name.
set -u
[ -x "${TAGINE:-}" ] || { echo "skipped: no program"; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
"$TAGINE_BINARY_DIR/tests/tagine_test_fixture" . || exit 1
cp -r data/val data/train
faults=0
fault() {
    echo "FAULT: $*"
    faults=$((faults + 1))
}

# answers NAME [SETTING]...: scores of all photos and the gradients of three steps, in NAME.*
answers() {
    name=$1
    shift
    env "$@" "$TAGINE" predict --model model --threads 3 --json --quiet data/val/*/* >"$name.scores" 2>err ||
        fault "predict under $*: $(cat err)"
    rm -rf run
    env "$@" "$TAGINE" train --data data --initial-checkpoint model --epochs 1 --batch-size 2 --threads 3 \
        --no-aug --output run --quiet >out 2>err || fault "train under $*: $(cat err)"
    grep -o '"grad_norm":[^,]*' run/metrics.jsonl >"$name.gradients"
}

answers plain
[ -s plain.scores ] && [ -s plain.gradients ] || fault "nothing to compare"
for setting in OMP_DYNAMIC=true OMP_MAX_ACTIVE_LEVELS=0 OMP_NUM_THREADS=1 OMP_PROC_BIND=true OMP_NESTED=true \
    OMP_SCHEDULE=dynamic OMP_THREAD_LIMIT=3 OMP_STACKSIZE=16K GOMP_STACKSIZE=16 OMP_STACKSIZE=100G; do
    answers set "$setting"
    cmp -s plain.scores set.scores || fault "other scores under $setting"
    cmp -s plain.gradients set.gradients || fault "other gradients under $setting"
done

photo=data/val/pizza/0.jpg
OMP_THREAD_LIMIT=2 "$TAGINE" predict --model model --threads 3 $photo >out 2>err
code=$?
if [ $code -ne 4 ] || ! grep -q "2 of 3 compute threads: raise or unset OMP_THREAD_LIMIT" err; then
    fault "a limit of 2 with 3 threads: exit $code: $(cat out err)"
fi
OMP_THREAD_LIMIT=1 "$TAGINE" predict --model model $photo >out 2>err || # fewer by default
    fault "a limit of 1 without --threads: $(cat err)"
if (ulimit -s 64) 2>/dev/null; then
    (ulimit -s 64 && exec "$TAGINE" train --data data --initial-checkpoint model --epochs 1 --output run) >out 2>err
    code=$?
    if [ $code -ne 4 ] || ! grep -q "limited to 64 KiB: raise the limit (ulimit -s) to 256" err; then
        fault "a stack of 64 KiB: exit $code: $(cat out err)"
    fi
fi
[ $faults -eq 0 ]
