#!/bin/sh
# A machine that refuses threads, or memory: exit code 4 with the cause and what to do, whoever wanted them.
set -u
[ -x "${TAGINE:-}" ] || { echo "skipped: no program"; exit 77; }
case ${TAGINE_SANITIZE:-} in
*address* | *thread*) echo "skipped: a sanitizer needs all of the address space"; exit 77 ;;
esac
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
"$TAGINE_BINARY_DIR/tests/tagine_test_fixture" . || exit 1
cp -r data/val data/train
faults=0

# starved PART ARGUMENT...: with 2 GiB of addresses there is no room for the stacks (8 MiB each) of
# a thousand threads
starved() {
    part=$1
    shift
    (ulimit -s 8192 && ulimit -v 2097152 && exec "$TAGINE" "$@" --quiet) >out 2>err
    code=$?
    if [ $code -ne 4 ] || ! grep -qF -- "$part" err; then
        echo "FAULT: tagine $*: exit $code: $(cat out err)"
        faults=$((faults + 1))
    fi
}
photo=data/val/pizza/0.jpg
(ulimit -s 8192 && ulimit -v 2097152) 2>/dev/null || { echo "skipped: no limits here"; exit 77; }
(ulimit -s 8192 && ulimit -v 2097152 && exec "$TAGINE" predict --model model --threads 2 $photo) >out 2>&1 ||
    { echo "FAULT: two threads fit: $(cat out)"; exit 1; }

starved "of 1000: Resource temporarily unavailable; ask for fewer --threads" \
    predict --model model --threads 1000 $photo
starved "of 1000" embed --model model --threads 1000 --output f.csv $photo
starved "of 1000" eval --model model --threads 1000 --data data
starved "of 1000" train --data data --initial-checkpoint model --epochs 1 --threads 1000 --output run
grep -q "of 1000" run/failure || { echo "FAULT: no reason in run/failure"; faults=1; }
starved "loader worker" train --data data --initial-checkpoint model --epochs 1 --threads 1 \
    --workers 1000 --output run

# Whatever was short of memory, nobody ends by a signal.
limit=80000
while [ $limit -le 200000 ]; do
    rm -rf run
    (ulimit -c 0 && ulimit -s 8192 && ulimit -v $limit &&
        exec "$TAGINE" train --data data --initial-checkpoint model --epochs 1 --threads 2 --output run --quiet) \
        >out 2>err
    code=$?
    case $code in
    0 | 4) ;;
    *)
        echo "FAULT: exit $code with $limit KiB of memory: $(cat out err)"
        faults=$((faults + 1))
        ;;
    esac
    limit=$((limit + 2500))
done
[ $faults -eq 0 ]
