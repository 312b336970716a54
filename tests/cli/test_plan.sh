#!/bin/sh
# plan: memory of a rank; step time, hours and cost of many ranks against closed forms; a speed-up explained; times
# from a run, a link from bench comm; lists and options that make no sense are refused.
set -u
[ -x "${TAGINE:-}" ] || { echo "skipped: no program"; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
faults=0
fault() { echo "FAULT: $*"; faults=$((faults + 1)); }
# line N KEY: the number behind a key in line N of `out`
line() { sed -n "${1}s/.*\"$2\":\([-0-9.e+a-z]*\).*/\1/p" out; }
holds() { awk "BEGIN { exit !($1) }" || fault "$1 does not hold: $2"; }
close() { holds "($1) / ($2) - 1 < 1e-6 && ($1) / ($2) - 1 > -1e-6" "$3"; }
# plan ARGUMENT...: JSON into `out`
plan() { "$TAGINE" plan --json --quiet "$@" >out 2>err || fault "plan $*: $(cat err)"; }
refuse() {
    text=$1
    shift
    "$TAGINE" plan "$@" >out 2>err && fault "not refused: $*"
    grep -qF -- "$text" err || fault "no '$text' in: $(cat err)"
}

# ViT-Ti/16: 22,869,696 bytes of gradients in one bucket, which is final when backward ends but for what comes behind
# it; nothing else to hide behind: t = compute + 2 ((N-1)/N bytes/bandwidth + latency) + meeting
plan --ranks 1,2,8 --step-seconds 2 --bucket-mib 1000 --link-gbit 1 --latency-us 100 --message-us 0 --images 36000 \
    --epochs 10 --price-per-hour 3
[ "$(wc -l <out)" = 4 ] || fault "lines: $(cat out)"
bytes=22869696
first=$((bytes))
for row in "3 2" "4 8"; do
    # shellcheck disable=SC2086
    set -- $row
    [ "$(line "$1" ranks)" = "$2" ] || fault "ranks of line $1"
    exchange="2 * (($2 - 1) / $2 * $first / 1.25e8 + 1e-4) + ($2 - 1) * 256 / 1.25e8 + 1e-4"
    close "$(line "$1" exposed_s)" "$exchange" "exposed on $2"
    close "$(line "$1" step_s)" "2 + $exchange" "step on $2"
    close "$(line "$1" efficiency)" "2 / (2 + $exchange)" "efficiency on $2"
    close "$(line "$1" hours)" "36000 * 10 / (128 * $2) * (2 + $exchange) / 3600" "hours on $2"
    close "$(line "$1" cost)" "$(line "$1" hours) * 3 * $2" "cost on $2"
done
holds "$(line 2 efficiency) == 1 && $(line 2 exposed_s) == 0" "one rank"

# Smaller buckets hide, shards and a teacher hide the way back, more ranks a host share its link.
plan --ranks 4 --step-seconds 2 --bucket-mib 1000 --link-gbit 1
whole=$(line 2 exposed_s)
plan --ranks 4 --step-seconds 2 --bucket-mib 1 --link-gbit 1
pieces=$(line 2 exposed_s)
holds "$pieces < $whole / 4" "overlap"
plan --ranks 4 --step-seconds 2 --bucket-mib 1000 --link-gbit 1 --zero 1 --teacher vit_base_patch16_224
holds "$(line 2 exposed_s) < 0.6 * $whole" "shards"
before=$(line 2 wire_s)
plan --ranks 4 --step-seconds 2 --bucket-mib 1000 --link-gbit 1 --zero 1 --amp
holds "($(line 2 wire_s) / $before / 0.75 - 1) ^ 2 < 1e-8" "parameters as bfloat16"
plan --ranks 4 --step-seconds 2 --bucket-mib 1 --link-gbit 1 --ranks-per-host 2
holds "$(line 2 wire_s) > 1.3 * 2 * 3 / 4 * $bytes / 1.25e8" "a shared link"

# Messages take their core time from computing, unless a core does not compute: buckets of 3 and 12 MiB go while the rest
# of backward is computed, which misses all of their core time; the last one goes when backward has ended.
core="--ranks 2 --step-seconds 2 --bucket-mib 12 --link-gbit 10 --message-us 0"
plan $core
before=$(line 2 step_s)
holds "$(line 2 core_s) == 0" "no core time"
plan $core --core-ns-per-kib 100000 --link-gbit 0.1
# 1.26 s of the link, 1.54 s of the core, which is what is slow
close "$(line 2 core_s)" "15 * 1024 * 1e-4" "a core slower than the link"
plan $core --core-ns-per-kib 10000
close "$(line 2 core_s)" "15 * 1024 * 1e-5" "core time by KiB"
holds "$(line 2 step_s) > $before + 0.99 * $(line 2 core_s)" "and the step is longer by it"
plan $core --core-ns-per-kib 10000 --ranks-per-core 2
close "$(line 2 core_s)" "2 * 15 * 1024 * 1e-5" "two ranks on a core"
plan $core --core-ns-per-kib 10000 --spare-cores 1
holds "$(line 2 core_s) == 0" "a spare core"
plan $core --message-us 1000
close "$(line 2 core_s)" "2 * (26 + 103) * 1e-3" "core time of 7.5 MiB in messages of 60 KiB, out and back"

plan --ranks 64 --step-seconds 2 --spread 1
holds "($(line 2 slowest_s) / 2 / 0.02344 - 1) ^ 2 < 1e-4" "the slowest of 64" # expected largest of 64 normal deviates
plan --ranks 64 --step-seconds 2 --exchange ring --bucket-mib 1000 --latency-us 1000
holds "$(line 2 exposed_s) > 2 * 63 * 1e-3" "a ring's latencies"

# Memory: the state divided, activations not.
plan --ranks 1 --model-ema
state=$(line 1 moments_bytes) average=$(line 1 average_bytes) activations=$(line 1 activations_bytes)
for n in 2 3 4; do
    plan --ranks $n --zero 1 --model-ema
    holds "($(line 1 moments_bytes) + $(line 1 average_bytes)) / ($state + $average) <= 1 / $n + 0.01" "state on $n"
    holds "$(line 1 activations_bytes) == $activations" "activations on $n"
done

# What was seen, explained: the parts multiply to the whole.
plan --ranks 2,32 --ranks-per-host 8 --link-gbit 100 --images 1.28e6 --batch-size 1024 --seen-hours 3.2,0.11
close "$(line 4 speedup_seen)" "3.2 / 0.11" "seen"
close "$(line 4 speedup_of_ranks) * $(line 4 speedup_of_rest)" "3.2 / 0.11" "parts"
close "$(line 2 hours)" 3.2 "calibrated"
holds "$(line 4 speedup_of_ranks) <= 16 && $(line 4 speedup_of_ranks) > 15" "ranks"

# From a run, brought to another batch; and the link from bench comm.
mkdir run
printf '{"ranks":2}\n' >run/run.json
for step in 1 2 3 4 5; do
    printf '{"step":%s,"epoch":0,"images":64,"loss":1,"t_step":1,"t_data":0,"t_teacher":0.5,"t_forward":1,"t_backward":2,"t_reduce":0.1,"t_optimizer":0.25,"t_other":0.125}\n' $step
done >run/metrics.jsonl
plan --run run --batch-size 64
close "$(line 2 step_s)" "2 * (0.5 + 1 + 2) + 0.25 + 0.125" "from a run"
"$TAGINE" data synth --output photos --classes 2 --per-class 4 --img-size 16 --quiet
"$TAGINE" train --data photos --img-size 16 --patch-size 8 --embed-dim 32 --depth 1 --num-heads 2 --batch-size 2 --steps 4 \
    --epochs 1 --output trained --quiet >out 2>&1 || fault "a run: $(cat out)"
plan --run trained
holds "$(line 1 parameters) < 1e5" "the model of the run"
plan --run trained --model vit_tiny_patch16_224
holds "$(line 1 parameters) > 5e6" "another model than the run's"
"$TAGINE" plan --run trained --ranks 1048576 >out || fault "text of a run"
grep -q '% [#.]* *[0-9]\{6,\}$' out || fault "images/s of many ranks: $(cat out)"
printf '%s\n' '{"collective":"meeting","bytes":0,"seconds":0.001}' \
    '{"collective":"all-reduce","bytes":1000,"seconds":1,"sent_bytes":1000}' \
    '{"collective":"all-reduce","bytes":16000000,"seconds":0.102,"sent_bytes":16000000}' >comm.json
plan --ranks 2 --bench-comm comm.json --bucket-mib 1000 --message-us 0 --step-seconds 1
close "$(line 2 wire_s)" "$bytes / 1.6e8" "link as measured"
printf '%s\n' '{"collective":"core","seconds":0.1,"cpu_ns_per_kib":6000,"cpu_ns_per_message":50000,"packets_ns_per_kib":4000}' >>comm.json
plan --ranks 2 --bench-comm comm.json --bucket-mib 12 --step-seconds 2
close "$(line 2 core_s)" "15360 * 1e-5 + 258 * 5e-5" "core time as measured"
sed -i 's/"packets_ns_per_kib":4000/"packets_ns_per_kib":null/' comm.json
plan --ranks 2 --bench-comm comm.json --bucket-mib 12 --step-seconds 2
close "$(line 2 core_s)" "15360 * 6e-6 + 258 * 5e-5" "core time without packets"
plan --measure --img-size 32 --patch-size 8 --embed-dim 32 --depth 1 --num-heads 2 --batch-size 2 --ranks 2
holds "$(line 2 step_s) > 0 && $(line 2 efficiency) > 0 && $(line 2 efficiency) < 1" "measured here"

"$TAGINE" plan --ranks 2,4 --step-seconds 1 --images 1000 >out || fault "text"
grep -q '^  *4  *512 .* 9[0-9]\.[0-9] % #*' out || fault "table: $(cat out)"
"$TAGINE" plan --ranks 2 >out || fault "text without times"
grep -q 'wire s' out || fault "no time of the wire: $(cat out)"

refuse "--ranks 1,,2: numbers" --ranks 1,,2
refuse "--ranks 8-2: numbers" --ranks 8-2
refuse "--ranks 0: numbers" --ranks 0
refuse "give one of them" --ranks 2 --step-seconds 1 --measure
refuse "one each" --ranks 2,4 --images 10 --seen-hours 1
refuse "needs --images" --ranks 2 --seen-hours 1
refuse "less than their exchange" --ranks 2 --seen-hours 1e-6 --images 1e6
refuse "nowhere/run.json" --run nowhere
refuse "\"collective\" is missing" --ranks 2 --bench-comm run/run.json
echo >empty
refuse "bench comm --json" --ranks 2 --bench-comm empty
[ "$faults" -eq 0 ] || { echo "$faults faults"; exit 1; }
