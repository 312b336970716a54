#!/bin/sh
# A host that is cut off, a process that the kernel kills for memory: every other rank leaves in time,
# with exit code 5, and names who, where and what was awaited; the last checkpoint goes on alone as if nothing
# had been.
set -u
. "$TAGINE_SOURCE_DIR/tests/dist/hosts.sh"
. "$TAGINE_SOURCE_DIR/tests/dist/work.sh"
work_begin
ranks=3
stall=5   # --stall-seconds of work_options
margin=20 # for a busy machine; far below the patience of 20 stall times, which a checkpoint is given

# Two checkpoints, and steps after the last of them.
is_under_way() { [ "$(work_losses "$run" 2>/dev/null | wc -l)" -ge 25 ]; }
all_left() { [ "$(cat status.* 2>/dev/null | wc -l)" = "$1" ]; }

# start RUN OPTIONS...: three ranks on slow links, so that most of a step is exchange
start() {
    run=$1
    shift
    rm -f status.* out.* err.*
    # shellcheck disable=SC2086,SC2154
    hosts_mpirun openmpi $ranks sh -c "$work_rank" $ranks $work_options --comm mpi --zero 1 --output "$run" \
        --checkpoint-steps 10 --checkpoint-hist 3 "$@" >out 2>err &
}

# The line with which a rank ended: on the terminal, or in its log, where the first rank speaks for all.
last_word() { { sed -n '/tagine train: /p' "err.$1"; sed -n '/ error /p' "$run/log/rank-$1.log"; } | tail -n 1; }
# says RANK TEXT
says() { last_word "$1" | grep -q -e "$2" || fail "$run: rank $1 does not say '$2', but '$(last_word "$1")'"; }
# leaves RANK: with the exit code of a peer's failure
leaves() { [ "$(cat "status.$1")" = 5 ] || fail "$run: rank $1 left with $(cat "status.$1"), not 5: $(last_word "$1")"; }

# The last checkpoint goes on with one rank as an older one does, which was made when nothing had happened yet. Both
# are few steps from where they were the same: roundings of other numbers of ranks grow tenfold in some 60 steps.
goes_on() {
    at=$(readlink "$run/checkpoints/last")
    at=${at#step-}
    older=$run/checkpoints/step-$((at - 10))
    work_alone $((at + 10)) "older-$run" --resume "$older" || fail "$run: $older does not go on"
    work_alone $((at + 10)) "$run" --resume auto || fail "$run: does not go on"
    work_close "older-$run" "$run" $((at + 1)) $((at + 10)) 1e-5 || fail "$run: other losses after the checkpoint"
    [ "$(work_losses "$run" | wc -l)" = $((at + 10)) ] || fail "$run: steps repeat, or are missing"
}

# The cable of host 3, pulled while gradients are under way.
hosts_up $ranks 20mbit
start cut
await 120 is_under_way || fail "cut: no steps"
begin=$(date +%s)
hosts_cut 3
await $((stall + margin)) all_left $ranks || fail "cut: not all have left: $(cat status.*)"
echo "cut: all ranks left within $(($(date +%s) - begin)) s"
# Whichever of the two sees it first says it; the other one sees the same, or hears it.
for rank in 0 1; do
    leaves $rank
    says $rank 'nothing has moved for [0-9.]* s in the .* of [0-9.]* \(MiB\|bytes\)'
    says $rank 'rank 2 on host3 (process [0-9]*, [0-9]* bytes to come'
done
leaves 2
says 2 'rank [01] on host[12]'
hosts_down
wait
goes_on

# A process that the kernel kills, as it does where memory runs out; its host is out of sight.
find_process() {
    for at in $(find /proc/[0-9]*/exe -maxdepth 0 -lname "$program" 2>/dev/null); do
        victim=${at%/exe}
        [ "$(readlink "$victim/ns/net" 2>/dev/null)" = "$network" ] && victim=${victim#/proc/} && return 0
    done
    return 1
}
hosts_up $ranks 20mbit
start killed
program=$(readlink -f "$TAGINE") network=$(readlink "/proc/$(hosts_pid 2)/ns/net")
await 60 find_process || fail "killed: no process on host 2"
await 120 is_under_way || fail "killed: no steps"
kill -9 "$victim"
await $((stall + margin)) all_left $ranks || fail "killed: not all have left: $(cat status.*)"
[ "$(cat status.1)" = 137 ] || fail "killed: the rank left with $(cat status.1)"
for rank in 0 2; do
    leaves $rank
    says $rank 'rank 1 on host2 (process [0-9]*'
done
hosts_down
wait
goes_on

exit 0
