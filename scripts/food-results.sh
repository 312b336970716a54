#!/bin/sh
# food-results.sh DATA OUTPUT [SEED...] - teacher, student alone and distilled student on real photos.
#
# DATA holds train/, more/ and val/ with a folder for each class. For every seed (default: 1 2 3) three
# runs go to OUTPUT/seed-N; a run that was stopped goes on where it was. Prints the accuracy of the last
# epoch of every run, with mean and spread (sample standard deviation) over the seeds. The last epoch, not
# the best: choosing the best on the validation photos would flatter all three.
# `tagine` is taken from PATH. See docs/RESULTS.md.
set -eu

if [ $# -lt 2 ]; then
    echo "usage: $0 DATA OUTPUT [SEED...]" >&2
    exit 2
fi
data=$1 output=$2
shift 2
[ $# -gt 0 ] || set -- 1 2 3

common="--train-split train+more --model vit_tiny_patch16_224 --img-size 96 --patch-size 12
    --batch-size 64 --lr 2e-4 --warmup-epochs 5 --clip-grad 1 --scale 0.25 1 --aa rand-m9-mstd0.5-inc1
    --amp --eval-interval 5 --resume auto"
teacher="--embed-dim 192 --depth 9 --num-heads 3 --drop-path 0.1 --cutmix 1.0 --mixup-prob 0.5 --epochs 100"
student="--embed-dim 128 --depth 6 --num-heads 2 --epochs 60"

# The paths may hold spaces: only the option lists are split.
run() {
    command=$1 to=$2 options=$3
    shift 3
    # shellcheck disable=SC2086
    tagine "$command" $options --data "$data" --output "$to" "$@"
}

last() {
    awk -F'[:,]' '/"val_top1"/ { for (i = 1; i < NF; i++) if ($i ~ /"val_top1"/) v = $(i + 1) }
        END { printf "%.2f", v }' "$1/metrics.jsonl"
}

for seed; do
    runs=$output/seed-$seed
    run train "$runs/teacher" "$common $teacher" --seed "$seed"
    run train "$runs/alone" "$common $student" --seed "$seed"
    run distill "$runs/distilled" "$common $student" --seed "$seed" --teacher "$runs/teacher/model" \
        --kd-alpha 0.9 --kd-temperature 2
done

printf '%-8s %9s %9s %9s\n' seed teacher alone distilled
for seed; do
    runs=$output/seed-$seed
    printf '%-8s %9s %9s %9s\n' "$seed" "$(last "$runs/teacher")" "$(last "$runs/alone")" \
        "$(last "$runs/distilled")"
done | tee "$output/table.txt"
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
