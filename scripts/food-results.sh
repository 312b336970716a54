#!/bin/sh
# food-results.sh DATA OUTPUT [SEED...] - teacher, student alone and distilled student on real photos.
#
# DATA holds train/, more/ and val/ with a folder for each class. Each seed (default: 1 2 3) trains its
# three models one after the other in OUTPUT/seed-N, and the seeds run side by side, each on its share of
# the cores: models of this size keep one core busier than two. Started again it goes on where it was. Prints
# the accuracy of the last epoch of every run, with mean and spread (sample standard deviation) over the
# seeds. The last epoch, not the best: choosing the best on the validation photos would flatter all three.
# `tagine` is taken from PATH. See docs/RESULTS.md.
set -eu

if [ $# -lt 2 ]; then
    echo "usage: $0 DATA OUTPUT [SEED...]" >&2
    exit 2
fi
data=$1 output=$2
shift 2
[ $# -gt 0 ] || set -- 1 2 3
threads=$(($(nproc) / $#))
[ "$threads" -ge 1 ] || threads=1

common="--train-split train+more --model vit_tiny_patch16_224 --img-size 96 --batch-size 64 --epochs 60
    --warmup-epochs 5 --clip-grad 1 --scale 0.25 1 --color-jitter 0.3 --amp --eval-interval 5
    --resume auto --threads $threads --workers $threads --quiet"
teacher="--patch-size 8 --embed-dim 192 --depth 6 --num-heads 3 --global-pool avg --drop-path 0.1
    --reprob 0.25 --lr 2.5e-4"
student="--patch-size 12 --embed-dim 128 --depth 6 --num-heads 2 --lr 3e-4"

# run COMMAND FOLDER OPTIONS... : the paths may hold spaces, only the option lists are split
run() {
    command=$1 to=$2 options=$3
    shift 3
    # shellcheck disable=SC2086
    tagine "$command" $common $options --data "$data" --output "$to" "$@" >"$to.log" 2>&1 &
    job=$!
    trap 'kill $job 2>/dev/null; wait $job; exit 143' INT TERM
    wait $job || { echo "$to failed: $(tail -n 1 "$to.log")" >&2 && return 1; }
    echo "$to: done"
}

one_seed() {
    runs=$output/seed-$1
    mkdir -p "$runs"
    run train "$runs/teacher" "$teacher" --seed "$1" &&
        run train "$runs/alone" "$student" --seed "$1" &&
        run distill "$runs/distilled" "$student" --seed "$1" --teacher "$runs/teacher/model" \
            --kd-alpha 0.9 --kd-temperature 2
}

last() {
    awk -F'[:,}]' '/"val_top1"/ { for (i = 1; i < NF; i++) if ($i ~ /"val_top1"/) v = $(i + 1) }
        END { printf "%.2f", v }' "$1/metrics.jsonl"
}

# Stopped, every run saves and leaves; started again, each goes on.
children='' status=0
trap 'kill $children 2>/dev/null; wait; exit 143' INT TERM
for seed; do
    one_seed "$seed" &
    children="$children $!"
done
for child in $children; do
    wait "$child" || status=$?
done
[ $status -eq 0 ] || exit $status

for seed; do
    runs=$output/seed-$seed
    printf '%-8s %9s %9s %9s\n' "$seed" "$(last "$runs/teacher")" "$(last "$runs/alone")" \
        "$(last "$runs/distilled")"
done >"$output/table.txt"
printf '%-8s %9s %9s %9s\n' seed teacher alone distilled
cat "$output/table.txt"
awk '{ for (i = 2; i <= 4; i++) { s[i] += $i; q[i] += $i * $i } n++ }
    END {
        printf "%-8s", "mean"; for (i = 2; i <= 4; i++) printf " %9.2f", s[i] / n
        printf "\n%-8s", "spread"
        for (i = 2; i <= 4; i++) {
            v = n > 1 ? (q[i] - s[i] * s[i] / n) / (n - 1) : 0
            printf " %9.2f", sqrt(v > 0 ? v : 0)
        }
        printf "\n"
    }' "$output/table.txt"
