#!/bin/sh
# What must not pass for a result: weights that are not finite, validation photos that nobody could
# read; and what must not end a job without a word: limits on files, lost terminals, closed streams.
set -u
[ -x "${TAGINE:-}" ] || { echo "skipped: no program"; exit 77; }
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
faults=0
fault() { echo "FAULT: $*"; faults=$((faults + 1)); }

# expect CODE PART COMMAND...: exit code, and PART somewhere in both outputs
expect() {
    code=$1 part=$2
    shift 2
    "$@" >out 2>err
    got=$?
    [ "$got" -eq "$code" ] || fault "$*: exit $got, not $code: $(tail -2 err)"
    cat out err | grep -qF -- "$part" || fault "$*: no \"$part\" in: $(cat out err)"
}

"$TAGINE" data synth --output photos --classes 3 --per-class 8 --img-size 32 --seed 3 --quiet
options="--data photos --epochs 1 --batch-size 8 --lr 1e-3 --warmup-epochs 0 --threads 1 --workers 1
    --cpu-isa avx2 --quiet"
shape="--model vit_tiny_patch16_224 --img-size 32 --patch-size 8 --embed-dim 32 --depth 1 --num-heads 2"
# shellcheck disable=SC2086
expect 0 "model: whole/model" "$TAGINE" train $options $shape --output whole

# one NaN in the head's bias: NaN compares false with everything, and must not be the best answer
cp -r whole/model broken
size=$(wc -c <broken/model.safetensors)
printf '\000\000\300\177' |
    dd of=broken/model.safetensors bs=1 seek=$((size - 4)) conv=notrunc 2>/dev/null
expect 3 "broken/model.safetensors: tensor head.bias: 1 of its 3 values are not finite" \
    "$TAGINE" eval --model broken --data photos --quiet
# shellcheck disable=SC2086
expect 3 "tensor head.bias" "$TAGINE" train $options --initial-checkpoint broken --output from-broken
# shellcheck disable=SC2086
expect 3 "tensor head.bias" "$TAGINE" distill $options $shape --teacher broken --output taught

# weights that are finite but so large that the answers are not: 96 values of head.weight lie before
# the 3 of head.bias
cp -r whole/model huge
i=0
while [ $i -lt 96 ]; do printf '\346\261\141\177'; i=$((i + 1)); done |
    dd of=huge/model.safetensors bs=1 seek=$((size - 12 - 384)) conv=notrunc 2>/dev/null
expect 3 "not finite, though its weights are" "$TAGINE" eval --model huge --data photos --quiet
# shellcheck disable=SC2086
expect 1 "not finite" "$TAGINE" train $options --initial-checkpoint huge --output from-huge
[ ! -e from-huge/model ] || fault "a model that answers NaN was written"
# shellcheck disable=SC2086
expect 1 "not finite" "$TAGINE" train $options --initial-checkpoint huge --val-split none --output unscored
[ ! -e unscored/model ] || fault "a model all of whose updates were skipped was written"
# shellcheck disable=SC2086
expect 3 "teacher huge" "$TAGINE" distill $options $shape --teacher huge --output taught

# a validation split that is there but cannot be used is a fault of the data
cp -r photos unknown
mkdir unknown/val/zzz
cp photos/val/banana/00000.jpg unknown/val/zzz/
# shellcheck disable=SC2086
expect 3 "zzz" "$TAGINE" train $options $shape --data unknown --output unknown.run
# shellcheck disable=SC2086
expect 0 "model:" "$TAGINE" train $options $shape --data unknown --val-split none --output unknown.run
cp -r photos unreadable
for photo in unreadable/val/*/*; do echo "no photo" >"$photo"; done
# shellcheck disable=SC2086
expect 3 "validation photos could be read" \
    "$TAGINE" train $options $shape --data unreadable --output unreadable.run
[ -e unreadable.run/model/model.safetensors ] || fault "the training before was lost"

# a limit on the size of files fails the write, it does not kill
# shellcheck disable=SC2086
(
    ulimit -f 64
    "$TAGINE" train $options $shape --output limited >out 2>err
    code=$?
    [ $code -eq 4 ] && grep -q "cannot write limited" err
) || fault "a file size limit is not exit code 4: $(cat err)"

# a disk that was full before the first checkpoint: the same command, started again, goes on
# shellcheck disable=SC2086
expect 0 "model:" "$TAGINE" train $options $shape --output again
rm -r again/checkpoints
sed -i 's/"exit":0/"exit":4/' again/run.json
# shellcheck disable=SC2086
expect 0 "model:" "$TAGINE" train $options $shape --output again --resume auto
rm -r again/checkpoints
# shellcheck disable=SC2086
expect 2 "holds a model" "$TAGINE" train $options $shape --output again --resume auto

# the run's folder is removed under it: what is left is saved, and the end says so
removed() { # NAME: trains until the folder NAME is removed after the first checkpoint
    # shellcheck disable=SC2086
    "$TAGINE" train $options $shape --epochs 3000 --checkpoint-steps 1 --output "$1" >out 2>err &
    pid=$!
    tries=0
    while [ ! -e "$1/checkpoints/last" ] && [ $tries -lt 600 ]; do
        sleep 0.05
        tries=$((tries + 1))
    done
    mv "$1" "$1.away"
    [ -z "${2:-}" ] || cp -r "$1.away" "$1"
    code=0
    wait $pid || code=$?
    [ $code -eq 4 ] && grep -q "was removed while the run was going" err ||
        fault "a removed run directory: exit code $code, $(cat err)"
}
removed gone
[ -e gone/checkpoints/last/state.safetensors ] || fault "nothing was saved: $(ls gone)"
# shellcheck disable=SC2086
expect 0 "model:" "$TAGINE" train $options $shape --output gone --resume auto --epochs 3000 --steps 1
removed taken other

# photos that become unreadable: an epoch without one is an error, not progress
cp -r photos spoiled
for photo in spoiled/train/*/*; do echo "no photo" >"$photo"; done
# shellcheck disable=SC2086
expect 3 "none of the 24 training photos of epoch 1 could be read" \
    "$TAGINE" train $options $shape --data spoiled --output spoiled.run --max-bad-share 1

# closed streams: nothing is printed into the files of the run, and the lost result is an error
# shellcheck disable=SC2086
"$TAGINE" train $options $shape --output closed <&- >&- 2>&-
code=$?
[ $code -eq 4 ] || fault "a closed standard output gave exit code $code, not 4"
if grep -rq "model: closed" closed; then fault "the result was written into a file of the run"; fi
cmp -s closed/model/model.safetensors whole/model/model.safetensors ||
    fault "closed streams changed the model"

# a lost terminal saves and leaves; nohup's jobs go on
# shellcheck disable=SC2086
"$TAGINE" train $options $shape --epochs 3000 --output hung --checkpoint-steps 1 >out 2>err &
pid=$!
tries=0
while [ ! -e hung/checkpoints/last ] && [ $tries -lt 600 ]; do
    sleep 0.05
    tries=$((tries + 1))
done
kill -HUP $pid
code=0
wait $pid || code=$?
[ $code -eq 143 ] || fault "SIGHUP gave exit code $code"
grep -q "everything is saved" err || fault "SIGHUP did not save: $(cat err)"

exit $((faults > 0))
