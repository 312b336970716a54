#!/bin/sh
# The program as a user meets it: help, exit codes, settings files, numbers under any locale,
# completion and manual pages.
set -u
[ -n "${TAGINE:-}" ] || { echo "skipped: the program was not built"; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
faults=0
fault() { echo "FAULT: $*"; faults=$((faults + 1)); }

# expect CODE PART ARGUMENT...: exit code, and PART somewhere in both outputs
expect() {
    code=$1 part=$2
    shift 2
    "$TAGINE" "$@" >out 2>err
    got=$?
    [ "$got" -eq "$code" ] || fault "tagine $*: exit $got, not $code: $(cat err)"
    cat out err | grep -qF -- "$part" || fault "tagine $*: no \"$part\" in: $(cat out err)"
}

expect 0 "tagine 0.1.0" --version
expect 0 "Commands:" --help
"$TAGINE" --help | awk 'length > 80 { print; long = 1 } END { exit long }' || fault "--help is too wide for a terminal"
for command in train plan "tune distill" "bench comm" "data check"; do # examples are to be copied, and stay whole
    # shellcheck disable=SC2086
    "$TAGINE" $command --help | grep -v '^      [a-z]' | awk 'length > 80 { print; long = 1 } END { exit long }' ||
        fault "$command --help is too wide for a terminal"
done
expect 2 "no command given"
expect 2 "did you mean plan?" pla
expect 2 "data check" data
expect 2 '"data chekc" is no command' data chekc
expect 0 "--batch-size" plan --nonsense --help
expect 2 "did you mean --batch-size?" plan --batchsize 3
expect 2 "--batch-size: \"0\" is below 1" plan --batch-size 0
expect 2 "--crop-pct: \"0.0099\" is below 0.01" train --crop-pct 0.0099 --print-config
expect 2 "--crop-pct: \"1.01\" is above the highest allowed, 1" train --crop-pct 1.01 --print-config
expect 0 "crop-pct: 0.01" train --crop-pct 0.01 --print-config
expect 2 "unexpected argument" plan extra
expect 0 "batch-size: 4" plan -qvb4 --print-config
grep -qx "quiet: true" out && grep -qx "verbose: true" out || fault "-qv: $(cat out)"
expect 2 "unknown option -qx" plan -qx
expect 3 "--data nowhere: there is no such folder" train --data nowhere --output made
[ ! -e made ] || fault "a start without data made its run directory"
expect 2 "missing argument" completion
expect 2 "unknown model" plan --model vit_smal_patch16_224
expect 3 "absent.yaml" plan --config absent.yaml
expect 2 "no photos given" data stats
expect 3 "there is no such folder" data check --data nowhere
if [ -c /dev/full ]; then
    "$TAGINE" plan >/dev/full 2>err
    [ $? -eq 4 ] || fault "a full disk behind standard output is not exit code 4"
fi

# the command line wins over the file; what is printed reads back
printf 'batch-size: 3\namp: yes\n' >c.yaml
"$TAGINE" plan --config c.yaml --batch-size 5 --print-config >resolved.yaml
grep -qx "batch-size: 5" resolved.yaml || fault "the command line does not win"
grep -qx "amp: true" resolved.yaml || fault "the file is not read"
"$TAGINE" plan --config resolved.yaml --print-config | cmp -s - resolved.yaml ||
    fault "printed settings do not read back"
printf 'batchsize: 3\n' >bad.yaml
expect 2 "bad.yaml: line 1, column 12: batchsize: unknown option; did you mean batch-size?" \
    plan --config bad.yaml

# ViT-Ti/16 has 5,717,416 parameters (timm), and the parts of the memory add up
"$TAGINE" plan --json --batch-size 2 >plan.json || fault "plan failed"
grep -q '"parameters":5717416,' plan.json || fault "parameters: $(cat plan.json)"
awk -F'[:,}]' '{ for (i = 1; i < NF; i++) { gsub(/["{]/, "", $i); v[$i] = $(i + 1) }
    n = split("program weights gradients moments average prepared activations batches decoding " \
        "teacher_weights teacher_prepared exchange", part, " ")
    for (i = 1; i <= n; i++) sum += v[part[i] "_bytes"]
    exit !(v["prepared_bytes"] > 0 && sum == v["total_bytes"]) }' plan.json ||
    fault "the parts do not add up: $(cat plan.json)"
for name in de_DE.UTF-8 C; do
    LC_ALL=$name "$TAGINE" plan --model vit_small_patch16_224 >"plan.$name"
    LC_ALL=$name "$TAGINE" plan --print-config >"config.$name"
done
cmp -s plan.de_DE.UTF-8 plan.C || fault "plan depends on the locale"
cmp -s config.de_DE.UTF-8 config.C || fault "settings depend on the locale"

# generated pictures: the same command gives the same files; check and stats see them all
expect 2 "--output DIR" data synth
"$TAGINE" data synth --output a --classes 2 --per-class 3 --img-size 32 -q >/dev/null ||
    fault "data synth failed"
# of a line of progress the bar gives way, not the time that is left; a root without /dev/pts has no terminals
if script -qec true screen </dev/null >/dev/null 2>&1; then
    script -qec "stty cols 60; '$TAGINE' train --data a --img-size 16 --patch-size 8 --embed-dim 32 --depth 1 \
        --num-heads 2 --batch-size 1 --epochs 2 --output progress" screen </dev/null >/dev/null
    tr '\r' '\n' <screen | grep -q '^epoch 1/2 .* left' || fault "progress on 60 columns: $(cat screen)"
else
    echo "left out: no terminal can be made here"
