#!/bin/sh
# Launchers that die and launchers' exit codes: kill -9 of mpirun leaves no rank behind, and the run goes on; one rank's
# fault is never hidden by the launcher's code.
set -u
. "$TAGINE_SOURCE_DIR/tests/support/mpi.sh"
mpi_begin
mpi_need
mpi_photos photos 10 32
common="--data photos --img-size 32 --patch-size 8 --num-heads 2 --embed-dim 32 --depth 2 --threads 1 --epochs 100000
    --global-batch-size 12 --eval-interval 100000 --quiet --comm mpi --output run"
none_left() {
    for left in $ranks; do
        case $(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$left/status" 2>/dev/null) in
            '' | Z | X) ;;
            *) return 1 ;;
        esac
    done
}

for mpi in $mpis; do
    rm -rf run
    # shellcheck disable=SC2086
    "mpirun.$mpi" -np 3 "$TAGINE" train $common --checkpoint-steps 20 >out 2>err &
    launcher=$!
    await 60 test -e run/checkpoints/last || fail "$mpi: no checkpoint"
    ranks="$(rank_process run 0) $(rank_process run 1) $(rank_process run 2)"
    [ "$(echo "$ranks" | wc -w)" = 3 ] || fail "$mpi: not three ranks: $ranks"
    kill -9 $launcher
    begin=$(date +%s)
    wait $launcher 2>/dev/null
    if ! await 10 none_left; then
        # shellcheck disable=SC2086
        kill -9 $ranks 2>/dev/null
        fail "$mpi: kill -9 of the launcher leaves ranks behind"
    fi
    echo "$mpi: no rank left $(($(date +%s) - begin)) s after its launcher was killed"
    at=$(sed -n 's/.*"step":\([0-9]*\),.*/\1/p' run/metrics.jsonl | tail -n 1)
    # shellcheck disable=SC2086
    timeout 60 "mpirun.$mpi" -np 2 "$TAGINE" train $common --resume auto --steps $((at + 5)) >out 2>err ||
        fail "$mpi: does not go on after its launcher was killed"

    # One rank's own mistake: 2 on that rank, 5 on the others. Open MPI's code is that of the first to end; Hydra joins the
    # bits of all, or it is 9 where it killed the others meanwhile.
    rm -rf run
    # shellcheck disable=SC2086
    timeout 60 "mpirun.$mpi" -np 1 "$TAGINE" train $common --steps 3 : -np 1 "$TAGINE" train $common --steps 3 --oops \
        >out 2>err
    code=$?
    case $mpi-$code in
        openmpi-2 | openmpi-5 | mpich-7 | mpich-9) ;;
        *) fail "$mpi: one rank's mistake: the launcher's code is $code" ;;
    esac
    grep -q '^tagine train: rank 1 on .*: unknown option --oops' err || fail "$mpi: whose mistake it is"
done
exit 0
