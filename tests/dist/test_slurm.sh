#!/bin/sh
# Ranks under Slurm, on two nodes: they train what one rank trains; copies that do not know of one another never
# happen; a job that is told to stop saves, goes back into the queue and on, bit for bit, and one that is cancelled
# leaves a checkpoint that goes on.
set -u
. "$TAGINE_SOURCE_DIR/tests/dist/hosts.sh"
. "$TAGINE_SOURCE_DIR/tests/dist/work.sh"
. "$TAGINE_SOURCE_DIR/tests/dist/slurm.sh"
slurm_need
work_begin
hosts_up 2
slurm_up 2
slurm srun --mpi=list 2>&1 | grep -qw pmix || hosts_skip "this Slurm has no PMIx"
PATH=$(dirname "$TAGINE"):$PATH
export PATH
steps=400 # more than a job under way does until it is told to stop

# Two ranks, one a node, are one rank.
work_alone 30 one || fail "one rank"
# shellcheck disable=SC2086
slurm timeout 60 srun -N2 -n2 --mpi=pmix tagine train $work_options --comm mpi --steps $steps --output whole >out 2>err ||
    fail "srun"
work_close one whole 1 30 1e-5 || fail "srun: two ranks are not one"
grep -q '"ranks": *2' whole/run.json || fail "srun: run.json does not tell two ranks"
for rank in 0 1; do
    grep -q "\"rank\":$rank,\"host\":\"host$((rank + 1))\"" whole/run.json || fail "srun: rank $rank is not on its node"
done

# Each copy on its own would do the whole work, into the same run.
# refused WORDS OPTION-OF-SRUN OPTIONS: by every copy, with code 2, and said once
refused() {
    rm -f status.*
    # shellcheck disable=SC2086,SC2016  # lists of words; the inner shell's words
    slurm timeout 60 srun -N2 -n2 "$2" sh -c 'tagine train "$@"; echo $? >status.$SLURM_PROCID' sh $work_options \
        --steps 3 --output refused $3 >out 2>err
    [ "$(cat status.0 status.1 | tr '\n' ' ')" = "2 2 " ] || fail "$2 $3: not refused by both: $(cat status.*)"
    [ "$(grep -c 'tagine train: ' err)" = 1 ] && grep -q "$1" err || fail "$2 $3: does not say '$1', and once"
    [ ! -e refused ] || fail "$2 $3: a folder was made"
}
refused 'started 2 processes (SLURM_STEP_NUM_TASKS).*add --comm mpi' --mpi=pmix ""
refused 'started 2 processes (SLURM_STEP_NUM_TASKS).*add --comm mpi' --mpi=none ""
refused 'started 2 processes (SLURM_STEP_NUM_TASKS).*srun --mpi=pmix' --mpi=none "--comm mpi"

# Jobs as users write them.
batch=$TAGINE_SOURCE_DIR/examples/train.sbatch
sed -n '/^[^#]/p; /^#SBATCH/p' "$batch" >lines
while read -r line; do
    grep -qxF "    $line" "$TAGINE_SOURCE_DIR/docs/PARALLEL.md" || fail "docs/PARALLEL.md has another script: $line"
done <lines
# submit RUN OPTIONS...: the job's number goes to $job
submit() {
    run=$1
    shift
    # shellcheck disable=SC2086
    job=$(slurm sbatch --parsable --nodes=2 --cpus-per-task=1 --time=10 --output="$run.out" "$batch" $work_options \
        --steps $steps --output "$run" "$@") || fail "$run: sbatch"
    fail_shows="$run.out"
}
is_under_way() { [ "$(work_losses "$run" 2>/dev/null | wc -l)" -ge 10 ]; }
has_state() { [ "$(slurm_state "$job")" = "$1" ]; }
comes_to() { await 60 has_state "$1" || fail "$run: its job is $(slurm_state "$job"), not $1"; }
saved() { readlink "$run/checkpoints/last"; }
# has_saved: every rank left with 143, and the last step is the checkpoint
has_saved() {
    grep -q '"exit":143' "$run/run.json" && [ "$(saved)" = "step-$(work_losses "$run" | wc -l)" ] || fail "$run: was not saved"
}
# goes_on FROM: to the end, and all steps are those of the run that was not interrupted, once
goes_on() {
    [ "${1#step-}" -lt $steps ] || fail "$run: it was not interrupted"
    comes_to COMPLETED
    grep -q "loaded .*$1" "$run/log/rank-1.log" || fail "$run: does not go on from $1"
    work_close whole "$run" 1 $steps 0 || fail "$run: not the steps of the unbroken run"
    [ "$(work_losses "$run" | wc -l)" = $steps ] || fail "$run: steps repeat, or are missing"
}

# Links that make steps slow, lest they be done before they are interrupted.
hosts_rate=20mbit
hosts_limit 1 eth0
hosts_limit 2 eth0

# What happens before a time limit: SIGTERM to the steps. All save, and the job is queued again.
submit requeued
await 60 is_under_way || fail "requeued: no steps"
slurm scancel --signal=TERM "$job" || fail "requeued: scancel"
comes_to PENDING
has_saved
requeued=$job

# Cancelled: SIGTERM to ranks, srun and the script, and SIGKILL when they have not ended after KillWait.
submit cancelled
await 60 is_under_way || fail "cancelled: no steps"
slurm scancel "$job" || fail "cancelled: scancel"
has_ended() { [ -z "$(slurm squeue --noheader --jobs "$job" 2>/dev/null)" ]; }
await 60 has_ended || fail "cancelled: its job is $(slurm_state "$job")"
has_saved

# Killed at once: what was saved before remains.
submit killed --checkpoint-steps 5
await 60 is_under_way || fail "killed: no steps"
slurm scancel --signal=KILL "$job.0" || fail "killed: scancel"
await 60 has_ended || fail "killed: its job is $(slurm_state "$job")"
[ -n "$(saved)" ] || fail "killed: nothing was saved"

for host in 1 2; do hosts_on $host tc qdisc del dev eth0 root; done
run=requeued job=$requeued
slurm scontrol update "JobId=$job" StartTime=now || fail "requeued: scontrol update"
goes_on "$(saved)"
for run in cancelled killed; do
    from=$(saved)
    submit $run
    goes_on "$from"
done
exit 0
