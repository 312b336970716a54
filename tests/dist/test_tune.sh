#!/bin/sh
# tune under launchers: ranks agree on every trial and on the choice, which train takes under the same launcher; a
# share of the step, with shares of the state; a rank that dies ends it. No number of a machine's speed is asserted.
set -u
. "$TAGINE_SOURCE_DIR/tests/support/mpi.sh"
mpi_begin
mpi_need
export OMP_WAIT_POLICY=passive # more tests may share these cores
mpi_photos photos 10 32
small="--img-size 16 --patch-size 8 --embed-dim 32 --depth 1 --num-heads 2 --threads 1 --stall-seconds 10"
quick="--batch-size 8 --seconds-per-trial 0.02 --max-seconds 5 --max-batch-size 16"
# choice KEY: a number of the last line, and of its choice first
choice() { tail -n 1 out | sed -n "s/^{\"choice\":{[^}]*\"$1\":\([0-9.]*\).*/\1/p"; }

for mpi in $mpis; do
    # Sharded, on photos: batches, workers and buckets are tried, and each trial is every rank's.
    # shellcheck disable=SC2086
    timeout 100 "mpirun.$mpi" -np 2 "$TAGINE" tune train --data photos $small $quick --zero 1 --comm mpi --json \
        --output "$mpi.yaml" >out 2>err || fail "$mpi: tune"
    for stage in batch workers bucket; do
        grep -q "\"stage\":\"$stage\"" out || fail "$mpi: no trials of $stage"
    done
    grep -q '"ranks":2,' out || fail "$mpi: not two ranks"
    # a step of two ranks: twice the batch, each time it was taken
    sed '$d' out | sed -n 's/.*"batch_size":\([0-9]*\),.*"steps":\([0-9]*\),"images":\([0-9]*\),.*/\1 \2 \3/p' |
        awk '$2 > 0 && $3 != 2 * $1 * $2 { bad = 1; print } END { exit bad || NR < 5 }' >wrong || fail "$mpi: $(cat wrong)"
    grep -qx "comm: mpi" "$mpi.yaml" && grep -qx "zero: 1" "$mpi.yaml" || fail "$mpi: settings: $(cat "$mpi.yaml")"
    grep -qx "bucket-mib: $(choice bucket_mib)" "$mpi.yaml" || fail "$mpi: settings: $(cat "$mpi.yaml")"
    timeout 100 "mpirun.$mpi" -np 2 "$TAGINE" train --config "$mpi.yaml" --steps 2 --warmup-epochs 0 --val-split none \
        --output "run.$mpi" --quiet >out 2>err || fail "$mpi: train does not take what was found: $(cat "$mpi.yaml")"
done
mpi=${mpis%% *}

# A student, from the folder of the run's model; a step of fixed size is not dealt out anew.
# shellcheck disable=SC2086
timeout 100 "mpirun.$mpi" -np 3 "$TAGINE" tune distill --teacher "run.$mpi/model" $small ${quick#--batch-size 8} --global-batch-size 12 \
    --comm mpi --json >out 2>err || fail "tune distill"
grep -q '"ranks":3,' out && [ "$(choice batch_size)" = 4 ] || fail "tune distill: a rank's share of 12"
tail -n 1 out | grep -q '"arguments":"--threads 1 --bucket-mib [0-9]*"' || fail "tune distill: arguments"

# Ranks that were told different things do not begin.
# shellcheck disable=SC2086,SC2016
timeout 100 "mpirun.$mpi" -np 2 sh -c '[ "${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}" = 0 ] && lr=1 || lr=2
    exec "$TAGINE" tune train --lr $lr "$@"' tune $small $quick --comm mpi >out 2>err
[ $? = 2 ] || fail "different options: not refused as wrong usage"
grep -q -- '--lr' err || fail "different options: which"

# A rank that is killed ends it on the other one, which says whom it missed.
: >first
# shellcheck disable=SC2086,SC2016
timeout 100 "mpirun.$mpi" -np 2 sh -c '[ "${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}" = 0 ] || { echo $$ >process
        exec "$TAGINE" tune train "$@"; }
    "$TAGINE" tune train "$@" >first 2>&1; echo $? >status' tune $small --seconds-per-trial 20 --max-seconds 60 --comm mpi \
    >out 2>err &
await 30 grep -q 'tuning\|trial\|pictures' first || fail "killed: did not begin"
sleep 1
kill -9 "$(cat process)"
wait
fail_shows="first out err"
if [ -s status ]; then # a launcher may end the other one before it has spoken
    [ "$(cat status)" = 5 ] && grep -q 'rank 1' first || fail "killed: exit code $(cat status)"
    grep -q 'checkpoint' first && fail "killed: speaks of a checkpoint, of which there is none"
fi
exit 0
