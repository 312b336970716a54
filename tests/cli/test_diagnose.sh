#!/bin/sh
# tagine diagnose, and what a job does with findings while it runs: says them once, posts them, stops.
set -u
[ -x "${TAGINE:-}" ] || { echo "skipped: no program"; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
fail() { echo "FAILED: $*"; exit 1; }

"$TAGINE" data synth --output photos --classes 3 --per-class 16 --seed 1 --img-size 32 -q || fail "photos"
train() {
    "$TAGINE" train --data photos --img-size 16 --patch-size 8 --embed-dim 16 --depth 1 --num-heads 1 \
        --batch-size 8 --threads 1 --workers 1 --no-amp "$@"
}

# After a job there is a findings.json, without anybody asking, and diagnose shows the same.
train --epochs 6 --output a -q >out 2>&1 || { cat out; fail "a job"; }
grep -q '"rules":\[' a/findings.json || fail "no findings.json behind a job"
"$TAGINE" diagnose a >text || fail "diagnose"
grep -q '^a: 36 steps' text || { cat text; fail "what was looked at"; }
grep -q 'For the record' text || fail "the table of the step"
awk 'length($0) > 80 { bad = 1 } END { exit bad }' text || { cat text; fail "wider than 80"; }
[ "$("$TAGINE" diagnose a --json | wc -l)" = 1 ] || fail "--json is one document"
"$TAGINE" diagnose a --rule StepOutlier --json | grep -o '"rule":"[A-Za-z]*","asks"' | grep -c . | grep -qx 1 || fail "--rule"
rm a/findings.json
"$TAGINE" diagnose a --write >/dev/null && [ -s a/findings.json ] || fail "--write"

# A folder with next to nothing in it: each rule says what it lacks, and nothing fails.
mkdir bare && printf '{"command":"train","end":null}\n' >bare/run.json
"$TAGINE" diagnose bare >text || fail "a bare run"
grep -q 'Not looked for' text || fail "what is lacking"

# Wrong usage and bad input.
code() { want=$1; shift; "$@" >out 2>&1; got=$?; [ $got = "$want" ] || { cat out; fail "$* ended with $got, not $want"; }; }
code 2 "$TAGINE" diagnose
code 2 "$TAGINE" diagnose a --rule StepOutlyer
grep -q 'StepOutlier' out || fail "the nearest rule"
code 2 "$TAGINE" diagnose a --limits StepOutlier.stddev=0
code 3 "$TAGINE" diagnose nowhere
code 2 train --epochs 1 --output no --on-finding Nothing=stop
code 2 train --epochs 1 --output no --diagnose-limits StepOutlier=4
code 2 train --epochs 1 --output no --diagnose-interval 0 --on-finding StepOutlier=stop
[ ! -e no ] || fail "wrong usage made a folder"

# Off is off.
train --epochs 4 --output off --diagnose-interval 0 -q >out 2>&1 || fail "a job without"
[ ! -e off/findings.json ] || fail "--diagnose-interval 0 diagnoses"

# A finding that stops: saved, said in run.json, and the job can go on.
train --epochs 100000 --output stop --diagnose-interval 0.2 -q --on-finding OverallFrameworkMetrics=stop >out 2>&1
[ $? = 143 ] || { cat out; fail "not stopped by a finding"; }
grep -q 'on-finding OverallFrameworkMetrics=stop' out || fail "why it stopped"
grep -q '"exit":143,"failure":"--on-finding OverallFrameworkMetrics=stop' stop/run.json || fail "run.json"
[ -e stop/checkpoints/last/state.json ] || fail "nothing saved"

# A message: to the URL of a file, once, as JSON, through standard input alone; a stand-in for curl keeps it.
mkdir bin
cat >bin/curl <<'END'
#!/bin/sh
echo "$*" >>"$KEEP/arguments"
cat >>"$KEEP/configuration"
END
chmod +x bin/curl
printf 'http://127.0.0.1:9/secret\n' >url
KEEP=$work PATH=$work/bin:$PATH train --epochs 5 --output post --diagnose-interval 0.1 -q \
    --on-finding "OverallFrameworkMetrics=webhook:@$work/url" >out 2>&1 || { cat out; fail "a job with a message"; }
[ "$(grep -c '^url = "http://127.0.0.1:9/secret"' configuration)" = 1 ] || fail "the message, once"
grep -q '^data-binary = "{\\"run\\":\\"post\\",\\"rule\\":\\"OverallFrameworkMetrics\\"' configuration || fail "its body"
grep -q secret arguments && fail "the URL is in the list of processes"
grep -rq secret post --include=job.yaml --include='*.log' && fail "the URL is in the records"

# curl that fails costs a warning, and no training.
printf '#!/bin/sh\ncat >/dev/null\nexit 7\n' >bin/curl
PATH=$work/bin:$PATH train --epochs 5 --output lost --diagnose-interval 0.1 \
    --on-finding OverallFrameworkMetrics=webhook:http://127.0.0.1:9/secret >out 2>&1 || { cat out; fail "a lost message failed the job"; }
[ "$(grep -c 'curl ended with 7' out)" = 1 ] || { cat out; fail "a lost message is said once"; }
exit 0
