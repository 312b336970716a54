# Where photos are looked for: a share is held out of the training split, classes are folders with photos,
# and what is not there is named.
set -eu
[ -x "${TAGINE:-}" ] || { echo "skipped: no program"; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
fail() { echo "FAILED: $*"; cat message out 2>/dev/null; exit 1; }
# expect CODE PART COMMAND...: exit code, and PART somewhere in both outputs
expect() {
    want=$1 part=$2
    shift 2
    code=0
    "$@" >out 2>message || code=$?
    [ $code = "$want" ] || fail "$*: exit code $code, not $want"
    cat out message | grep -qF -- "$part" || fail "$*: no \"$part\""
}

"$TAGINE" data synth --output photos --classes 3 --per-class 10 --img-size 32 --seed 3 --quiet >/dev/null
options="--img-size 32 --patch-size 8 --depth 1 --embed-dim 32 --num-heads 2 --epochs 1 --batch-size 8
    --lr 1e-3 --warmup-epochs 0 --threads 1 --workers 1 --cpu-isa avx2"
train() { # shellcheck disable=SC2086
    "$TAGINE" train $options "$@"
}
distill() { # shellcheck disable=SC2086
    "$TAGINE" distill $options --teacher taught/model "$@"
}

# a share of the training split, also where there is a folder of validation photos
expect 0 "24 photos to train on, 6 to validate, 3 classes" \
    train --data photos --val-split 0.2 --output taught
expect 0 '"split":"val","images":6,' "$TAGINE" data stats --data photos --val-split 0.2 --json
expect 0 '"images":6,' "$TAGINE" eval --model taught/model --data photos --val-split 0.2 --json
sed 's/,"images_per_s.*//' out >above
expect 0 '"images":6,' "$TAGINE" eval --model taught/model --data photos/train --val-split 0.2 --json
sed 's/,"images_per_s.*//' out | cmp -s - above || fail "the split given as the root is cut otherwise"
for command in train "$TAGINE data stats" "$TAGINE bench loader --img-size 32"; do
    expect 3 '--train-split foo: photos has no folder "foo"' \
        $command --data photos --val-split 0.2 --train-split foo
    expect 3 '--train-split train+foo: photos has no folder "foo"' \
        $command --data photos --train-split train+foo
    expect 3 '--data nowhere: there is no such folder' $command --data nowhere
done
mkdir half && cp -r photos/val half
expect 3 'none called "train"' train --data half
expect 3 'give the folder above it' "$TAGINE" eval --model taught/model --data photos/val
expect 3 '--val-split names the folder' "$TAGINE" eval --model taught/model --data photos/train
expect 3 '--data nowhere: there is no such folder' "$TAGINE" eval --model taught/model --data nowhere

# photos without labels: folders without photos are no classes, and nothing is held out
mkdir flat flat/empty
for photo in photos/train/*/*.jpg; do cp "$photo" "flat/$(echo "$photo" | tr / -)"; done
expect 0 "30 photos to train on" distill --data flat --kd-alpha 1 --output unlabelled
expect 3 "but 30 beside them" train --data flat
expect 2 "--val-split 0.2: photos without labels" distill --data flat --kd-alpha 1 --val-split 0.2
expect 2 "--val-split foo: photos without labels" distill --data flat --kd-alpha 1 --val-split foo
echo ok
