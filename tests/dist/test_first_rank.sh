#!/bin/sh
# Work that one rank does alone, and fails in: the first rank cannot write its log, or a checkpoint; another one's photos
# never come. All ranks end, with one code and one message.
set -u
. "$TAGINE_SOURCE_DIR/tests/support/mpi.sh"
mpi_begin
mpi_need
fail_shows="out err run/failure"
mpi_photos photos 10 32
common="--data photos --img-size 32 --patch-size 8 --num-heads 2 --embed-dim 32 --depth 2 --threads 1
    --global-batch-size 12 --eval-interval 100000 --quiet --comm mpi --output run"
said_once() {
    [ "$(grep -c 'tagine train: ' err)" = 1 ] || fail "$1: not said once"
    grep -q "^tagine train: .*$2" err || fail "$1: other words"
}

for mpi in $mpis; do
    # Hydra's code is the bits of all ranks' codes: 2 and 4 alone say that all ended with them.
    rm -rf run
    mkdir run
    : >run/log
    # shellcheck disable=SC2086
    timeout 60 "mpirun.$mpi" -np 3 "$TAGINE" train $common --epochs 1 >out 2>err
    code=$?
    [ $code = 2 ] || fail "$mpi: a file in the log's place: exit code $code"
    said_once "$mpi: a file in the log's place" 'run/log'

    # Its disk is full from some step on: checkpoints are not saved, and the model at the end has to be.
    rm -rf run code
    # shellcheck disable=SC2086
    { timeout 60 "mpirun.$mpi" -np 3 "$TAGINE" train $common --epochs 100000 --steps 400 --checkpoint-steps 10 >out 2>err
        echo $? >code; } &
    await 60 test -e run/checkpoints/last || fail "$mpi: no checkpoint"
    prlimit --pid "$(rank_process run 0)" --fsize=61440 || fail "$mpi: no limit"
    wait
    [ "$(cat code)" = 4 ] || fail "$mpi: a full disk of the first rank: exit code $(cat code)"
    said_once "$mpi: a full disk of the first rank" 'cannot write .*File too large'
    for rank in 0 1 2; do
        grep -q 'was not saved: rank 0 on' run/log/rank-$rank.log || fail "$mpi: rank $rank does not know that a save failed"
    done
    grep -q '"exit": *4' run/run.json || fail "$mpi: a full disk of the first rank: run.json"
done

# A rank that waits for ever for its photos is there and gives signs of life: --stall-seconds ends the others, and a
# launcher ends it.
"${CC:-cc}" -shared -fPIC -O1 -D_GNU_SOURCE -o late.so "$TAGINE_SOURCE_DIR/tests/dist/late_files.c" -ldl || fail "late.so"
for mpi in $mpis; do
    rm -rf run
    begin=$(date +%s)
    # shellcheck disable=SC2086
    timeout 60 "mpirun.$mpi" -np 2 "$TAGINE" train $common --epochs 3 --stall-seconds 2 : -np 1 env LD_PRELOAD="$work/late.so" \
        LATE_NEVER=.jpg "$TAGINE" train $common --epochs 3 --stall-seconds 2 >out 2>err
    code=$?
    took=$(($(date +%s) - begin))
    [ $code != 0 ] && [ $code != 124 ] || fail "$mpi: photos that never come: exit code $code after $took s"
    [ $took -lt 30 ] || fail "$mpi: photos that never come: ended after $took s"
    grep -q 'nothing has moved for .*rank 2 on .* bytes to come' run/failure || fail "$mpi: who waits for photos"
    [ "$mpi" = mpich ] || said_once "$mpi: photos that never come" 'nothing has moved for .*rank 2 on'
    [ -z "$(rank_process run 2)" ] || fail "$mpi: the rank without photos is left"
done

# What all ranks know of, here that one cannot read a photo of an evaluation, ends them in good order, after a save.
cat >ends.c <<'END'
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
int MPI_Finalize(void);
int MPI_Finalize(void)
{
    int fd = open(getenv("ENDS"), O_WRONLY | O_APPEND | O_CREAT, 0666);
    return write(fd, "end\n", 4) != 4;
}
END
case $mpis in *openmpi*) # Hydra kills all others at once
    "${CC:-cc}" -shared -fPIC -o ends.so ends.c || fail "ends.so"
    echo junk >"$(find photos/val -type f | sort | tail -n 1)"
    rm -rf run ends
    # shellcheck disable=SC2086
    LD_PRELOAD="$work/ends.so" ENDS="$work/ends" timeout 60 mpirun.openmpi --mca odls_base_sigkill_timeout 3 -np 3 "$TAGINE" train \
        $common --epochs 2 --eval-interval 1 --checkpoint-steps 1 --strict >out 2>err && fail "takes a photo that is none"
    said_once "a photo of an evaluation" 'not a picture'
    [ "$(grep -c end ends)" = 3 ] || fail "ranks that agree do not end in good order: $(cat ends)"
    ;;
esac
exit 0
