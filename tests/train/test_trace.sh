#!/bin/sh
# What a job leaves of where its time went: operations of every run, timelines of steps that were chosen or took too long,
# also when it is killed, and when it goes on.
set -eu
work=$(mktemp -d)
job=
trap '[ -z "$job" ] || kill -KILL "$job" 2>/dev/null || :; rm -rf "$work"' EXIT
cd "$work"
fail() { echo "FAILED: $*"; cat out err 2>/dev/null | tail -n 20; exit 1; }

"$TAGINE" data synth --output photos --classes 2 --per-class 24 --seed 1 --img-size 32 >/dev/null 2>&1
common="--data photos --img-size 32 --patch-size 8 --embed-dim 32 --depth 2 --num-heads 2 --batch-size 8 --threads 2
        --monitor-interval 0 --quiet"
# shellcheck disable=SC2086
train() { "$TAGINE" train $common "$@" >out 2>err; }

# All of the second epoch, steps 7 to 12: more batches than may lie ready, so that some are made while steps are traced.
train --epochs 2 --output run --trace-steps 6-12 || fail "a run"
file=run/trace/operations-rank-0.json
for key in '"name":"linear_forward","phase":"forward"' '"name":"attention_backward","phase":"backward"' \
    '"name":"adamw","phase":"optimizer"' '"name":"decode","phase":"loader"' '"name":"data","phase":"data"' '"steps":12,'; do
    grep -q "$key" $file || fail "no $key"
done
gzip -dc run/trace/rank-0.json.gz >trace || fail "no timeline"
[ "$(grep -c '"name":"ProfilerStep#[0-9]*"' trace)" = 7 ] || fail "chosen steps"
grep -q '"name":"block 1"' trace || fail "layers"
grep -q '"name":"transform".*"cat":"cpu_op"' trace || fail "the loader's work"

# goes on: sums go on as well, and the timeline of before is still there
train --epochs 4 --output run --resume auto --trace-steps 14-14 || fail "a resumed run"
grep -q '"first_step":1,"last_step":24,"steps":24,' $file || fail "sums over a resume"
gzip -dc run/trace/earlier/rank-0.json.gz | grep -q 'ProfilerStep#7"' || fail "the earlier timeline"
gzip -dc run/trace/rank-0.json.gz | grep -q 'ProfilerStep#14"' || fail "the later timeline"

# however many steps are asked for, the file stays below its budget, and says what is missing
train --epochs 200 --eval-interval 0 --output many --trace-budget 1 --trace-steps 1-1000000 || fail "many steps"
[ "$(wc -c <many/trace/rank-0.json.gz)" -le 1048576 ] || fail "a timeline beyond its budget"
gzip -dc many/trace/rank-0.json.gz | tail -n 2 | grep -q '"ph":"i","name":"[0-9]* events left out' || fail "no notice of the cut"

train --epochs 1 --output none --no-trace || fail "without"
[ -z "$(ls none/trace)" ] || fail "something recorded with --no-trace"

# A step that takes too long is kept, with the one before it and two after; the killed job has left it, and its sums
# shellcheck disable=SC2086
"$TAGINE" train $common --epochs 100000 --output slow --eval-interval 0 >out 2>err &
job=$!
wait_for() { # FILE PATTERN
    n=0
    until [ -e "$1" ] && grep -q "$2" "$1"; do
        n=$((n + 1))
        [ $n -lt 1200 ] || fail "waited for $2"
        sleep 0.05
    done
}
wait_for slow/metrics.jsonl '"step":100,'
n=0
until grep -q 'step [0-9]* took 0\.[4-9].* kept as a timeline' slow/log/rank-0.log; do # not soon after another one
    n=$((n + 1))
    [ $n -lt 20 ] || fail "no outlier seen"
    kill -STOP $job
    sleep 0.$((n < 6 ? 3 + n : 9))
    kill -CONT $job
    sleep 0.5
done
echo '{"trace_steps":3,"trace_request":1}' >asked && mv asked slow/control.json
wait_for slow/log/rank-0.log 'steps [0-9]* to [0-9]* are kept as timelines'
asked=$(sed -n 's/.*steps \([0-9]*\) to [0-9]* are kept.*/\1/p' slow/log/rank-0.log)
n=0
until [ -e slow/trace/operations-rank-0.json ] &&
    gzip -dc slow/trace/rank-0.json.gz 2>/dev/null | grep -q "\"ProfilerStep#$((asked + 2))\""; do
    n=$((n + 1))
    [ $n -lt 600 ] || fail "nothing written while it runs"
    sleep 0.1
done
kill -KILL $job
wait $job 2>/dev/null || :
job=
step=$(sed -n 's/.*step \([0-9]*\) took 0\.[4-9].*/\1/p' slow/log/rank-0.log | head -n 1)
gzip -dc slow/trace/rank-0.json.gz >trace || fail "the killed job's timeline is not whole"
tail -n 1 trace | grep -q '^\],"eventsLeftOut":[0-9]*}$' || fail "the killed job's timeline has no end"
for near in $((step - 1)) "$step" $((step + 1)) $((step + 2)); do
    grep -q "\"ProfilerStep#$near\"" trace || fail "step $near beside the slow one, $step"
done
for near in "$asked" $((asked + 1)); do
    grep -q "\"ProfilerStep#$near\"" trace || fail "step $near of those that were asked for"
done
grep -q '"adamw"' slow/trace/operations-rank-0.json || fail "the killed job's operations"
grep -q '"peak_flops_f32":null' slow/trace/operations-rank-0.json || fail "a peak that was not measured"
