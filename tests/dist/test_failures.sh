#!/bin/sh
# A host that is cut off, a process that the kernel kills for memory: every other rank leaves in time,
# with exit code 5, and names who, where and what was awaited; the last checkpoint goes on alone as if nothing
# had been.
set -u
. "$TAGINE_SOURCE_DIR/tests/dist/hosts.sh"
. "$TAGINE_SOURCE_DIR/tests/dist/work.sh"
work_begin
ranks=3
stall=5  # --stall-seconds of work_options
margin=5 # for a busy machine

has_checkpoint() { [ -e "$run/checkpoints/last" ]; }
has_steps() { [ "$(work_losses "$run" | wc -l)" -ge 25 ]; }
all_left() { [ "$(cat status.* 2>/dev/null | wc -l)" = "$1" ]; }

# start RUN OPTIONS...: three ranks on slow links, so that most of a step is exchange
start() {
    run=$1
    shift
    rm -f status.* out.* err.*
    # shellcheck disable=SC2086,SC2154
    hosts_mpirun openmpi $ranks sh -c "$work_rank" $ranks $work_options --comm mpi --zero 1 --output "$run" \
        --checkpoint-steps 10 "$@" >out 2>err &
}

# says RANK TEXT: on the terminal, or in its log, where the first rank speaks for all
says() { cat "err.$1" "$run/log/rank-$1.log" | grep -q "$2" || fail "$run: rank $1 does not say: $2"; }
# leaves RANK: with the exit code of a peer's failure
leaves() { [ "$(cat "status.$1")" = 5 ] || fail "$run: rank $1 left with $(cat "status.$1"), not 5"; }

# The checkpoint goes on with one rank, and its losses are those of a run that was never interrupted.
goes_on() {
    at=$(sed -n 's/.*"step": *\([0-9]*\).*/\1/p' "$run/checkpoints/last/state.json" | head -n 1)
    work_alone $((at + 10)) "$run" --resume auto || fail "$run: does not go on"
    work_alone $((at + 10)) "whole-$run" || fail "$run: the run that was not interrupted"
    work_close "whole-$run" "$run" 1 $((at + 10)) 1e-5 || fail "$run: other losses after the checkpoint"
}

# The cable of host 3, pulled while gradients are under way.
hosts_up $ranks 20mbit
start cut
work_await 60 has_checkpoint && work_await 30 has_steps || fail "cut: no checkpoint"
begin=$(date +%s)
hosts_cut 3
work_await $((stall + margin)) all_left $ranks || fail "cut: not all have left: $(cat status.*)"
echo "cut: all ranks left within $(($(date +%s) - begin)) s"
for rank in 0 1; do
    leaves $rank
    says $rank 'rank 2 on host3 (process [0-9]*, [0-9]* bytes to come'
    says $rank 'nothing has moved for .* in the .*\(reduce-scatter of .* MiB (gradients\|all-gather of .* MiB (parameters\|meeting\)'
done
leaves 2
says 2 'rank [01] on host[12]'
hosts_down
wait
goes_on

# A process that the kernel kills, as it does where memory runs out; its host is out of sight.
hosts_up $ranks 20mbit
start killed
work_await 60 has_checkpoint || fail "killed: no checkpoint"
for at in /proc/[0-9]*; do
    [ "$(readlink "$at/ns/net" 2>/dev/null)" = "$(readlink "/proc/$(hosts_pid 2)/ns/net")" ] &&
        [ "$(readlink "$at/exe" 2>/dev/null)" = "$(readlink -f "$TAGINE")" ] && kill -9 "${at#/proc/}"
done
work_await $((stall + margin)) all_left $ranks || fail "killed: not all have left: $(cat status.*)"
[ "$(cat status.1)" = 137 ] || fail "killed: the rank left with $(cat status.1)"
for rank in 0 2; do
    leaves $rank
    says $rank 'rank 1'
done
hosts_down
wait
goes_on

exit 0
