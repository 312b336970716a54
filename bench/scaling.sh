#!/bin/sh
# Ranks of one core each on hosts of their own, against one rank of one core, over links of several speeds, and
# what `tagine plan` forecasts for each.
#
#   bench/scaling.sh PROGRAM [MODEL [BATCH [STEPS]]]      default: vit_tiny_patch16_224 32 5
#
#   RANKS=2                       more than there are cores share them
#   LINKS="unlimited 1gbit 100mbit"
#   TEACHER=MODEL                 distils from it
#   OPTIONS="--img-size 96"       for all runs and forecasts
#
# Hosts are namespaces (tests/dist/hosts.sh; needs root or user namespaces, Open MPI and iproute2), each bound
# to a core. A row: link, what is done, images/s a rank, that over the images/s of one rank alone, the share of
# the step that is exposed communication (t_reduce); then seconds of the step, seconds as forecast, and their ratio less one.
# "beside" are as many single ranks at once that do not know each other: what sharing a machine, and with more ranks
# than cores a core, costs by itself; forecasts begin there, with link and core time as bench comm measures them on this link.
# "late" has one bucket, which goes out when backward is done.
set -u
. "$(dirname "$0")/../tests/dist/hosts.sh"
[ $# -ge 1 ] || { sed -n '2,18s/^# \{0,1\}//p' "$0" >&2; exit 2; }
program=$(readlink -f "$1") model=${2:-vit_tiny_patch16_224} batch=${3:-32} steps=${4:-5}
ranks=${RANKS:-2} links=${LINKS:-unlimited 1gbit 100mbit} cores=$(nproc --all)
HOSTS_PIN=1
hosts_need
here=$HOSTS_DIR kind=train
[ -z "${TEACHER:-}" ] || kind=distill
share=$(((ranks + cores - 1) / cores))

# field NAME FILE
field() { sed -n "s/.*\"$1\":\([^,}]*\).*/\1/p" "$2" | head -n 1; }

# row LINK WHAT FILE RANKS [FORECAST]
row() {
    awk -v link="$1" -v what="$2" -v speed="$(field images_per_s "$3")" -v alone="$alone" -v ranks="$4" \
        -v reduce="$(field reduce_s "$3")" -v step="$(field step_s "$3")" -v forecast="${5:-0}" 'BEGIN {
            each = speed / ranks
            printf "%-10s %-22s %8.2f images/s a rank  %5.3f of alone", link, what, each, each / alone
            if (reduce != "null") printf "  %5.1f %% exposed", 100 * reduce / step
            if (forecast > 0) printf "  %6.3f s, forecast %6.3f s  %+5.1f %%", step, forecast, 100 * (forecast / step - 1)
            printf "\n" }'
}

# step PREFIX...: the training step under a launcher
step() {
    # shellcheck disable=SC2086
    "$@" "$program" bench "$kind" --model "$model" ${TEACHER:+--teacher "$TEACHER"} ${OPTIONS:-} --batch-size "$batch" \
        --amp-dtype bfloat16 --threads 1 --steps "$steps" --json -q $options
}

options=
alone() {
    step taskset -c 0 >"$here/alone" || exit 1
    alone=$(field images_per_s "$here/alone")
    row - "alone" "$here/alone" 1
}

