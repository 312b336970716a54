# A start takes nothing from what is there: models, records and checkpoints of earlier runs stay as they
# are when it is refused, and what cannot be scored is saved.
set -eu
[ -x "${TAGINE:-}" ] || { echo "skipped: no program"; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
fail() { echo "FAILED: $*"; cat message 2>/dev/null; exit 1; }

"$TAGINE" data synth --output photos --classes 3 --per-class 12 --img-size 32 --seed 3 --quiet >/dev/null
shape="--model vit_tiny_patch16_224 --img-size 32 --patch-size 8 --depth 1 --embed-dim 48 --num-heads 2"
common="--epochs 2 --batch-size 8 --lr 1e-3 --warmup-epochs 0 --threads 1 --workers 1 --cpu-isa avx2 --quiet"
train() { # shellcheck disable=SC2086
    "$TAGINE" train --data photos $common "$@" >out 2>message
}
# refused CODE PART NAME ARGUMENT...: exit code, a part of the message, and nothing in the folder changed
sums() { find "$1" -type f \( -path '*/model/*' -o -path '*/checkpoints/*' -o -name '*.json*' -o -name job.yaml -o -name failure \) -exec cksum {} + | sort; }
refused() {
    want=$1 part=$2 folder=$3
    shift 3
    sums "$folder" >before
    code=0
    "$@" || code=$?
    [ $code = "$want" ] && grep -qF -- "$part" message || fail "$*: exit code $code, not $want with $part"
    sums "$folder" | cmp -s before - || fail "$*: something in $folder changed"
}

# shellcheck disable=SC2086
train $shape --output run || fail "the first run"

# a teacher, or weights to start from, where the run would write its own
distill() { # shellcheck disable=SC2086
    "$TAGINE" distill --data photos $shape $common "$@" >out 2>message
}
mkdir mine
cp -r run/model mine/model
refused 2 "another --output" mine distill --teacher mine/model --output mine
mkdir linked
ln -s ../mine/model linked/model
refused 2 "another --output" mine distill --teacher mine/model --output linked
refused 2 "another --output" mine train --initial-checkpoint mine/model --output mine
# shellcheck disable=SC2086
refused 2 "holds a model" mine train $shape --output mine
# shellcheck disable=SC2086
refused 2 "holds a model" mine train $shape --output mine --resume auto

# places of weights are places: a name has none, and what is not there is bad input everywhere
# shellcheck disable=SC2086
{
    refused 3 "--initial-checkpoint vit_tiny_patch16_224: there is no such file" run \
        train --initial-checkpoint vit_tiny_patch16_224 --output named
    refused 3 "--initial-checkpoint nope" run train --initial-checkpoint nope --output named
    refused 3 "--teacher nope: there is no such file" run distill --teacher nope --output named
    refused 2 "unknown model" run train --model vit_tiny_patch16_24 --output named
    mkdir sharded
    cp run/model/config.json sharded
    refused 3 "model.safetensors: there is no such file" run train --initial-checkpoint sharded --output named
    : >sharded/model.safetensors.index.json
    refused 3 "but model.safetensors.index.json is" run train --initial-checkpoint sharded --output named
    cp -r run/model mistyped
    sed -i 's/"exif_orientation"/"exif_orientaton"/' mistyped/config.json
    "$TAGINE" plan --model mistyped >out 2>message || fail "a mistyped key"
    grep -q 'tagine.exif_orientaton is not known and not used; did you mean exif_orientation?' message ||
        fail "a mistyped key is not named"
}

# a run among what another one replaces or removes, and what a user put into OUTPUT/model
# shellcheck disable=SC2086
{
    cp -r run/model lone
    for inside in lone lone/a/b run/model run/model/sub run/checkpoints/mine; do
        refused 2 "give another --output" run train $shape --output $inside
        [ "$inside" = lone ] || [ "$inside" = run/model ] || [ ! -e $inside ] || fail "$inside was made"
    done
    [ "$(ls lone | tr '\n' ' ')" = "config.json model.safetensors " ] || fail "lone: $(ls lone)"
    refused 2 "give another --output" run distill --teacher run/model --output run/model
    train $shape --output noted --steps 1 --val-split none || fail "the first step"
    echo "mine" >noted/model/MYNOTES
    ln -s nowhere noted/model/link
    cp photos/val/*/00000.jpg noted/model/photo.jpg 2>/dev/null || cp "$(find photos/val -name '*.jpg' | head -n 1)" noted/model/photo.jpg
    before=$(cksum <noted/model/model.safetensors)
    train $shape --output noted --resume auto --val-split none || fail "notes in the model folder"
    [ "$(cksum <noted/model/model.safetensors)" != "$before" ] || fail "the model was not replaced"
    [ "$(cat noted/model/MYNOTES)" = mine ] && [ -L noted/model/link ] && [ -s noted/model/photo.jpg ] ||
        fail "files in the model folder were lost"
    mkdir noted/model/folder
    refused 2 "folder that is no part of one: folder" noted train $shape --output noted --resume auto --epochs 3
}

# a used folder, and typing mistakes in it: job.yaml, run.json and the model stay
# shellcheck disable=SC2086
refused 2 "--resume auto goes on" run train $shape --output run
# shellcheck disable=SC2086
refused 2 "--seed" run train $shape --output run --resume auto --seed 5
# shellcheck disable=SC2086
refused 2 "give --global-batch-size 8 to go on" run train $shape --output run --resume auto --batch-size 4
# shellcheck disable=SC2086
refused 3 "" run train $shape --output run --resume auto --data absent
# shellcheck disable=SC2086
refused 2 "--num-heads" run train --model vit_tiny_patch16_224 --img-size 32 --patch-size 8 --depth 1 \
    --embed-dim 48 --num-heads 3 --output run --resume auto
# shellcheck disable=SC2086
refused 2 "--crop-pct" run train $shape --output run --resume auto --crop-pct 0.5
[ ! -e run/failure ] || fail "a refused start left a failure in a finished run"

# a recipe that changes on the way is named; another training is refused, and its records stay
# shellcheck disable=SC2086
{
    cp -r run changed
    refused 2 "cannot go on as tagine distill" changed \
        distill --teacher run/model --output changed --resume auto --epochs 3
    train_loud() { "$TAGINE" train --data photos ${common% --quiet} "$@" >out 2>message; }
    train_loud $shape --output changed --resume auto --epochs 3 --mixup 0.2 --opt-betas 0.8 0.99 --threads 2 ||
        fail "a changed recipe"
    grep -q "resume: --mixup was 0 and is now 0.2" message || fail "--mixup is not named"
    grep -q "resume: --opt-betas was \[0.9, 0.999\] and is now \[0.8, 0.99\]" message || fail "--opt-betas"
    [ "$(grep -c 'warning: resume: --' message)" = 2 ] || fail "not two changes"
    train_loud $shape --output changed --resume auto --epochs 4 --mixup 0.2 --opt-betas 0.8 0.99 || fail "no change"
    if grep -q 'resume: --' message; then fail "a change where there is none"; fi
    distill --teacher run/model --output taught --steps 1 || fail "distill"
    cp -r run/model other-teacher
    refused 2 "resume: --teacher was run/model and is now other-teacher" taught \
        distill --teacher other-teacher --output taught --resume auto
    refused 2 "resume: --kd-loss was kl and is now hard" taught \
        distill --teacher run/model --kd-loss hard --output taught --resume auto
}

# another run's checkpoint in a folder that is used
# shellcheck disable=SC2086
train $shape --output other || fail "the second run"
# shellcheck disable=SC2086
refused 2 "checkpoints of an earlier run" other train $shape --output other --resume run

# --resume auto needs to know where
# shellcheck disable=SC2086
code=0
train $shape --resume auto || code=$?
[ $code = 2 ] && grep -q -- "--output" message || fail "--resume auto without --output: exit code $code"

# a run whose checkpoints are all damaged is not begun anew
cp -r run damaged
for f in damaged/checkpoints/step-*/state.safetensors; do : >"$f"; done
# shellcheck disable=SC2086
refused 3 "none of the" damaged train $shape --output damaged --resume auto --epochs 3

# a validation photo that cannot be read: the epoch is saved before the run ends
cp -r photos strict
echo "no photo" >"$(find strict/val -name '*.jpg' | sort | head -n 1)"
code=0
# shellcheck disable=SC2086
train $shape --data strict --strict --output strict-run || code=$?
[ $code = 3 ] || fail "--strict with a broken validation photo: exit code $code"
ls strict-run/checkpoints/step-*/state.safetensors >/dev/null 2>&1 || fail "the epoch was lost"
cp photos/val/"$(cd strict/val && find . -size -2 -name '*.jpg' | head -n 1)" "$(find strict/val -size -2 -name '*.jpg')"
# shellcheck disable=SC2086
train $shape --data strict --strict --output strict-run --resume auto || fail "going on after the photo was mended"
[ "$(grep -c '"val_top1"' strict-run/metrics.jsonl)" = 2 ] || fail "both epochs are scored"

# run.json has the program's exit code, whatever the signal
# shellcheck disable=SC2086
"$TAGINE" train --data photos $common $shape --output hup --epochs 100000 >out 2>message &
job=$!
until [ -s hup/metrics.jsonl ]; do sleep 0.1; done
kill -HUP $job
code=0
wait $job || code=$?
[ $code = 143 ] && grep -q '"exit":143' hup/run.json || fail "SIGHUP: exit code $code, $(cat hup/run.json)"
echo ok
