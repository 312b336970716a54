#!/bin/sh
# profile: the ledger of real runs adds up to the wall time that a clock outside measures: of one that ended, one that was
# killed and resumed, one that was stopped, with several ranks; and runs whose records lack something.
set -u
export OMP_WAIT_POLICY=passive # more tests may share these cores
[ -n "${TAGINE:-}" ] || { echo "skipped: the program was not built"; exit 77; }
. "$TAGINE_SOURCE_DIR/tests/support/await.sh"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
faults=0
fault() { echo "FAULT: $*"; faults=$((faults + 1)); }
holds() { awk "BEGIN { exit !($1) }" || fault "$1 does not hold: $2"; }
clock() { date +%s.%N; }
# of KEY: the first number behind a key of `out`
of() { grep -o "\"$1\":[-0-9.e+][-0-9.e+]*" out | head -n 1 | sed 's/.*://'; }
profile() {
    "$TAGINE" profile "$@" >out 2>err || fault "profile $*: $(cat err)"
}
# adds_up RUN SECONDS: the rows are the total, the total is SECONDS, to ticks of the kernel's clock and what a loaded
# machine takes to start and wait for a process
adds_up() {
    profile "$1" --json
    sum=$(sed 's/.*"seconds":{//; s/}.*//; s/"[a-z_]*"://g; s/,/+/g' out)
    holds "($sum) - $(of total_s) < 1e-6 && ($sum) - $(of total_s) > -1e-6" "rows of $1 and the total"
    holds "$(of total_s) <= $2 + 0.02 && $(of total_s) > $2 - 0.25" "total of $1 and the clock"
    # these steps are of a few milliseconds, and the machine may be busy
    [ -n "${TAGINE_SANITIZE:-}" ] || holds "$(of other) < 0.2 * $(of total_s)" "the rest of $1: $(cat out)"
}
size="--data photos --img-size 32 --patch-size 8 --embed-dim 96 --depth 2 --num-heads 3 --batch-size 16 --threads 1 --workers 1"
train() { # shellcheck disable=SC2086
    "$TAGINE" train $size --quiet "$@" >/dev/null 2>err
}
# start ARGUMENT...: in the background, as process $pid
start() {
    # shellcheck disable=SC2086
    "$TAGINE" train $size --quiet "$@" >/dev/null 2>err &
    pid=$!
}
"$TAGINE" data synth --output photos --classes 4 --per-class 40 --img-size 64 --seed 2 --quiet >/dev/null || fault synth

# one that ends, with checkpoints and an evaluation of each epoch
before=$(clock)
train --epochs 3 --checkpoint-steps 4 --output whole || fault "train: $(cat err)"
after=$(clock)
adds_up whole "$after - $before"
holds "$(of start_up) > 0 && $(of evaluation) > 0 && $(of checkpoint) > 0 && $(of attempts) == 1" "rows of a whole run"
grep -q '"ended":true' out || fault "a run that ended: $(cat out)"
[ "$(grep -c '"what":"evaluation"' whole/spans.jsonl)" = 3 ] || fault "evaluations: $(cat whole/spans.jsonl)"
# the operations' steps are the steps, and phases and what is left add up to them
profile whole --json --by phase --top 100
sum=$(sed 's/{"operation"/\n&/g' out | sed -n 's/.*"in_steps":true.*"step_s":\([0-9.e-]*\),"call_s".*/+\1/p' | tr -d '\n')
rest=$(of rest_s)
step=$(sed 's/.*"operations":{//' out >a && sed -n 's/^[^{]*"step_s":\([0-9.e-]*\),"rest_s".*/\1/p' a)
holds "$step - ($rest $sum) < 1e-9 && $step - ($rest $sum) > -1e-9" "phases of a step: $(cat out)"
mean=$(sed -n 's/.*"t_step":{"mean":\([0-9.e-]*\).*/\1/p' out)
holds "$step < 1.02 * $mean && $step > 0.98 * $mean" "the operations' step and the steps' mean"
profile whole
grep -q 'together.* 100.0$' out || fault "the table: $(cat out)"
grep -q '^Steps: median .*, 90 % between .* images/s$' out && grep -q '^  backward .* ms ' out || fault "steps: $(cat out)"
grep -q '^Operations of a step of ' out && grep -q '^  in no operation: ' out || fault "operations: $(cat out)"
awk 'length > 80 { exit 1 }' out || fault "wider than 80 columns: $(cat out)"

# gone on with, killed, waited for, and resumed: the clock runs from the first start to the last end
before=$(clock)
train --epochs 100000 --eval-interval 100000 --output killed --steps 12 || fault "train: $(cat err)"
start --epochs 100000 --eval-interval 100000 --output killed --resume auto
has_steps() { [ -e killed/metrics.jsonl ] && [ "$(wc -l <killed/metrics.jsonl)" -gt "$1" ]; }
await 60 has_steps 25 || fault "no steps: $(cat err)"
profile killed
grep -q 'no end yet' out || fault "a run that lives: $(cat out)"
kill -9 $pid
wait $pid 2>/dev/null
sleep 0.5
reached=$(sed -n 's/^{"step":\([0-9]*\),.*/\1/p' killed/metrics.jsonl | tail -n 1)
train --epochs 100000 --eval-interval 100000 --output killed --resume auto --steps 60 || fault "resume: $(cat err)"
after=$(clock)
adds_up killed "$after - $before"
holds "$(of idle) >= 0.45 && $(of attempts) == 3 && $(of killed) == 1" "a killed run: $(cat out)"
from=$(sed -n 's/.*"attempt":3,"what":"attempt".*"step":\([0-9]*\)}/\1/p' killed/spans.jsonl)
holds "$(of dropped_steps) == $reached - $from && $(of steps) == 60" "steps that are done again: $(cat out)"

