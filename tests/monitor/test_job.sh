#!/bin/sh
# The monitor of a job, from outside: on by itself, set while it runs, deaf to clocks, and never in the job's way; and the
# command that watches this machine alone, exports and imports.
set -u
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
fail() {
    echo "FAILED: $*"
    exit 1
}
samples() { grep -c '^{"time"' "$1"; }
common="--data photos --img-size 16 --patch-size 8 --embed-dim 32 --depth 1 --num-heads 2 --batch-size 8 --epochs 1000000
    --eval-interval 0 --warmup-epochs 0 --threads 1 --workers 1"
# shellcheck disable=SC2086  # lists of words
train() { "$TAGINE" train $common "$@"; }
"$TAGINE" data synth --output photos --classes 2 --per-class 12 --seed 1 --img-size 16 >out 2>&1 || fail "no photos"

# A clock that jumps two hours to and fro at each look, for all but the monotonic one.
cat >jump.c <<'END'
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *out)
{
    static int looks;
    int rc = (int)syscall(SYS_clock_gettime, clock, out);
    if (clock == CLOCK_REALTIME)
        out->tv_sec += looks++ % 2 ? 7200 : -7200;
    return rc;
}
END
case ${TAGINE_SANITIZE:-} in
'') ${CC:-cc} -shared -fPIC -o jump.so jump.c || fail "no library for the clock" ;;
*) : >jump.so ;;
esac

# On without being asked; then asked for ten times as many while the job goes; then for none.
# shellcheck disable=SC2086
"$TAGINE" train $common --output run >out 2>log &
job=$!
. "$TAGINE_SOURCE_DIR/tests/support/await.sh"
i=0
while [ ! -s run/metrics.jsonl ] && [ $i -lt 300 ]; do
    sleep 0.1
    i=$((i + 1))
done
"$TAGINE" monitor run --interval 100 2>/dev/null || fail "the interval was not taken"
sleep 2.2
file=$(echo run/system/*.jsonl)
[ -s "$file" ] || fail "no samples in $file"
"$TAGINE" monitor run --interval 0 2>/dev/null || fail "it cannot be switched off"
sleep 1.3
before=$(samples "$file")
sleep 0.4
after=$(samples "$file")
kill -TERM $job
wait $job
[ "$before" -ge 9 ] || fail "only $before samples in 2.2 s of 100 ms"
[ "$before" -eq "$after" ] || fail "$before samples, then $after: it was not switched off"
grep -q '^monitor: .* % of a core, ' log || fail "the log does not say what it cost"
head -n 1 "$file" | grep -q '"metrics":\["running"' || fail "no head"
grep -q '"compute_threads"' "$file" || fail "no roles"
# A job that starts anew has not been asked anything.
# shellcheck disable=SC2086
"$TAGINE" train $common --output run --resume auto >out 2>>log &
job=$!
sleep 1.5
kill -TERM $job
wait $job
[ "$(grep -c '^{"host"' "$file")" -eq 2 ] || fail "a resumed job does not begin with a head"
[ "$(samples "$file")" -gt "$after" ] || fail "what an earlier attempt was asked holds for a later one"

# Off, and out of range.
train --output off --monitor-interval 0 --steps 3 >out 2>&1 || fail "a job without a monitor"
[ -z "$(ls off/system)" ] || fail "samples though there is no monitor"
train --output off --monitor-interval 50 >out 2>&1
[ $? -eq 2 ] || fail "50 ms were taken"

# The wall clock jumps: intervals and durations are as without.
if [ -s jump.so ]; then
    LD_PRELOAD=$PWD/jump.so "$TAGINE" monitor --duration 1.1 --interval 100 --output jump --quiet >lines ||
        fail "no samples under a clock that jumps"
    sed -n 's/.*"seconds":\([0-9.e-]*\),.*/\1/p' jump/system/*.jsonl |
        awk '$1 <= 0 || $1 > 1 { bad++ } END { exit bad > 0 || NR < 5 }' || fail "intervals follow the wall clock"
    sed -n 's/{"time":\([0-9.]*\),.*/\1/p' jump/system/*.jsonl |
        awk 'NR > 1 && ($1 <= last || $1 - last > 2) { bad++ } { last = $1 } END { exit bad > 0 }' ||
        fail "labels follow the wall clock"
fi

# A disk that takes nothing: one warning, and the job ends well.
mkdir full && : >full/system # a file where the folder has to be
"$TAGINE" monitor --duration 0.7 --interval 100 --output full >/dev/null 2>warnings || fail "a full disk ended it"
[ "$(grep -c 'lost samples' warnings)" -eq 1 ] || fail "$(grep -c 'lost samples' warnings) warnings"

# Stopped for a second: one long sample.
"$TAGINE" monitor --interval 100 --duration 3 --output stopped --quiet >/dev/null &
job=$!
sleep 0.5
kill -STOP $job
sleep 1
kill -CONT $job
wait $job
sed -n 's/.*"seconds":\([0-9.e-]*\),.*/\1/p' stopped/system/*.jsonl | awk '$1 > 0.9 { long++ } { sum += $1 }
    END { exit !(long == 1 && NR < 26 && sum > 2) }' || fail "a stopped monitor catches up"

# Rows of the other monitor, and back.
"$TAGINE" monitor --export rows run >told || fail "no export"
row=$(cat rows/system/incremental/*/*.json | head -n 1)
case $row in
'{"Type":"cpu","Name":"cpu0","Dimension":"CPUUtilization","Value":'*'"NodeId":"'*'"Timestamp":'*) ;;
*) fail "exported: $row" ;;
esac
"$TAGINE" monitor --import rows --output back >told || fail "no import"
[ "$(samples "$(echo back/system/*.jsonl)")" -eq "$(samples "$file")" ] || fail "not as many samples came back"
"$TAGINE" monitor --import rows --output back 2>/dev/null
[ $? -eq 2 ] || fail "samples were mixed with others"
echo ok
