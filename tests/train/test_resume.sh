# Training goes on where it stopped, bit for bit: after --steps, SIGTERM and kill -9, in the middle of
# an epoch and between epochs, with the weight average; and a save that fails costs nothing else.
set -eu
[ -x "${TAGINE:-}" ] || { echo "skipped: no program"; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
fail() { echo "FAILED: $*"; exit 1; }

"$TAGINE" data synth --output photos --classes 3 --per-class 16 --img-size 32 --seed 3 --quiet
options="--data photos --model vit_tiny_patch16_224 --img-size 32 --patch-size 8 --embed-dim 32
    --depth 2 --num-heads 2 --epochs 3 --batch-size 8 --lr 1e-3 --warmup-epochs 1 --mixup 0.2
    --drop-path 0.2 --color-jitter 0.3 --model-ema --model-ema-decay 0.9 --threads 1 --workers 1
    --cpu-isa avx2 --quiet"
train() { # shellcheck disable=SC2086
    "$TAGINE" train $options "$@"
}
weights() { cksum <"$1/checkpoints/last/state.safetensors"; }
steps() { sed -n 's/.*"step":\([0-9]*\),.*/\1/p' "$1/metrics.jsonl"; }
rates() { sed -n 's/.*"lr":\([^,]*\),.*/\1/p' "$1/metrics.jsonl"; }

train --output whole >/dev/null
total=$(steps whole | wc -l)
[ "$total" -ge 12 ] || fail "only $total steps: the test needs several epochs"
want=$(weights whole)
grep -Eq '"kernels":\{"instruction_set":"(avx2|portable)","attention":"\1","rows":"\1","products":"onednn"\}' whole/run.json ||
    fail "kernels of a run under --cpu-isa avx2: $(cat whole/run.json)"

# the same command, the same bits
train --output again >/dev/null
[ "$(weights again)" = "$want" ] || fail "the same command gave other weights"
# another number of workers, the same data
train --output workers --workers 0 >/dev/null
[ "$(weights workers)" = "$want" ] || fail "another worker count gave other weights"

for stop in 1 $((total / 3)) $((total / 3 + 1)) $((total - 1)); do
    train --output "stop$stop" --steps "$stop" >/dev/null
    [ "$(steps "stop$stop" | wc -l)" = "$stop" ] || fail "--steps $stop took another number of steps"
    train --output "stop$stop" --resume auto >/dev/null
    [ "$(weights "stop$stop")" = "$want" ] || fail "resumed after $stop steps: other weights"
    [ "$(steps "stop$stop")" = "$(steps whole)" ] || fail "step records repeat or are missing"
    [ "$(rates "stop$stop" | wc -l)" = "$total" ] && [ "$(rates "stop$stop")" = "$(rates whole)" ] ||
        fail "resumed after $stop steps: other learning rates"
done

# SIGTERM saves and leaves with 143
# shellcheck disable=SC2086
"$TAGINE" train $options --output term --checkpoint-steps 1 >/dev/null &
pid=$!
while [ ! -e term/checkpoints/last ] && kill -0 $pid 2>/dev/null; do sleep 0.01; done
kill -TERM $pid 2>/dev/null || true
code=0
wait $pid || code=$?
if [ $code != 0 ]; then
    [ $code = 143 ] || fail "SIGTERM gave exit code $code"
    train --output term --resume auto >/dev/null
fi
[ "$(weights term)" = "$want" ] || fail "resumed after SIGTERM: other weights"

# kill -9 at some moment, several times over
tries=0
while [ $tries -lt 6 ]; do
    tries=$((tries + 1))
    # shellcheck disable=SC2086
    "$TAGINE" train $options --output killed --resume auto --checkpoint-steps 2 >/dev/null 2>&1 &
    pid=$!
    sleep "0.0$((tries * 3 % 10))$tries"
    kill -9 $pid 2>/dev/null || true
    wait $pid 2>/dev/null || true
done
train --output killed --resume auto >/dev/null
[ "$(weights killed)" = "$want" ] || fail "resumed after kill -9: other weights"
[ "$(steps killed)" = "$(steps whole)" ] || fail "step records repeat or are missing after kill -9"

# by the run's folder
train --output half --steps $((total / 2)) >/dev/null
train --output rest --resume half >/dev/null
[ "$(weights rest)" = "$want" ] || fail "resumed by the folder of a run: other weights"

# a different batch size is refused with words, and the run is not touched
code=0
train --output whole --resume auto --batch-size 4 >/dev/null 2>message || code=$?
[ $code = 2 ] && grep -q -- --batch-size message || fail "another batch size was not refused"
[ "$(weights whole)" = "$want" ] || fail "a refused resume changed the checkpoint"

# a checkpoint of the end of an epoch: the next one begins, and no step is made twice
ended=$((total / 3 * 2))
train --output kept --checkpoint-hist 5 >/dev/null
train --output ended --resume "kept/checkpoints/step-$ended" >/dev/null
grep -q "resuming at epoch 2, photo 0, after $ended updates" ended/log/rank-0.log ||
    fail "an epoch that had ended: $(grep resuming ended/log/rank-0.log)"
[ "$(steps ended | head -n 1)" = $((ended + 1)) ] && [ "$(weights ended)" = "$want" ] || fail "an epoch that had ended"

# more epochs than were planned: the rate follows the new plan, and the log says so
cp -r whole longer
train --output longer --resume auto --epochs 4 >/dev/null 2>message
grep -q '3 epochs were planned and now 4 are; the learning rate follows' longer/log/rank-0.log ||
    fail "more epochs: not said: $(tail -n 5 longer/log/rank-0.log)"
[ "$(steps longer | wc -l)" = $((total / 3 * 4)) ] || fail "more epochs: steps"
[ "$(rates longer | tail -n 1)" != "$(rates whole | tail -n 1)" ] || fail "more epochs: the rate stays where it ended"

# what a resumed run reports is of the whole run, also when its best lies before the stop
train --output report --json >whole.json
train --output report --resume auto --json >resumed.json
top1() { sed -n 's/.*"val_top1":\([0-9.]*\).*/\1/p' "$1"; }
[ -n "$(top1 resumed.json)" ] && [ "$(top1 resumed.json)" = "$(top1 whole.json)" ] ||
    fail "a resumed run reports another best"

# weights of another architecture than the one asked for are refused, and taken when none is
code=0
"$TAGINE" train --data photos --model vit_small_patch16_224 --initial-checkpoint whole/model --epochs 1 \
    --threads 1 --cpu-isa avx2 --quiet --output start >/dev/null 2>message || code=$?
[ $code = 2 ] && grep -q -- "--model" message || fail "another architecture gave exit code $code"
# shellcheck disable=SC2086
"$TAGINE" train --data photos --initial-checkpoint whole/model --epochs 1 --batch-size 8 --threads 1 \
    --cpu-isa avx2 --quiet --output start >/dev/null || fail "--initial-checkpoint alone"

# a fresh start in a used folder is refused, and so are classes with other names
code=0
train --output whole >/dev/null 2>message || code=$?
[ $code = 2 ] && grep -q -- "--resume auto" message || fail "a used folder was not refused"
cp -r photos renamed
first=$(ls photos/train | head -n 1)
mv "renamed/train/$first" renamed/train/zzz
mv "renamed/val/$first" renamed/val/zzz
code=0
train --data renamed --output whole --resume auto >/dev/null 2>message || code=$?
[ $code = 3 ] && grep -q "class names" message || fail "other class names were not refused"
[ "$(weights whole)" = "$want" ] || fail "a refused start changed the checkpoint"

# a damaged newest checkpoint: the one before is taken
train --output damaged --checkpoint-steps 3 --checkpoint-hist 9 >/dev/null
printf x >>"damaged/checkpoints/step-$total/state.safetensors"
train --output damaged --resume auto >/dev/null 2>&1 || fail "a damaged checkpoint stopped the resume"
[ "$(weights damaged)" = "$want" ] || fail "resumed past a damaged checkpoint: other weights"
echo "ok: $total steps"
