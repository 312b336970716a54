# Options of training that were given and do nothing are named, once each; others are not, and a settings
# file of another run, which holds them all, gives no flood. What would be lost or found again is refused.
set -eu
[ -x "${TAGINE:-}" ] || { echo "skipped: no program"; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
fail() { echo "FAILED: $*"; cat message out 2>/dev/null; exit 1; }
"$TAGINE" data synth --output photos --classes 2 --per-class 4 --img-size 32 --quiet >/dev/null
n=0
# train COMMAND ARGUMENT...: a run that ends before its first step
train() {
    command=$1
    shift
    n=$((n + 1))
    "$TAGINE" "$command" --data photos --img-size 32 --patch-size 16 --embed-dim 32 --depth 1 --num-heads 2 \
        --batch-size 4 --threads 1 --workers 0 --epochs 1 --warmup-epochs 0 --steps 1 --output "run$n" "$@" \
        >out 2>message
}
idle() { # TEXT ARGUMENT...: one warning, with that text
    text=$1
    shift
    train "$@" || fail "$*"
    grep -qF -- "$text" message || fail "$*: no \"$text\""
    [ "$(grep -c 'no effect' message)" = "${count:-1}" ] || fail "$*: not ${count:-1} warnings"
}
count=0 idle "" train
model=run$n/model
idle "--amp-dtype has no effect without --amp" train --amp-dtype bfloat16
idle "--model-ema-decay has no effect without --model-ema" train --model-ema-decay 0.9
idle "--mixup-prob has no effect without --mixup or --cutmix" train --mixup-prob 0.5
idle "--mixup-switch-prob has no effect without both" train --mixup 0.2 --mixup-switch-prob 0.1
count=0 idle "" train --mixup 0.2 --cutmix 1 --mixup-prob 0.5 --mixup-switch-prob 0.5
idle "--warmup-lr has no effect without warm-up" train --warmup-lr 1e-5
idle "--min-lr has no effect with --sched constant" train --sched constant --min-lr 1e-5
idle "--hflip has no effect with --no-aug" train --no-aug --hflip 0.1
idle "--color-jitter has no effect with --aa" train --aa rand-m9-mstd0.5-inc1 --color-jitter 0.3
count=0 idle "--min-lr 0.1 is above --lr 0.01" train --min-lr 0.1 --lr 0.01
count=0 idle "--warmup-epochs 50 leaves nothing of --epochs 1" train --warmup-epochs 50
idle "--kd-temperature has no effect with --kd-loss hard" distill --teacher $model --kd-loss hard --kd-temperature 2
idle "--kd-reduction has no effect with --kd-loss" distill --teacher $model --kd-loss feature --kd-reduction mean
idle "--kd-loss has no effect with --kd-alpha 0" distill --teacher $model --kd-loss hard --kd-alpha 0
idle "--smoothing has no effect with --kd-alpha 1" distill --teacher $model --smoothing 0.2 --kd-alpha 1
count=0 idle "" train --config run1/job.yaml
printf 'model-ema-decay: 0.5\n' >decay.yaml
idle "--model-ema-decay has no effect" train --config decay.yaml

refused() { # TEXT ARGUMENT...
    text=$1 code=0
    shift
    train train "$@" || code=$?
    [ $code = 2 ] && grep -qF -- "$text" message || fail "$*: exit code $code"
}
refused "--checkpoint-hist: \"0\" is below 1" --checkpoint-hist 0
for name in .. ../../evil a/b . ""; do
    refused "--experiment $name: it names a folder below --output" --experiment "$name"
done
refused "lies among the photos" --output photos/train/run
refused "lies among the photos" --output photos/val/a/b
refused "lies among the photos" --data photos/train --val-split none --output photos/train/run
[ ! -e photos/train/run ] || fail "a refused run directory was made"
train train --output photos/run && grep -q "beside the photos" message || fail "a run beside the splits"
echo ok
