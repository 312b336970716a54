#!/bin/sh
# tune: lines of JSON that fit each other, a settings file that train and distill take, photos and generated pictures,
# what does not fit, what makes no sense, a stop by signal. No number of a machine's speed is asserted.
set -u
export OMP_WAIT_POLICY=passive # more tests may share these cores
[ -n "${TAGINE:-}" ] || { echo "skipped: the program was not built"; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
faults=0
fault() { echo "FAULT: $*"; faults=$((faults + 1)); }
holds() { awk "BEGIN { exit !($1) }" || fault "$1 does not hold: $2"; }
# last KEY: the number behind a key in the last line of `out`
last() { tail -n 1 out | sed -n "s/.*\"$1\":\([-0-9.e+]*\).*/\1/p"; }

small="--img-size 16 --patch-size 8 --embed-dim 32 --depth 1 --num-heads 2"
quick="--seconds-per-trial 0.02 --max-seconds 5 --max-batch-size 64"
# refuse CODE PART ARGUMENT...
refuse() {
    code=$1 part=$2
    shift 2
    "$TAGINE" tune "$@" >out 2>err
    [ $? -eq "$code" ] || fault "tune $*: not exit code $code: $(cat out err)"
    grep -qF -- "$part" err || fault "tune $*: no '$part' in: $(cat err)"
}

# generated pictures: trials, then the choice, which is one of them
# shellcheck disable=SC2086
"$TAGINE" tune train --json --quiet $small $quick --amp --lr 1e-3 --batch-size 8 --output tuned.yaml >out 2>err ||
    fault "tune train: $(cat err)"
[ "$(wc -l <out)" -gt 5 ] || fault "lines: $(cat out)"
sed '$d' out | while IFS= read -r line; do
    for key in stage batch_size threads workers bucket_mib fits images_per_s step_s first_step steps images seconds wait_s \
        loader_images_per_s cpu_s_per_image voluntary_per_s involuntary_per_s run_queue pressure predicted_bytes rss_bytes; do
        case $line in *"\"$key\":"*) ;; *) echo "no $key: $line" ;; esac
    done
done >missing
[ ! -s missing ] || fault "$(cat missing)"
grep -q '"loader_images_per_s":null' out || fault "a loader without photos: $(cat out)"
batch=$(last batch_size) # the last one of the line: of the settings given
[ "$batch" = 8 ] || fault "settings given: $(tail -n 1 out)"
chosen=$(tail -n 1 out | sed -n 's/^{"choice":{"batch_size":\([0-9]*\),"threads":\([0-9]*\),.*/\1 \2/p')
[ -n "$chosen" ] || fault "no choice: $(tail -n 1 out)"
grep -q "\"batch_size\":${chosen% *},\"threads\":${chosen#* }," out || fault "the choice was never tried: $(cat out)"
tail -n 1 out | grep -qF "\"arguments\":\"--batch-size ${chosen% *} --threads ${chosen#* }\"" ||
    fault "arguments: $(tail -n 1 out)"
[ "$(last largest_batch_size)" = 64 ] || fault "the largest: $(tail -n 1 out)"
holds "$(last gain) > 0 && $(last largest_predicted_bytes) < $(last limit_bytes)" "$(tail -n 1 out)"
"$TAGINE" train --config tuned.yaml --print-config >config || fault "train does not take: $(cat tuned.yaml)"
for line in "batch-size: ${chosen% *}" "threads: ${chosen#* }" "amp: true" "lr: 0.001" "embed-dim: 32" "epochs: 300"; do
    grep -qx "$line" config || fault "no '$line' in: $(cat config)"
done
grep -q "max-seconds\|workers\|output" tuned.yaml && fault "more than was given: $(cat tuned.yaml)"

# photos: the loader takes part, and no batch is larger than they are
"$TAGINE" data synth --output data --classes 3 --per-class 20 --img-size 32 --quiet >out 2>err || fault "synth: $(cat err)"
photos=$(find data/train -type f | wc -l)
# shellcheck disable=SC2086
"$TAGINE" tune train --data data --json --quiet $small --seconds-per-trial 0.02 --max-seconds 5 --output photos.yaml \
    >out 2>err || fault "tune train --data: $(cat err)"