# The middle one of them, by its step, is what a rank is forecast from.
beside() {
    i=0 started=
    while [ "$i" -lt "$ranks" ]; do
        step taskset -c $((i % cores)) >"$here/beside$i" &
        started="$started $!" i=$((i + 1))
    done
    # shellcheck disable=SC2086
    wait $started
    for file in "$here"/beside*; do echo "$(field step_s "$file") $file"; done | sort -g >"$here/order"
    middle=$(sed -n "$(((ranks + 1) / 2))s/^[^ ]* //p" "$here/order")
    row - "beside" "$middle" 1
    mkdir -p "$here/run"
    echo '{"ranks":1}' >"$here/run/run.json"
    teacher=$(field teacher_s "$middle")
    [ "$teacher" != null ] || teacher=0
    for i in 1 2 3 4 5; do
        awk -v i=$i -v images="$batch" -v step="$(field step_s "$middle")" -v teacher="$teacher" -v forward="$(field forward_s "$middle")" \
            -v backward="$(field backward_s "$middle")" -v optimizer="$(field optimizer_s "$middle")" 'BEGIN {
                printf "{\"step\":%d,\"epoch\":0,\"images\":%d,\"loss\":1,\"t_step\":%g,\"t_data\":0,", i, images, step
                printf "\"t_teacher\":%g,\"t_forward\":%g,\"t_backward\":%g,\"t_reduce\":0,", teacher, forward, backward
                other = step - teacher - forward - backward - optimizer
                printf "\"t_optimizer\":%g,\"t_other\":%g}\n", optimizer, (other > 0 ? other : 0) }'
    done >"$here/run/metrics.jsonl"
}

# forecast LINK OPTIONS...: seconds of a step
forecast() {
    link=$1 type=float32
    shift
    case "$*" in *bfloat16*) type=bfloat16 ;; esac
    # shellcheck disable=SC2086
    "$program" plan --model "$model" ${TEACHER:+--teacher "$TEACHER"} ${OPTIONS:-} --batch-size "$batch" --amp --ranks "$ranks" \
        --run "$here/run" --bench-comm "$here/comm-$link-$type" --ranks-per-core "$share" --json -q "$@" >"$here/plan" || exit 1
    field step_s "$here/plan"
}

# measure LINK WHAT OPTIONS...
measure() {
    link=$1 what=$2
    shift 2
    options="--comm mpi $*"
    step hosts_mpirun openmpi "$ranks" >"$here/ranks" 2>"$here/err" || { cat "$here/err"; exit 1; }
    options=
    row "$link" "$what" "$here/ranks" "$ranks" "$(forecast "$link" "$@")"
}

# look LINK TYPE: what the link gives and the exchange takes; a machine that is not quiet gets two more chances.
look() {
    what=$1-$2
    for try in 1 2 3; do
        hosts_mpirun openmpi "$ranks" "$program" bench comm --comm mpi --mib 16 --repeats 2 --reduce-dtype "$2" --json -q >"$here/comm-$what" 2>"$here/err" ||
            { cat "$here/err"; exit 1; }
        grep -q '"packets_ns":null' "$here/comm-$what" || break
    done
    printf '%-10s %-8s' "$1" "$2"
    sed -n 's/.*"all-reduce".*"link_bytes_per_s":\([^,]*\).*/ \1 bytes\/s each way;/p' "$here/comm-$what" | tr -d '\n'
    sed -n 's/.*"seconds":\([^,]*\).*"cpu_ns":\([^,]*\),"cpu_ns_per_kib":\([^,]*\),"cpu_ns_per_message":\([^,]*\),"packets_ns":\([^,]*\),"packets_ns_per_kib":\([^,]*\),"quiet_cores":\([^}]*\).*/ core ns: \3 a KiB, \4 a message, packets \6 a KiB (at rest \7 cores)/p' "$here/comm-$what"
}

echo "$model${TEACHER:+ from $TEACHER}${OPTIONS:+, $OPTIONS}, batch $batch a rank, bf16, $ranks ranks on $cores cores"
alone
beside
for link in $links; do
    [ "$link" = unlimited ] && rate='' || rate=$link
    hosts_up "$ranks" "$rate"
    look "$link" float32
    look "$link" bfloat16
    beside
    measure "$link" "fp32" --zero 0
    measure "$link" "fp32, shares" --zero 1
    measure "$link" "bf16 wire, shares" --zero 1 --reduce-dtype bfloat16
    measure "$link" "fp32, shares, late" --zero 1 --bucket-mib 65536
    hosts_down
done
