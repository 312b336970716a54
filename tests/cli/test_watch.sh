#!/bin/sh
# watch: a run that has ended, one that goes, one that was killed; on a terminal and where there is none; the terminal comes
# back as it was.
set -u
export OMP_WAIT_POLICY=passive # more tests may share these cores
[ -n "${TAGINE:-}" ] || { echo "skipped: the program was not built"; exit 77; }
. "$TAGINE_SOURCE_DIR/tests/support/await.sh"
work=$(mktemp -d) || exit 1
job=
trap '[ -z "$job" ] || kill -9 $job 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit 1
faults=0
fault() { echo "FAULT: $*"; faults=$((faults + 1)); }
export LC_ALL=C

"$TAGINE" data synth --output data --classes 2 --per-class 12 --img-size 32 --quiet >/dev/null || fault "synth"
small="--data data --img-size 16 --patch-size 8 --embed-dim 32 --depth 1 --num-heads 2 --batch-size 8 --warmup-epochs 0"
# shellcheck disable=SC2086
"$TAGINE" train $small --epochs 3 --output ended --quiet >/dev/null || fault "train"

"$TAGINE" watch ended --once >out 2>err || fault "--once: $(cat err)"
for part in "train on" "done" "step 9/9" "epoch 3/3" "loss " "top-1 " "images/s " "time " "memory "; do
    grep -qF -- "$part" out || fault "no \"$part\" in: $(cat out)"
done
awk 'length > 80' out | grep -q . && fault "wider than 80: $(cat out)"
tr -d '\n' <out | LC_ALL=C grep -q '[^ -~]' && fault "not ASCII: $(cat out)"
LC_ALL=C.UTF-8 "$TAGINE" watch --once ended | grep -q '█' || fault "no blocks in UTF-8"
"$TAGINE" watch ended >again 2>&1 && grep -q done again || fault "of a run that has ended: $(cat again)"
"$TAGINE" watch nowhere >out 2>err
[ $? -eq 3 ] || fault "no run is not exit code 3: $(cat err)"
"$TAGINE" watch data --once >out 2>err
[ $? -eq 3 ] && grep -q "no run directory" err || fault "no run directory: $(cat err)"

# one that goes: lines where there is no terminal, until it ends
has_steps() { [ -s "$1/metrics.jsonl" ] && [ "$(wc -l <"$1/metrics.jsonl")" -gt 5 ]; }
# shellcheck disable=SC2086
"$TAGINE" train $small --epochs 100000 --output goes --quiet >/dev/null 2>&1 &
job=$!
await 20 has_steps goes || fault "no steps"
"$TAGINE" watch goes --interval 0.1 >lines 2>err &
watch=$!
two_lines() { [ "$(grep -c '^epoch .* loss .* images/s .* left$' lines)" -ge 2 ]; }
await 20 two_lines || fault "lines: $(cat lines err)"
grep -q "$(printf '\033')" lines && fault "escape sequences where there is no terminal"

# a terminal: whoever leaves it, gives it back
if script -qec true screen </dev/null >/dev/null 2>&1; then
    # q, ^C and two signals; the job behind it goes on
    for how in q interrupt TERM QUIT; do
        cat >on_terminal.sh <<T
stty cols 70 rows 20
before=\$(stty -g)
if [ $how = q ] || [ $how = interrupt ]; then
    "$TAGINE" watch goes --interval 0.1
else
    "$TAGINE" watch goes --interval 0.1 </dev/tty &
    sleep 0.5
    kill -$how \$!
    wait \$!
fi
[ \$? -eq 0 ] || echo "exit code"
[ "\$before" = "\$(stty -g)" ] || echo "settings changed"
T
        case $how in
        q) (sleep 0.7; printf q) | script -qec "sh on_terminal.sh" screen >/dev/null 2>&1 ;;
        interrupt) (sleep 0.7; printf '\003') | script -qec "sh on_terminal.sh" screen >/dev/null 2>&1 ;;
        *) (sleep 2) | script -qec "sh on_terminal.sh" screen >/dev/null 2>&1 ;;
        esac
        grep -q "exit code$\|settings changed" screen && fault "$how: $(tail -n 3 screen)"
        escape=$(printf '\033')
        grep -q "${escape}\[?1049h${escape}\[?25l" screen || fault "$how: the other screen was not taken"
        grep -q "${escape}\[?25h${escape}\[?1049l" screen || fault "$how: the screen was not given back"
        grep -q "step [0-9]*/" screen || fault "$how: nothing was shown"
    done
else
    echo "left out: no terminal can be made here"
fi

kill -0 $watch 2>/dev/null || fault "watch ended before the job"
kill -TERM $job
wait $job
job=
gone() { ! kill -0 $watch 2>/dev/null; }
await 10 gone || fault "watch did not end with the job"
wait $watch || fault "exit code of a watch whose job was stopped"
grep -q "stopped (exit code 143)" lines || fault "the end is not shown: $(tail -n 5 lines)"

# one that was killed says so; its files are made old
# shellcheck disable=SC2086
"$TAGINE" train $small --epochs 100000 --output killed --quiet >/dev/null 2>&1 &
job=$!
await 20 has_steps killed || fault "no steps"
kill -9 $job
wait $job 2>/dev/null
job=
find killed -type f -exec touch -d '1 hour ago' {} +
"$TAGINE" watch killed >out 2>err || fault "killed: $(cat err)"
grep -q "no end, and no process" out || fault "killed: $(cat out)"

[ "$faults" -eq 0 ] || { echo "$faults faults"; exit 1; }
