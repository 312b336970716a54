#!/bin/sh
# What a person at the terminal sees of ranks that fail: each reason once, by the first rank, or by another one when
# the first is gone; exit codes through the launchers.
set -u
. "$TAGINE_SOURCE_DIR/tests/support/mpi.sh"
mpi_begin
mpi_need
fail_shows="out err run/failure"
mpi_photos photos 30 32
common="--img-size 32 --patch-size 8 --num-heads 2 --embed-dim 32 --depth 2 --threads 1 --epochs 100000
    --global-batch-size 12 --eval-interval 100000 --output run"

# said_once CODE WORDS COMMAND...: it ends with this code and one line of ours, which has these words
said_once() {
    code=$1 words=$2
    shift 2
    timeout 60 "$@" >out 2>err
    got=$?
    [ "$got" = "$code" ] || fail "$*: exit code $got"
    [ "$(grep -c '^.*tagine train: ' err)" = 1 ] || fail "$*: not said once"
    grep -q "^tagine train: $words" err || fail "$*: other words"
}
mkdir alone && cp "$TAGINE" alone/tagine # without modules
for mpi in $mpis; do
    rm -rf run
    said_once 2 'unknown option --oops' "mpirun.$mpi" -np 4 "$TAGINE" train --comm mpi --oops
    said_once 2 '--data is missing' "mpirun.$mpi" -np 4 "$TAGINE" train --comm mpi --output run
    said_once 3 '--data nowhere' "mpirun.$mpi" -np 4 "$TAGINE" train --comm mpi --data nowhere --output run
    said_once 2 'a launcher started 4 processes' "mpirun.$mpi" -np 4 "$TAGINE" train --data photos --output run
    said_once 2 '--bucket-mib' "mpirun.$mpi" -np 3 "$TAGINE" train --comm=mpi --bucket-mib x
    [ ! -e run ] || fail "$mpi: a mistake left a folder"
    if [ "$mpi" = openmpi ]; then # ranks that cannot meet; Hydra ends nobody, and each says it
        said_once 2 'unknown option --oops' "mpirun.$mpi" -np 3 "$TAGINE" train --oops
        said_once 4 '--comm mpi: no module' "mpirun.$mpi" -np 3 alone/tagine train --comm mpi --data photos --output run
    fi
    # one rank's own mistake
    # shellcheck disable=SC2086
    timeout 60 "mpirun.$mpi" -np 1 "$TAGINE" train --comm mpi --data photos $common : -np 2 "$TAGINE" train --comm mpi \
        --oops >out 2>err && fail "$mpi: works with others that have failed"
    [ "$(grep -c 'tagine train: ' err)" = 1 ] || fail "$mpi: one rank's own mistake is not said once"
    grep -q '^tagine train: rank 1 on .*: unknown option --oops' err || fail "$mpi: whose mistake it is"

    rm -rf run
    # shellcheck disable=SC2086
    timeout 60 "mpirun.$mpi" -np 2 "$TAGINE" train --comm mpi --data photos $common --steps 3 --trace-steps 2-3 \
        --quiet >out 2>err || fail "$mpi: a run of 3 steps"
    for rank in 0 1; do
        gzip -dc run/trace/rank-$rank.json.gz >trace || fail "$mpi: no timeline of rank $rank"
        [ "$(grep -c '"name":"ProfilerStep#[23]"' trace)" = 2 ] || fail "$mpi: steps in the timeline of rank $rank"
        grep -q '"name":"ncclKernel:all_reduce gradients 0".*"cat":"kernel"' trace || fail "$mpi: no bucket in the timeline of rank $rank"
        grep -q 'step 2: exchange .* inside backward' run/log/rank-$rank.log || fail "$mpi: what backward hid"
        grep -q 'bucket 0 .*|.*#' run/log/rank-$rank.log || fail "$mpi: no picture in the log of rank $rank"
    done
    for state in run/checkpoints/step-*/*.safetensors; do
        printf damage | dd of="$state" bs=1 seek=3000 conv=notrunc 2>/dev/null
    done
    # shellcheck disable=SC2086
    timeout 60 "mpirun.$mpi" -np 4 "$TAGINE" train --comm mpi --data photos $common --resume run/checkpoints/last \
        >out 2>err
    code=$?
    [ $code = 3 ] || fail "$mpi: a damaged checkpoint: exit code $code"
    [ "$(grep -c 'tagine train: ' err)" = 1 ] || fail "$mpi: a damaged checkpoint is not said once"
    grep -q '^tagine train: run/checkpoints/last/.*manifest' err || fail "$mpi: what is damaged"
done

# killed RANK: what three ranks leave when one is killed; the launcher's code in `code`. Hydra kills all others at once.
# Open MPI gives them as many seconds as it is told to, and waits them out; one is little on a busy machine.
killed() {
    rank=$1
    rm -rf run
    # shellcheck disable=SC2086
    { timeout 60 mpirun.openmpi --mca odls_base_sigkill_timeout 3 -np 3 "$TAGINE" train --comm mpi --data photos $common --checkpoint-steps 50 \
        --stall-seconds 5 >out 2>err; echo $? >code; } &
    await 60 test -e run/checkpoints/last || fail "no checkpoint"
    kill -9 "$(rank_process run "$rank")"
    wait
    [ "$(grep -c 'tagine train: ' err)" = 1 ] || fail "the end of rank $rank is not said once"
    head -n 1 run/failure | grep -q "rank $rank on .* is gone" || fail "no failure file on rank $rank"
    grep -q " error .*rank $rank on .* is gone" run/log/rank-2.log || fail "nothing in the log of rank 2"
    [ "$(cat code)" = 137 ] || fail "the launcher's exit code is $(cat code)"
}
case $mpis in *openmpi*)
    killed 1
    grep -q '^tagine train: .*rank 1 on .* is gone' err || fail "the first rank says it"
    grep -q '"exit":5' run/run.json || fail "exit code of the first rank"
    killed 0
    grep -q '^rank [12] on .*: tagine train: rank 0 on .* is gone' err || fail "another rank says it"
    grep -q '"end":"[^"]*","exit":5,"failure":"rank 0 on .* is gone' run/run.json || fail "another rank ends run.json"

    # Before a start is known to begin, the folder's records are those of the run before: they stay, and it is said.
    "${CC:-cc}" -shared -fPIC -O1 -D_GNU_SOURCE -o late.so "$TAGINE_SOURCE_DIR/tests/dist/late_files.c" -ldl || fail "late.so"
    # never_begins: the first rank waits for its checkpoint for ever, and is killed
    never_begins() {
        before=$(cksum <run/run.json)
        # shellcheck disable=SC2086
        { timeout 60 mpirun.openmpi --mca odls_base_sigkill_timeout 3 -np 1 env LD_PRELOAD="$work/late.so" LATE_NEVER=state.safetensors \
            "$TAGINE" train --comm mpi --data photos $common --resume auto : -np 2 "$TAGINE" train --comm mpi --data photos \
            $common --resume auto >out 2>err; } &
        await 60 rank_process run 2 >/dev/null || fail "the third rank does not join"
        sleep 1
        kill -9 "$(rank_process run 0)"
        wait
        [ "$(grep -c 'tagine train: ' err)" = 1 ] || fail "the end of the first rank before it began is not said once"
        grep -q '^rank [12] on .*: tagine train: rank 0 on .* is gone' err || fail "another rank says it, before the first began"
        [ "$(cksum <run/run.json)" = "$before" ] || fail "run.json of the run before has changed"
    }
    mv run/failure stale
    never_begins
    [ ! -e run/failure ] || fail "a failure file beside the records of another run"
    mv stale run/failure
    never_begins
    ;;
esac

# A photo that one rank cannot read is its own to tell.
mpi=${mpis%% *}
find photos/train -name '*.jpg' | sort | awk 'NR % 9 == 0' | while read -r photo; do echo junk >"$photo"; done
rm -rf run
# shellcheck disable=SC2086
timeout 60 "mpirun.$mpi" -np 2 "$TAGINE" train --comm mpi --data photos $common --steps 10 --max-bad-share 1 >out 2>err ||
    fail "photos that cannot be read"
grep -q '^rank 1 on .*: warning: data: photo left out' err || fail "a photo of rank 1"
grep '^rank 1 on' err | grep -qv 'photo left out' && fail "rank 1 says what rank 0 says"
exit 0
