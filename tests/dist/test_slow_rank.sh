#!/bin/sh
# A rank that is paused again and again is named while the job runs and in its last lines, and what each rank
# spent its steps on is in ranks.jsonl, without repeats or gaps after a stop and a kill.
set -u
. "$TAGINE_SOURCE_DIR/tests/support/mpi.sh"
mpi_begin
mpi_need
fail_shows="out err run/log/rank-0.log"
mpi_photos photos 30 64
# Steps of some 50 ms, of which ranks wait little: a pause falls into a rank's own work.
common="--data photos --img-size 64 --patch-size 8 --num-heads 3 --embed-dim 192 --depth 4 --threads 1 --epochs 100000
    --global-batch-size 24 --eval-interval 100000 --output run --no-amp"
train() {
    ranks=$1
    shift
    # shellcheck disable=SC2086
    timeout 200 "mpirun.$mpi" -np "$ranks" "$TAGINE" train --comm mpi $common "$@" >out 2>err
}
# pauses RANK: most of its time it is stopped, until the log calls it the slowest, or a minute has passed. On a busy
# machine ranks differ by themselves, and by turns.
pauses() {
    paused=$(rank_process run "$1")
    [ -n "$paused" ] || fail "no process of rank $1"
    i=0
    until grep -q "warning slowest rank[ now]*: rank $1 on .* of own work a step (median of the others" run/log/rank-0.log; do
        i=$((i + 1))
        [ $i -lt 100 ] || fail "rank $1 was paused and is not named"
        kill -STOP "$paused" && sleep 0.4
        kill -CONT "$paused" && sleep 0.2
    done
}
steps() { sed -n 's/^{"step":\([0-9]*\),.*/\1/p' "run/$1"; }

train 2 --checkpoint-steps 20 &
await 60 test -e run/checkpoints/last || fail "no checkpoint"
pauses 1
pauses 0
kill -TERM "$(rank_process run 1)"
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
has_gone_on() { [ "$(steps metrics.jsonl | tail -n 1)" -gt $((done + 30)) ] 2>/dev/null; }
await 60 has_gone_on || fail "no steps"
kill -9 "$(rank_process run 1)"
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
