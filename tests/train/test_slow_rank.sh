#!/bin/sh
# A rank that is paused again and again is named while the job runs and in its last lines, and what each rank
# spent its steps on is in ranks.jsonl, without repeats or gaps after a stop and a kill.
set -u
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
fail() { printf 'FAILED: %s\n' "$*"; cat out err run/log/rank-0.log 2>/dev/null; exit 1; }
[ -z "${TAGINE_SANITIZE:-}" ] || { echo "skipped: MPI is not built for sanitizers"; exit 77; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
mpi=
for name in openmpi mpich; do
    [ -f "$(dirname "$TAGINE")/tagine-comm-$name.so" ] && command -v "mpirun.$name" >/dev/null && mpi=${mpi:-$name}
done
[ -n "$mpi" ] || { echo "skipped: no MPI is installed"; exit 77; }

"$TAGINE" data synth --output photos --classes 4 --per-class 30 --img-size 64 --quiet >/dev/null || fail synth
# Steps of some 50 ms, of which ranks wait little: a pause falls into a rank's own work.
common="--data photos --img-size 64 --patch-size 8 --num-heads 3 --embed-dim 192 --depth 4 --threads 1 --epochs 100000
    --global-batch-size 24 --eval-interval 100000 --output run --no-amp"
train() {
    ranks=$1
    shift
    # shellcheck disable=SC2086
    timeout 90 "mpirun.$mpi" -np "$ranks" "$TAGINE" train --comm mpi $common "$@" >out 2>err
}
# The process of rank $1: the log file that it holds open says which one it is.
process_of() {
    for at in /proc/[0-9]*; do
        if ls -l "$at/fd" 2>/dev/null | grep -q "$work/run/log/rank-$1.log"; then
            basename "$at"
        fi
    done
}
# pauses PROCESS: most of its time it is stopped, until the log says so or 30 s have passed
pauses() {
    i=0
    until grep -q "$2" run/log/rank-0.log || [ $i -ge 60 ]; do
        kill -STOP "$1" && sleep 0.3
        kill -CONT "$1" && sleep 0.2
        i=$((i + 1))
    done
    kill -CONT "$1"
}
steps() { sed -n 's/^{"step":\([0-9]*\),.*/\1/p' "run/$1"; }

train 2 --checkpoint-steps 20 &
i=0
until [ -e run/checkpoints/last ]; do
    i=$((i + 1))
    [ $i -lt 300 ] || fail "no checkpoint in 30 s"
    sleep 0.1
done
slow=$(process_of 1)
[ -n "$slow" ] || fail "no process of rank 1"
pauses "$slow" 'warning slowest rank.*: rank 1 on'
grep -q 'warning slowest rank.*: rank 1 on .* of own work a step (median of the others' run/log/rank-0.log ||
    fail "rank 1 was paused and is not named"
i=0
until grep -Eq 'rank 1 on .* is no longer slower|slowest rank now: rank 0' run/log/rank-0.log; do
    i=$((i + 1))
    [ $i -lt 200 ] || fail "the pauses are over, and nothing says so"
    sleep 0.1
done
kill -TERM "$slow"
wait
grep -q 'stopped on request' err || fail "stopping"
steps ranks.jsonl >a
steps metrics.jsonl >b
cmp -s a b || fail "ranks.jsonl has other steps than metrics.jsonl"
[ "$(sort -nu a | wc -l)" = "$(tail -n 1 a)" ] || fail "steps repeat, or are missing"

# Killed, gone on with by three ranks, then by one.
done=$(tail -n 1 a)
train 2 --resume auto --steps $((done + 10)) || fail "going on with two ranks"
train 2 --resume auto --checkpoint-steps 1000000 &
until [ "$(steps metrics.jsonl | tail -n 1)" -gt $((done + 30)) ] 2>/dev/null; do sleep 0.1; done
kill -9 "$(process_of 1)"
wait
end=$(($(steps metrics.jsonl | tail -n 1) + 10))
train 3 --resume auto --steps $end || fail "going on with three ranks"
steps ranks.jsonl >a
seq $end | cmp -s - a || fail "after a kill steps repeat, or are missing"
tail -n 1 run/ranks.jsonl | grep -q '"ranks":3,"images":\[[0-9]*,[0-9]*,[0-9]*\]' || fail "three ranks' numbers"
# shellcheck disable=SC2086
"$TAGINE" train $common --batch-size 24 --resume auto --steps $((end + 5)) >out 2>err ||
    fail "going on with one rank"
[ "$(steps ranks.jsonl | tail -n 1)" = $end ] || fail "one rank has no records of ranks"
exit 0