fi
"$TAGINE" data synth --output b --classes 2 --per-class 3 --img-size 32 -q --threads 2 >/dev/null
diff -r a b >/dev/null || fault "the same command gives other pictures"
expect 2 "exists already" data synth --output a
expect 0 '"train"' data stats --data a --json
cp "$(find a/train -name '*.jpg' | sort | head -1)" a/val/copy-1.jpg
mv a/val/copy-1.jpg "$(find a/val -mindepth 1 -type d | sort | head -1)"
expect 0 '"leaks":1,' data check --data a --json
expect 3 "1 finding (--strict)" data check --data a --strict

# a split that was named has to be there; the usual one need not be, and none is none
for command in "data check" "data stats"; do
    # shellcheck disable=SC2086
    {
        expect 3 'no folder "vla"' $command --data a --val-split vla
        expect 3 'no folder "vla"' $command --data a --val-split val+vla
        expect 0 "" $command --data a --val-split none
        mkdir -p alone && cp -r a/train alone
        expect 0 "" $command --data alone
    }
done
expect 0 "tagine data COMMAND" data --help
expect 0 "Usage: tagine train" train --help=1
expect 2 "20 kinds" data synth --output c --classes 500
expect 0 "more than the" data synth --output many --classes 2 --per-class 1 --threads 4096
for command in man completion; do
    "$TAGINE" $command --help | grep -q -e --threads -e --cpu-isa && fault "$command --help lists --threads"
done
expect 2 "tagine --version" version
expect 2 "here it is --data" train --data-dir photos
expect 2 "here it is --batch-size" train --train_batch_size 4
expect 2 "unknown option --train-split" eval --model m --data a --train-split train
expect 2 "--val-split vla: only a share" bench loader --data a --val-split vla
expect 0 '"images"' bench loader --data a/train --val-split 0.4 --img-size 32 --passes 1 --json

# names that would break a line or command a terminal are shown, and JSON holds them as they are
class=$(find a/val -mindepth 1 -type d | sort | head -1)
name=$(printf 'new\nline\033[31m')
echo "no photo" >"$class/$name.jpg"
expect 0 'new\x0aline\x1b[31m.jpg: ' data check --data a
grep -q "^broken .*: .*new.*: " out && fault "data check names a path twice: $(cat out)"
[ "$(grep -c '^broken ' out)" -eq 1 ] || fault "a line of data check is not one line: $(cat out)"
grep -q "$(printf '\033')" out err && fault "data check sends commands to the terminal"
expect 0 'new\nline\u001b[31m.jpg' data check --data a --json
rm "$class/$name.jpg"
mkdir "a/train/$name" "a/val/$name"
cp "$(find a/val -name '*.jpg' | sort | head -1)" "a/train/$name/copy.jpg"
expect 0 '  new\x0aline\x1b[31m' data stats --data a
rm -r "a/train/$name" "a/val/$name"

# limits as a user would type them
expect 2 'above the highest allowed, 1048576' train --batch-size 1048577
expect 2 'above the highest allowed, 1000000000000000' train --seed 1000000000000001

# what cannot be meant is wrong usage, before anything is made
for share in 0 1 -0.1 1.5 nan 10% 0,1; do
    for command in "train --output run" "data check" "data stats" "eval --model m"; do
        # shellcheck disable=SC2086
        expect 2 "--val-split $share: a share is a number between 0 and 1" $command --data a --val-split=$share
    done
done
: >plain
mkdir folder.csv
for output in plain plain/below; do
    expect 2 "plain" train --data a --output $output
    expect 2 "plain" data synth --output $output
done
expect 2 "a folder is needed" data synth --output plain
expect 2 '--output: "" is the name of nothing' train --data a --output ""
expect 2 '--output: "" is the name of nothing' data synth --output=
expect 2 "there is a folder of that name" embed --model m --output folder.csv a
expect 2 "no such folder to write it to" embed --model m --output nowhere/f.csv a
expect 3 "give a run directory" train --data a --output run --resume nowhere --img-size 32 --patch-size 16
rm -rf run

# a reader that leaves is no failure worth a message
("$TAGINE" man plan 2>err; :) | head -1 >/dev/null
[ -s err ] && fault "a closed pipe is reported: $(cat err)"

for shell in bash zsh fish; do
    "$TAGINE" completion $shell >completion.$shell || fault "completion $shell failed"
    command -v $shell >/dev/null 2>&1 || continue
    $shell -n completion.$shell || fault "completion $shell has a syntax error"
done
if command -v bash >/dev/null 2>&1; then
    bash -c '. ./completion.bash
complete_line() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _tagine; echo "${COMPREPLY[*]}"; }
complete_line tagine pl
complete_line tagine data st
complete_line tagine plan --batch
complete_line tagine plan --amp-dtype b
complete_line tagine plan --model vit_tiny_patch14
complete_line tagine predict --model vit_tiny_patch14
complete_line tagine data stats --val-' >completed 2>&1
    printf '%s\n' plan stats --batch-size bfloat16 vit_tiny_patch14_224 '' --val-split | cmp -s - completed ||
        fault "bash completes: $(cat completed)"
fi

"$TAGINE" man --all pages || fault "man --all failed"
for command in plan data-stats data-check; do
    [ -s "pages/tagine-$command.1" ] || fault "no page for $command"
done
if command -v groff >/dev/null 2>&1; then
    for page in pages/*.1; do
        groff -man -Tutf8 -ww "$page" >/dev/null 2>err
        [ -s err ] && fault "$page: $(cat err)"
    done
fi
[ "$faults" -eq 0 ]
