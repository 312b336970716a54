# work.sh - the small training that tests on hosts do; sourced after hosts.sh.

. "$TAGINE_SOURCE_DIR/tests/support/await.sh"

fail() {
    printf 'FAILED: %s\n' "$*"
    tail -n 20 out err err.* ${fail_shows:-} 2>/dev/null
    exit 1
}

# Skips where it must; else photos in a folder of the test's own, where the test goes on.
work_begin() {
    [ -n "${TAGINE:-}" ] || hosts_skip "the program was not built"
    [ -z "${TAGINE_SANITIZE:-}" ] || hosts_skip "MPI is not built for sanitizers"
    [ -f "$(dirname "$TAGINE")/tagine-comm-openmpi.so" ] && command -v mpirun.openmpi >/dev/null ||
        hosts_skip "no Open MPI is installed"
    hosts_need
    mkdir "$HOSTS_DIR/work" && cd "$HOSTS_DIR/work" || exit 1
    "$TAGINE" data synth --output photos --classes 4 --per-class 30 --img-size 32 --quiet >/dev/null || fail synth
    work_options="--data photos --img-size 32 --patch-size 8 --num-heads 2 --embed-dim 32 --depth 2
        --warmup-epochs 0 --lr 1e-3 --epochs 100000 --global-batch-size 12 --eval-interval 100000 --threads 1
        --mixup 0.2 --cpu-isa avx2 --stall-seconds 5 --quiet"
}

# work_alone STEPS OUTPUT OPTIONS...: one rank
work_alone() {
    work_steps=$1 work_output=$2
    shift 2
    # shellcheck disable=SC2086
    timeout 60 "$TAGINE" train $work_options --steps "$work_steps" --output "$work_output" "$@" >out 2>err
}

# work_column KEY RUN: of every step's record
work_column() { sed -n "s/.*\"$1\": *\([-0-9.e+]*\).*/\1/p" "$2/metrics.jsonl"; }

# "step images loss" of every step
work_losses() {
    sed -n 's/.*"step": *\([0-9]*\).*"images": *\([0-9]*\), *"loss": *\([^,]*\).*/\1 \2 \3/p' "$1/metrics.jsonl"
}

# work_close A B FIRST LAST RELATIVE [ABSOLUTE]: all these steps are in both, with as many photos, and losses
# differ by at most as much
work_close() {
    work_losses "$1" >losses.a
    work_losses "$2" >losses.b
    awk -v first="$3" -v last="$4" -v relative="$5" -v absolute="${6:-0}" '
        NR == FNR { images[$1] = $2; loss[$1] = $3; next }
        $1 >= first && $1 <= last && $1 in loss {
            seen++
            off = $3 - loss[$1]
            if ($2 != images[$1] || off ^ 2 > (relative * loss[$1] + absolute) ^ 2) { bad = 1; print $0, loss[$1] }
        }
        END { exit bad || seen != last - first + 1 }' losses.a losses.b
}

# Runs the program as a rank that leaves its words in out.RANK, err.RANK and status.RANK, and then stays until
# every rank has done so, lest mpirun end those that have not spoken: mpirun ... sh -c "$work_rank" RANKS OPTIONS...
# shellcheck disable=SC2016  # the inner shell's words
work_rank='rank=$OMPI_COMM_WORLD_RANK ranks=$0
    "$TAGINE" train "$@" >out.$rank 2>err.$rank
    echo $? >status.$rank
    i=0
    while [ $i -lt 400 ] && [ "$(cat status.* | wc -l)" -lt "$ranks" ]; do
        i=$((i + 1))
        sleep 0.1
    done'
