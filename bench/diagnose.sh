#!/bin/sh
# Runs that were made slow on purpose: what `tagine diagnose` says of each unaided, what it predicts, and what came when
# its advice was followed. docs/OBSERVE.md, "Predicted and real".
#
#   bench/diagnose.sh PROGRAM [CASE...]     all cases, or some: workers fp32 batch none mask bound quota neighbour disk rank
#
#   WORK=DIR         where photos and runs go (a new folder of /tmp, removed at the end)
#   REPEATS=2        of each pair, slow and advised by turns
#
# For a machine of 2 cores or more, as root where a case needs it (quota, disk: cgroup v1). A row: case, rule that came
# first, setting, step before, predicted and real (ms), and how far the prediction is off, as a share of the real gain.
set -u
[ $# -ge 1 ] || { sed -n '2,12s/^# \{0,1\}//p' "$0" >&2; exit 2; }
program=$(readlink -f "$1")
shift
cases=${*:-workers fp32 batch none mask bound quota neighbour disk rank}
work=${WORK:-} repeats=${REPEATS:-2}
if [ -z "$work" ]; then
    work=$(mktemp -d) || exit 4
    trap 'rm -rf "$work"' EXIT
fi
photos=$work/photos
[ -d "$photos" ] || "$program" data synth --output "$photos" --classes 5 --per-class 100 --seed 1 --img-size 512 --quiet || exit 1
small="--model vit_tiny_patch16_224 --img-size 64 --patch-size 8 --embed-dim 96 --depth 4 --num-heads 3 --batch-size 32"
large="--model vit_tiny_patch16_224 --img-size 128 --batch-size 16"

# train RUN OPTION...: a short job with a close look; `before` is put before the program.
before=
train() {
    run=$work/$1
    shift
    rm -rf "$run"
    # shellcheck disable=SC2086
    $before "$program" train --data "$photos" --val-split none --monitor-interval 100 --checkpoint-steps 0 --quiet \
        --output "$run" "$@" >/dev/null 2>"$work/err" || { echo "$*: $(cat "$work/err")" >&2; return 1; }
}

# field NAME FILE: of the report, or of its first finding that counts.
field() { sed -n "s/.*\"$1\":\([^,}]*\).*/\1/p" "$2" | head -n 1 | tr -d '"'; }
look() {
    "$program" diagnose "$work/$1" --json >"$work/json" 2>"$work/err" || cat "$work/err" >&2
    sed 's/.*"findings":\[//; s/},{"rule"/}\n{"rule"/g' "$work/json" >"$work/findings"
    step=$(sed 's/"findings".*//' "$work/json" | sed -n 's/.*"step_s":\([^,}]*\).*/\1/p')
}

# pair CASE RULE SLOW... -- ADVISED...: the rule that is expected; its first place is shown beside it.
pair() {
    name=$1 rule=$2 slow= advised= part=slow
    shift 2
    for word in "$@"; do
        if [ "$word" = -- ]; then part=advised; elif [ $part = slow ]; then slow="$slow $word"; else advised="$advised $word"; fi
    done
    for _ in $(seq "$repeats"); do
        # shellcheck disable=SC2086
        hamper && train "$name-slow" $slow && look "$name-slow" || { relieve; return; }
        relieve
        keep=$before before=${after-$before}
        first=$(field rule "$work/findings") slow_s=$step
        grep "{\"rule\":\"$rule\"" "$work/findings" | head -n 1 >"$work/finding"
        setting="$(field option "$work/finding") $(field old "$work/finding") -> $(field new "$work/finding")"
        predicted=$(field predicted_step_s "$work/finding")
        # shellcheck disable=SC2086
        train "$name-advised" $advised && look "$name-advised" || return
        row "$step"
        before=$keep
    done
}
row() {
    awk -v name="$name" -v rule="$rule" -v first="$first" -v setting="$setting" -v a="$slow_s" -v p="$predicted" \
        -v b="$1" -v each="${EACH:-1}" 'BEGIN {
            b *= each
            printf "%-10s %-22s first %-22s %-26s %7.1f ms", name, rule, first, setting, 1e3 * a
            if (p + 0 > 0) printf ", predicted %7.1f, real %7.1f, off by %3.0f %% of the gain\n", 1e3 * p, 1e3 * b,
                100 * (a > b ? (p > b ? p - b : b - p) / (a - b) : 1)
            else printf ", predicted       -, real %7.1f\n", 1e3 * b }'
}

hamper() { :; }
relieve() { :; }
spin() { while :; do :; done; }
busy() { spin & hog=$!; }
idle() { kill "$hog" 2>/dev/null; wait "$hog" 2>/dev/null; }

for case in $cases; do
    before= EACH=1
    unset after
    hamper() { :; }
    relieve() { :; }
    # shellcheck disable=SC2086
    case $case in
    workers) pair workers LoaderOversubscription $small --amp --epochs 8 --workers 48 -- $small --amp --epochs 8 --workers "${WORKERS:-2}" ;;
    fp32) pair fp32 Float32WhereBfloat16 $large --epochs 2 --workers 1 -- $large --epochs 2 --workers 1 --amp ;;
    batch)
        EACH=0.125 # of as many photos
        pair batch LargerBatch $small --amp --epochs 1 --workers 1 --batch-size 1 -- $small --amp --epochs 6 --workers 1 --batch-size 8
        ;;
    none) pair none LoaderStarvation $small --amp --epochs 6 --workers 0 --threads 1 -- $small --amp --epochs 6 --workers 1 --threads 1 ;;
    mask)
        before="taskset -c 0" after=
        pair mask WrongAffinity $large --amp --epochs 2 --workers 0 -- $large --amp --epochs 2 --workers 0 --threads 2
        ;;
    neighbour)
        hamper() { busy; }
        relieve() { idle; }
        pair neighbour OtherJobs $large --amp --epochs 2 --workers 1 -- $large --amp --epochs 2 --workers 1
        ;;
    quota)
        group=/sys/fs/cgroup/cpu/tagine-bench-$$
        mkdir "$group" 2>/dev/null || { echo "quota: no cgroup v1 to make a group in"; continue; }
        echo 100000 >"$group/cpu.cfs_period_us"
        echo 100000 >"$group/cpu.cfs_quota_us"
        inside="$work/inside.sh"
        printf '#!/bin/sh\necho $$ >%s/cgroup.procs && exec "$@"\n' "$group" >"$inside"
        chmod +x "$inside"
        before=$inside
        pair quota CgroupThrottling $large --amp --epochs 1 --workers 1 --threads 2 -- $large --amp --epochs 1 --workers 1 --threads 1
        rmdir "$group"
        ;;
    *) ;;
    esac
done
