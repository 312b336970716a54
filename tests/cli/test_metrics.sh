#!/bin/sh
# Records for other tools: what a job writes while it runs and after a resume, what is made of a run afterwards; a dashboard
# that cannot be written costs nothing but itself.
set -u
export OMP_WAIT_POLICY=passive # more tests may share these cores
[ -n "${TAGINE:-}" ] || { echo "skipped: the program was not built"; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
faults=0
fault() { echo "FAULT: $*"; faults=$((faults + 1)); }

"$TAGINE" data synth --output data --classes 2 --per-class 12 --img-size 32 --quiet >/dev/null || fault "synth"
small="--data data --img-size 16 --patch-size 8 --embed-dim 32 --depth 1 --num-heads 2 --batch-size 8 --warmup-epochs 0"
# shellcheck disable=SC2086
"$TAGINE" train $small --epochs 2 --output run --quiet --tensorboard --prometheus job.prom >/dev/null 2>err || fault "train: $(cat err)"
grep -q '^tagine_step{run="run"} 6$' job.prom || fault "step: $(cat job.prom)"
grep -q '^tagine_run_running{run="run"} 0$' job.prom || fault "running: $(cat job.prom)"
[ ! -e job.prom.new ] || fault "a left-over"
# values NAME: how many records of it the event files hold (a tag's length stands before it)
values() { cat run/tensorboard/events.out.tfevents.* | grep -ao "$1" | wc -l; }
[ "$(values loss/total)" -eq 6 ] && [ "$(values val/top1)" -eq 2 ] || fault "records: $(values loss/total) $(values val/top1)"
"$TAGINE" train --config run/job.yaml --output run --resume auto --epochs 3 --quiet >/dev/null 2>err || fault "resume: $(cat err)"
grep -q "prometheus\|tensorboard" err && fault "of a resume: $(cat err)"
[ "$(find run/tensorboard -type f | wc -l)" -eq 2 ] || fault "a resumed run writes a file of its own"
[ "$(values loss/total)" -eq 9 ] && [ "$(values val/top1)" -eq 3 ] || fault "records behind a resume: $(values loss/total)"

# what cannot be written is a warning
# shellcheck disable=SC2086
"$TAGINE" train $small --epochs 1 --output other --prometheus /nowhere/job.prom >out 2>err || fault "a dashboard ended the job: $(cat err)"
[ "$(grep -c 'warning: Prometheus: nothing more is written: cannot write /nowhere/job.prom' err)" -eq 1 ] || fault "warning: $(cat err)"

"$TAGINE" metrics run >out 2>err || fault "prometheus: $(cat err)"
grep -q '^# TYPE tagine_loss gauge$' out && grep -q '^tagine_step{run="run"} 9$' out || fault "prometheus: $(cat out)"
"$TAGINE" metrics run --output again.prom --interval 0.2 >out 2>err || fault "--interval of an ended run: $(cat err)"
[ -s again.prom ] && [ ! -s out ] || fault "file: $(cat out)"
"$TAGINE" metrics run --format csv >table 2>err || fault "csv: $(cat err)"
[ "$(wc -l <table)" -eq 10 ] || fault "lines: $(cat table)"
awk -F, 'NR == 1 { n = NF } NF != n || n != 22 { exit 1 }
    NR > 1 && (($20 != "") != ((NR - 1) % 3 == 0)) { exit 1 }' table || fault "cells: $(cat table)"
"$TAGINE" metrics run --format csv --output table.csv && cmp -s table table.csv || fault "csv into a file"
"$TAGINE" metrics run --format tensorboard --output events/run 2>err || fault "tensorboard: $(cat err)"
[ "$(cat events/run/events.out.tfevents.* | grep -ao loss/total | wc -l)" -eq 9 ] || fault "event file"

# refuse CODE PART ARGUMENT...
refuse() {
    code=$1 part=$2
    shift 2
    "$TAGINE" metrics "$@" >out 2>err
    [ $? -eq "$code" ] || fault "metrics $*: not exit code $code: $(cat out err)"
    grep -qF -- "$part" err || fault "metrics $*: no '$part' in: $(cat err)"
}
refuse 2 "--output is missing" run --format tensorboard
refuse 2 "only for --format prometheus with --output FILE" run --interval 1
refuse 3 "nowhere" nowhere
refuse 3 "no run directory" data --format csv
refuse 4 "cannot write" run --output /nowhere/a.prom

[ "$faults" -eq 0 ] || { echo "$faults faults"; exit 1; }
