# Distillation from the outside: every loss runs, the teacher is scored and stays as it was, classes in
# another order are matched by name, photos without labels need only the teacher, and what cannot work
# is refused with words.
set -eu
[ -x "${TAGINE:-}" ] || { echo "skipped: no program"; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
fail() { echo "FAILED: $*"; cat message 2>/dev/null; exit 1; }

"$TAGINE" data synth --output photos --classes 3 --per-class 12 --img-size 32 --seed 3 --quiet >/dev/null
shape="--model vit_tiny_patch16_224 --img-size 32 --patch-size 8 --depth 2 --num-heads 2"
common="--epochs 2 --batch-size 8 --lr 1e-3 --warmup-epochs 0 --threads 1 --workers 1 --cpu-isa avx2"
# shellcheck disable=SC2086
"$TAGINE" train --data photos $shape --embed-dim 48 --output teacher $common --quiet >/dev/null
before=$(cksum <teacher/model/model.safetensors)

distill() { # shellcheck disable=SC2086
    "$TAGINE" distill --teacher teacher/model $shape --embed-dim 32 $common "$@" >out 2>message
}
for loss in kl hard feature; do
    distill --data photos --output "by-$loss" --kd-loss $loss || fail "--kd-loss $loss"
    grep -q "teacher on the validation split: top-1" message || fail "the teacher was not scored"
    grep -q '"loss_task":[0-9.]*,"loss_kd":[0-9]' "by-$loss/metrics.jsonl" || fail "$loss: both terms"
done
distill --data photos --output mean --kd-reduction mean --kd-temperature 1 || fail "--kd-reduction mean"
[ "$(cksum <teacher/model/model.safetensors)" = "$before" ] || fail "the teacher's file changed"

# a teacher that does not say what its classes are called: taken by number, and said
cp -r teacher/model unnamed
tr -d '\n' <teacher/model/config.json | sed 's/"label_names": *\[[^]]*\], *//' >unnamed/config.json
distill --data photos --output from-unnamed --teacher unnamed || fail "a teacher without class names"
grep -q 'no class names: its 3 classes are taken in the order' message || fail "unnamed classes are not said"
if grep -q 'no class names' mean/log/rank-0.log; then fail "a teacher with names is said to have none"; fi

# a distillation token
# shellcheck disable=SC2086
"$TAGINE" distill --teacher teacher/model --data photos --model deit_tiny_distilled_patch16_224 \
    --img-size 32 --patch-size 8 --depth 2 --num-heads 2 --embed-dim 32 $common --output token \
    >out 2>message || fail "distillation token"

# a student that reads the average of its patches, and stored weights whose shape stays theirs
distill --data photos --output pooled --global-pool avg || fail "--global-pool avg"
grep -q '"global_pool": *"avg"' pooled/model/config.json || fail "config.json does not name the pooling"
"$TAGINE" eval --model pooled/model --data photos --quiet >out 2>message || fail "eval of an average"
for change in "--global-pool avg" "--reg-tokens 2" "--depth 1"; do
    code=0
    # shellcheck disable=SC2086
    "$TAGINE" plan --model teacher/model $change >out 2>message || code=$?
    [ $code = 2 ] && grep -q "cannot be changed" message || fail "stored weights, $change: exit code $code"
done

# photos without class folders: the teacher alone
mkdir flat
i=0
for f in photos/train/*/*.jpg; do i=$((i + 1)); cp "$f" "flat/$i.jpg"; done
distill --data flat --train-split "" --val-split none --kd-alpha 1 --output flat-run ||
    fail "unlabelled photos with --kd-alpha 1"
code=0
distill --data flat --train-split "" --val-split none --kd-alpha 0.5 --output flat-bad || code=$?
[ $code = 3 ] || [ $code = 2 ] || fail "unlabelled photos with labels wanted: exit code $code"

# a class the teacher does not know
cp -r photos other
mv "other/train/$(ls other/train | head -n 1)" other/train/zzz
rm -rf other/val
code=0
distill --data other --val-split none --output unknown || code=$?
[ $code = 3 ] && grep -q "classes" message || fail "an unknown class gave exit code $code"
distill --data other --val-split none --output features --kd-loss feature ||
    fail "features need no common classes"

# no teacher, and a teacher that is no model
code=0
# shellcheck disable=SC2086
"$TAGINE" distill --data photos $shape $common --output none 2>message || code=$?
[ $code = 2 ] && grep -q -- --teacher message || fail "no teacher: exit code $code"
echo ok
