#!/bin/sh
# Two ranks of one core each on hosts of their own, against one rank of one core, over links of several speeds.
#
#   bench/scaling.sh PROGRAM [MODEL [BATCH [STEPS]]]      default: vit_tiny_patch16_224 32 5
#
# Hosts are namespaces (tests/dist/hosts.sh; needs root or user namespaces, Open MPI and iproute2), each bound
# to a core. A row: link, what is done, images/s a rank, that over the images/s of one rank alone, and the share of
# the step that is exposed communication (t_reduce). "beside" are two single ranks at once that do not know each
# other: what sharing a machine costs by itself. "late" has one bucket, which goes out when backward is done.
set -u
. "$(dirname "$0")/../tests/dist/hosts.sh"
[ $# -ge 1 ] || { sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2; }
program=$(readlink -f "$1") model=${2:-vit_tiny_patch16_224} batch=${3:-32} steps=${4:-5}
HOSTS_PIN=1
hosts_need
here=$HOSTS_DIR options=

# field NAME FILE
field() { sed -n "s/.*\"$1\":\([^,}]*\).*/\1/p" "$2" | head -n 1; }

# row LINK WHAT FILE RANKS
row() {
    awk -v link="$1" -v what="$2" -v speed="$(field images_per_s "$3")" -v alone="$alone" -v ranks="$4" \
        -v reduce="$(field reduce_s "$3")" -v step="$(field step_s "$3")" 'BEGIN {
            each = speed / ranks
            printf "%-10s %-22s %8.2f images/s a rank  %5.3f of alone", link, what, each, each / alone
            if (reduce != "null") printf "  %5.1f %% exposed", 100 * reduce / step
            printf "\n" }'
}

# step PREFIX...: the training step under a launcher
step() {
    "$@" "$program" bench train --model "$model" --batch-size "$batch" --amp-dtype bfloat16 --threads 1 \
        --steps "$steps" --json -q $options
}

alone() {
    step taskset -c 0 >"$here/alone" || exit 1
    alone=$(field images_per_s "$here/alone")
    row - "alone" "$here/alone" 1
}

beside() {
    step taskset -c 1 >"$here/beside" &
    step taskset -c 0 >"$here/other"
    wait $!
    row - "beside" "$here/beside" 1
}

# ranks LINK WHAT OPTIONS...
ranks() {
    link=$1 what=$2
    shift 2
    options="--comm mpi $*"
    step hosts_mpirun openmpi 2 >"$here/ranks" 2>"$here/err" || { cat "$here/err"; exit 1; }
    options=
    row "$link" "$what" "$here/ranks" 2
}

echo "$model, batch $batch a rank, bf16"
alone
beside
for link in unlimited 1gbit 100mbit; do
    [ $link = unlimited ] && rate='' || rate=$link
    hosts_up 2 $rate
    alone
    ranks $link "fp32" --zero 0
    ranks $link "fp32, shares" --zero 1
    ranks $link "bf16 wire, shares" --zero 1 --reduce-dtype bfloat16
    ranks $link "fp32, shares, late" --zero 1 --bucket-mib 65536
    hosts_down
done
