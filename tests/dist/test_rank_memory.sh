#!/bin/sh
# One rank of several that has no memory: when the job opens, and in the middle of it. It says so, all leave
# together, the failure file names rank, host and bytes, and the last checkpoint goes on.
set -u
. "$TAGINE_SOURCE_DIR/tests/support/mpi.sh"
mpi_begin
mpi_need
fail_shows="out err run/failure run/log/rank-1.log"
command -v prlimit >/dev/null || { echo "skipped: no prlimit (package util-linux)"; exit 77; }
mpi_photos photos 30 32
common="--img-size 32 --patch-size 8 --num-heads 3 --threads 1 --workers 1 --global-batch-size 12 --cpu-isa avx2 --model-ema"
little="--embed-dim 48 --depth 1"
much="--embed-dim 384 --depth 12" # 21 million weights: 81 MiB for each of six buffers

# train MPI KIB OPTIONS...: two ranks, of which the second may have so much address space
train() {
    with=$1 limit=$2
    shift 2
    # shellcheck disable=SC2086
    timeout 100 "mpirun.$with" -np 1 "$TAGINE" train --comm mpi --data photos $common "$@" : -np 1 \
        sh -c "ulimit -v $limit; exec \"\$@\"" sh "$TAGINE" train --comm mpi --data photos $common "$@" >out 2>err
}
# size PROCESS FIELD: KiB
size() { sed -n "s/^$2:[^0-9]*\([0-9]*\) kB/\1/p" "/proc/$1/status"; }
has_steps() { [ "$(cat run/metrics.jsonl 2>/dev/null | wc -l)" -ge "$1" ]; }

for with in $mpis; do
    # what MPI and the program take at most, seen of a little job
    rm -rf run
    # shellcheck disable=SC2086
    train "$with" unlimited $little --epochs 100000 --output run &
    await 60 has_steps 20 || fail "$with: no steps"
    peak=$(size "$(rank_process run 1)" VmPeak)
    kill -TERM "$(rank_process run 1)"
    wait
    [ "$peak" -gt 10000 ] || fail "$with: a peak of $peak KiB"

    rm -rf run
    begin=$(date +%s)
    # shellcheck disable=SC2086
    train "$with" $((peak + 100000)) $much --epochs 1 --output run && fail "$with: works with $peak KiB and 100 MB"
    [ $(($(date +%s) - begin)) -lt 30 ] || fail "$with: it took $(($(date +%s) - begin)) s"
    head -n 1 run/failure | grep -q "^rank 1 on $(uname -n): .*[0-9.]* \(MiB\|bytes\)" || fail "$with: the failure file"
    [ "$(grep -c 'tagine train: ' err)" = 1 ] || fail "$with: not said once"
    grep -q '^tagine train: rank 1 on .*\(out of memory\|cannot reserve\)' err || fail "$with: who and why"
    grep -q ' error .*\(out of memory\|cannot reserve\)' run/log/rank-1.log || fail "$with: its own log"
    grep -q '"exit":[45],"failure":"rank 1 on' run/run.json || fail "$with: run.json"

    # The average is scored by a network of its own, after every epoch.
    rm -rf run
    # shellcheck disable=SC2086
    train "$with" unlimited --embed-dim 192 --depth 6 --epochs 100000 --checkpoint-steps 4 --stall-seconds 20 --output run &
    await 60 test -e run/checkpoints/last || fail "$with: no checkpoint"
    process=$(rank_process run 1)
    prlimit --pid "$process" "--as=$(($(size "$process" VmSize) * 1024))" || fail "$with: prlimit"
    wait
    head -n 1 run/failure | grep -q "rank 1 on $(uname -n)[:l ].*\(memory\|cannot\)" || fail "$with: later: the failure file"
    grep -q '^tagine train: rank 1 on .*\(memory\|cannot\)' err || fail "$with: later: who and why"
    grep -q ' error .*\(memory\|cannot\)' run/log/rank-1.log || fail "$with: later: its own log"
    grep -q '"exit":[45],"failure":"rank 1 on' run/run.json || fail "$with: later: run.json"
    at=$(readlink run/checkpoints/last)
    # shellcheck disable=SC2086
    train "$with" unlimited --embed-dim 192 --depth 6 --epochs 100000 --output run --resume auto \
        --steps $((${at#step-} + 3)) --quiet || fail "$with: does not go on"
done
exit 0
