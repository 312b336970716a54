#!/bin/sh
# Ranks that compute in bf16 and keep the weights of others rounded (train/parcels.h), from the outside: in shares or not the same
# models, checkpoints and resumes, to the byte, also where the first rank writes what others have.
set -u
. "$TAGINE_SOURCE_DIR/tests/support/mpi.sh"
mpi_begin
mpi_need
grep -q avx512_bf16 /proc/cpuinfo || { echo "this machine does not compute in bf16"; exit 77; }
mpi=mpirun.$mpi

mpi_photos photos 24 32
common="--img-size 32 --patch-size 8 --num-heads 2 --embed-dim 64 --depth 2 --warmup-epochs 0 --lr 1e-3 --threads 1
    --workers 0 --amp --quiet --comm mpi --global-batch-size 12"
# 64 KiB
small="--bucket-mib 0.0625"

# run RANKS COMMAND OPTIONS...
run() {
    ranks=$1 command=$2
    shift 2
    # shellcheck disable=SC2086
    timeout 100 "$mpi" -np "$ranks" "$TAGINE" "$command" --data "$work/photos" $common "$@" >out 2>err
}
# alike A B: models and last checkpoints
alike() { diff -r "$1/model" "$2/model" >out && diff -r "$1/checkpoints/last/" "$2/checkpoints/last/" >>out; }

for zero in 0 1; do
    run 3 train --epochs 2 --zero $zero --output live-$zero || fail "three ranks, --zero $zero"
    run 3 train --epochs 2 --zero $zero --output average-$zero --model-ema $small || fail "an average, --zero $zero"
    run 2 distill --teacher live-0/model --kd-loss feature --epochs 1 --zero $zero --output student-$zero $small ||
        fail "distilling, --zero $zero"
    for stage in "2 3" "4 5" "3 6" "1 8"; do
        # shellcheck disable=SC2086
        set -- $stage
        run "$1" train --epochs 2 --global-batch-size 12 --output chain-$zero --resume auto --steps "$2" --zero $zero ||
            fail "chain: $1 ranks to step $2, --zero $zero"
    done
done
for what in live average student chain; do
    alike $what-0 $what-1 || fail "$what: in shares or not: $(cat out)"
done
grep -q 'bfloat16 compute' live-1/log/rank-0.log || fail "computed in float32"

# The state is saved with nothing gathered for an evaluation before.
common="$common --data $work/photos --epochs 2 --zero 1 --output run --model-ema $small"
mkdir -p here there
# shellcheck disable=SC2086
timeout 100 "$mpi" -wdir "$work/here" -np 1 "$TAGINE" train $common : -wdir "$work/there" -np 2 "$TAGINE" train $common \
    >out 2>err || fail "run directories apart"
alike average-0 here/run || fail "run directories apart: other bytes"
exit 0