# stopped by a signal: its end is there; gone on with, killed before a step and started anew
start --epochs 100000 --eval-interval 100000 --output stopped
has_begun() { [ -s stopped/metrics.jsonl ]; }
await 60 has_begun || fault "no steps: $(cat err)"
kill -TERM $pid
wait $pid
[ $? = 143 ] || fault "a stopped run's exit code"
[ "$(tail -n 1 stopped/spans.jsonl | sed 's/.*"what":"\([a-z]*\)".*/\1/')" = end ] || fault "the end: $(cat stopped/spans.jsonl)"

# fails: its end is there as well
mkdir -p bad/train/a bad/train/b && echo none >bad/train/a/1.jpg && echo none >bad/train/b/1.jpg
"$TAGINE" train --data bad --img-size 32 --patch-size 8 --embed-dim 32 --depth 1 --num-heads 1 --batch-size 2 --epochs 1 --threads 1 \
    --quiet --output failed >/dev/null 2>err && fault "photos that cannot be read were trained on"
grep -q '"what":"end"' failed/spans.jsonl || fault "the end of a failed run: $(cat failed/spans.jsonl)"
profile failed
grep -q 'has no steps' out && grep -q '^failed: ' out || fault "a run without steps: $(cat out)"

# a copy says the same; records of an older program have neither spans nor moments
cp -r killed copy && mv copy elsewhere
profile killed --json && sed 's/"run":"[^"]*"//' out >a
profile elsewhere --json && sed 's/"run":"[^"]*"//' out >b
cmp -s a b || fault "a copy differs: $(cat a b)"
rm elsewhere/spans.jsonl
sed -i 's/,"time":[0-9.]*//' elsewhere/metrics.jsonl
profile elsewhere
grep -q 'spans.jsonl is missing' out || fault "an old run: $(cat out)"
grep -q 'together.* 100.0$' out || fault "an old run: $(cat out)"

"$TAGINE" profile photos >out 2>err
[ $? = 3 ] && grep -q 'no run directory' err || fault "a folder that is no run: $(cat err)"
"$TAGINE" profile >out 2>err
[ $? = 2 ] || fault "no argument: $(cat err)"

# Two ranks: their waits are named.
module=$(dirname "$TAGINE")/tagine-comm-openmpi.so
if [ -z "${TAGINE_SANITIZE:-}" ] && [ -f "$module" ] && command -v mpirun.openmpi >/dev/null; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
    before=$(clock)
    # shellcheck disable=SC2086
    mpirun.openmpi -np 2 "$TAGINE" train --comm mpi $size --epochs 4 --output ranks >/dev/null 2>err || fault "ranks: $(cat err)"
    profile ranks --json
    holds "$(of exchange) + $(of slower_ranks) > 0 && $(of other) < 0.1 * $(of total_s)" "ranks: $(cat out)"
    holds "$(of total_s) < $(clock) - $before" "wall time of ranks"

    # a rank that is paused again and again makes the others wait, and no slow backward of theirs
    # shellcheck disable=SC2086
    mpirun.openmpi -np 2 "$TAGINE" train --comm mpi $size --img-size 64 --embed-dim 192 --depth 4 --batch-size 4 --epochs 100000 \
        --eval-interval 100000 --output slow >/dev/null 2>err &
    launcher=$!
    rank_process() { # the log that it holds open says which one it is
        rank_fd=$(find /proc/[0-9]*/fd -maxdepth 1 -lname "$work/slow/log/rank-$1.log" 2>/dev/null | head -n 1)
        rank_fd=${rank_fd#/proc/}
        echo "${rank_fd%%/*}"
    }
    has_ranks() { [ -e slow/ranks.jsonl ] && [ "$(wc -l <slow/ranks.jsonl)" -gt 10 ]; }
    await 60 has_ranks || fault "no steps of ranks: $(cat err)"
    paused=$(rank_process 1)
    for i in 1 2 3 4 5; do
        kill -STOP "$paused" && sleep 0.3
        kill -CONT "$paused" && sleep 0.05
    done
    kill -TERM "$(rank_process 0)"
    wait $launcher
    profile slow --json
    # a pause may fall into its own waiting, or into a save
    holds "$(of slower_ranks) > 0.25" "waiting for a rank that was paused for 1.5 seconds: $(cat out)"
    profile slow
    grep -q '^  waiting for slower ranks' out && grep -q '^Exchange between 2 ranks' out || fault "$(cat out)"
    awk 'length > 80 { exit 1 }' out || fault "wider than 80 columns: $(cat out)"
fi

[ $faults -eq 0 ] || exit 1
echo "ok"
