#!/bin/sh
# --workers auto with several ranks: all try the same numbers at the same steps, none is parted from the others, and losses are
# those of a fixed number, whole or sharded.
set -u
. "$TAGINE_SOURCE_DIR/tests/support/mpi.sh"
mpi_begin
mpi_need
mpi_photos photos 30 32
common="--data photos --comm mpi --img-size 32 --patch-size 8 --num-heads 2 --embed-dim 32 --depth 2 --threads 1 --epochs 8
    --batch-size 2 --eval-interval 100 --zero 1"
losses() { sed -n 's/.*"loss":\([^,]*\),.*"grad_norm":\([^,]*\),.*/\1 \2/p' "$1/metrics.jsonl"; }

for mpi in $mpis; do
    for workers in 1 auto; do
        # shellcheck disable=SC2086
        timeout 120 "mpirun.$mpi" -np 2 "$TAGINE" train $common --workers $workers --output "$mpi-$workers" >out 2>&1 ||
            fail "$mpi, workers $workers: $(cat out)"
        losses "$mpi-$workers" >"losses-$workers"
    done
    [ -s losses-1 ] || fail "no losses"
    cmp -s losses-1 losses-auto || fail "$mpi: losses differ from those of a fixed number"
    grep -q "workers: going on with" out || fail "$mpi: nothing was chosen: $(cat out)"
    grep -q '"ranks":2,"batch_size":4' "$mpi-auto/tune.json" || fail "tune.json: $(cat "$mpi-auto/tune.json")"
done