grep -q '"stage":"workers"' out && grep -q '"loader_images_per_s":[0-9]' out || fault "no workers: $(cat out)"
holds "$(last largest_batch_size) <= $photos" "batch of $photos photos"
tail -n 1 out | grep -q -- '--workers [0-9]' || fault "no workers: $(tail -n 1 out)"
grep -qx "data: data" photos.yaml && grep -q "^workers: [0-9]" photos.yaml || fault "file: $(cat photos.yaml)"
"$TAGINE" train --config photos.yaml --epochs 1 --warmup-epochs 0 --output run >out 2>err ||
    fault "train --config: $(cat err)"
[ -f run/job.yaml ] || fault "no run"

# a run's own settings file can be tuned, and its folder stays as it is
find run | sort >before
# shellcheck disable=SC2086
"$TAGINE" tune train --config run/job.yaml $quick --find workers,threads --plot chart.svg >out 2>err || fault "job.yaml: $(cat err)"
find run | sort | cmp -s - before || fault "tune changed a run: $(find run)"
grep -q "is a run's, and stays" err || fault "nothing on the run's output: $(cat err)"
grep -q '^> .* [0-9]' out && grep -q "^threads: " out || fault "table: $(cat out)"
sed -n '/^images\/s$/,$p' out | awk 'length > 80 { long++ } END { exit long > 0 }' || fault "wider than 80 columns: $(cat out)"
if [ "$(nproc)" -gt 1 ]; then
    grep -q "context switches/s" out && grep -q "^> A  \|^> B  \|^> C  \|^> D  " out && grep -q "^The knee is [A-Z]: batch" out ||
        fault "no chart: $(cat out)"
fi
head -n 1 chart.svg | grep -q "^<svg xmlns" && tail -n 1 chart.svg | grep -qx "</svg>" || fault "picture: $(cat chart.svg)"
[ "$(grep -c ' knee</text>' chart.svg)" -ge 1 ] || fault "no knee: $(cat chart.svg)"
grep -q "^batch: " out && fault "a batch that was to stay: $(cat out)"

# distillation, from a model folder, without photos and with a step of fixed size
# shellcheck disable=SC2086
"$TAGINE" tune distill --teacher run/model $small $quick --global-batch-size 12 --output kd.yaml >out 2>err ||
    fault "tune distill: $(cat err)"
grep -q "global-batch-size stays" err || fault "no word on the batch: $(cat err)"
grep -q -- "--batch-size\|another optimisation" out && fault "another batch: $(cat out)"
"$TAGINE" distill --config kd.yaml --print-config | grep -qx "global-batch-size: 12" || fault "distill does not take it"

refuse 4 "one picture at a time needs" train --memory-limit-mib 40
refuse 4 "the largest that fits is" train --memory-limit-mib 250 --find threads
refuse 2 "--find speed: a list of batch" train --find speed
refuse 2 "--teacher is missing" distill
refuse 2 "there is a folder of that name" train --output run
refuse 3 "there is no such folder" train --data nowhere
refuse 3 "a name alone has none" distill --teacher vit_tiny_patch16_224

# stopped: the best so far, and the signal's exit code
# shellcheck disable=SC2086
"$TAGINE" tune train $small --seconds-per-trial 0.3 --max-seconds 600 --json --quiet >out 2>err &
child=$!
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    [ "$(wc -l <out)" -ge 2 ] && break
    sleep 0.5
done
kill -TERM $child
wait $child
[ $? -eq 143 ] || fault "exit code after a signal"
tail -n 1 out | grep -q '"stopped":true' && tail -n 1 out | grep -q '^{"choice":{' || fault "stopped: $(cat out)"

[ "$faults" -eq 0 ] || { echo "$faults faults"; exit 1; }
