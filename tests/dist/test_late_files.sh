#!/bin/sh
# A network file system that shows a rank late what the first one sees: what a rank opens is absent, then a stale handle,
# then there. It waits a short while and goes on.
set -u
. "$TAGINE_SOURCE_DIR/tests/support/mpi.sh"
mpi_begin
mpi_need
mpi_photos photos 6 32
common="--data photos --img-size 32 --patch-size 8 --num-heads 2 --embed-dim 32 --depth 2 --threads 1 --epochs 100
    --global-batch-size 12 --eval-interval 1000 --val-split none --quiet --comm mpi --stall-seconds 20"
"${CC:-cc}" -shared -fPIC -O1 -D_GNU_SOURCE -o late.so "$TAGINE_SOURCE_DIR/tests/dist/late_files.c" -ldl || fail "late.so"

# late RANKS OPTIONS...: the second rank looks through a late file system
late() {
    others=$(($1 - 1))
    shift
    rm -f notes
    # shellcheck disable=SC2086
    timeout 60 "mpirun.$mpi" -np 1 "$TAGINE" train $common --output run "$@" : -np $others env LD_PRELOAD="$work/late.so" \
        LATE_BELOW=run/checkpoints/ LATE_NOTES="$work/notes" "$TAGINE" train $common --output run "$@" >out 2>err
}

for mpi in $mpis; do
    rm -rf run
    late 2 --steps 2 || fail "$mpi: begins"
    [ -s notes ] || fail "$mpi: no file of a save came late"
    grep -q 'was not saved' run/log/rank-1.log && fail "$mpi: a late file was not waited for in a save"
    late 2 --steps 4 --resume auto || fail "$mpi: does not go on"
    for file in manifest.json state.json state.safetensors model/config.json; do
        [ "$(grep -c "step-2/$file" notes)" = 2 ] || fail "$mpi: $file was not late: $(cat notes)"
    done
    grep -q 'loaded .*step-2' run/log/rank-1.log || fail "$mpi: rank 1 loaded another checkpoint"
    [ "$(grep -c '"t_step"' run/metrics.jsonl)" = 4 ] || fail "$mpi: steps"
done
exit 0
