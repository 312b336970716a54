#!/bin/sh
# Checkpoints that ranks write together, from the outside: the same bytes in shares or not, with one file system or
# several; a rank that is killed while all write, a disk that is full for one of them, a folder that none can write.
set -u
. "$TAGINE_SOURCE_DIR/tests/support/mpi.sh"
mpi_begin
mpi_need
mpi=mpirun.$mpi
mpi_photos photos 12 32
# 2.7 million weights: a state of 43 MB
common="--data $work/photos --img-size 32 --patch-size 8 --num-heads 3 --embed-dim 192 --depth 6 --warmup-epochs 0
    --lr 1e-3 --threads 1 --workers 0 --model-ema --cpu-isa avx2 --quiet --comm mpi --batch-size 2 --val-split none
    --stall-seconds 5"
# what is left aside there; what such a folder holds depends on the moment of a kill
hidden() { find "$1/checkpoints" -maxdepth 1 -name '.*' | grep -c .; }
names() { (cd "$1/checkpoints" && echo *); }

# run RANKS OPTIONS...
run() {
    ranks=$1
    shift
    # shellcheck disable=SC2086
    timeout 100 "$mpi" -np "$ranks" "$TAGINE" train $common "$@" >out 2>err
}
# differ A B: whether any file of the last checkpoints does
differ() { ! diff -r "$1/checkpoints/last/" "$2/checkpoints/last/" >out; }

run 3 --epochs 1 --zero 0 --output whole || fail "three ranks"
run 3 --epochs 1 --zero 1 --output shares || fail "three ranks in shares"
differ whole shares && fail "in shares or not: other bytes"
grep -q 'every rank writes its pieces' whole/log/rank-0.log || fail "the log does not say who writes"

# Run directories of their own: relative paths from two places.
mkdir -p here there
apart() {
    # shellcheck disable=SC2086
    timeout 100 "$mpi" -wdir "$work/here" -np 1 "$TAGINE" train $common --output run "$@" : \
        -wdir "$work/there" -np 2 "$TAGINE" train $common --output run "$@" >out 2>err
}
apart --epochs 1 --zero 1 || fail "run directories apart"
differ whole here/run && fail "run directories apart: other bytes"
grep -q 'not all ranks see its run directory' here/run/log/rank-0.log || fail "the log does not say that the first one writes"
[ "$(names there/run)" = '*' ] || fail "a rank of another place wrote a checkpoint: $(names there/run)"
apart --epochs 2 --zero 1 --resume auto && fail "a rank without the checkpoint went on"
grep -q 'other checkpoint to go on from' err || fail "a rank without the checkpoint: why"
cp -r here/run/checkpoints there/run/
apart --epochs 2 --zero 1 --resume auto || fail "run directories apart, resumed"
run 3 --epochs 2 --zero 0 --output whole --resume auto || fail "resumed"
differ whole here/run && fail "run directories apart, resumed: other bytes"
rm -r there/run/checkpoints
cp -r here/run/checkpoints there/run/
printf x | dd of=there/run/checkpoints/last/state.safetensors bs=1 seek=9999999 conv=notrunc 2>/dev/null
apart --epochs 3 --zero 1 --resume auto && fail "a rank went on from a damaged copy"
grep -q 'not a whole checkpoint' there/run/log/rank-1.log || fail "a damaged copy: why"

# Damage is found by the first for all.
cp -r whole damaged
printf x | dd of=damaged/checkpoints/last/state.safetensors bs=1 seek=9999999 conv=notrunc 2>/dev/null
run 2 --epochs 3 --global-batch-size 6 --output damaged --resume damaged/checkpoints/last && fail "damage passed"
grep -q 'content differs from its manifest' err || fail "damage: why"

# Killed while a checkpoint is written: the one before is whole, half of one is nowhere.
for victim in 1 0; do
    rm -rf long
    run 2 --epochs 100000 --zero 1 --output "$work/long" --checkpoint-steps 2 --checkpoint-hist 2 &
    await 60 test -e long/checkpoints/last || fail "no checkpoint"
    process=$(rank_process long $victim)
    [ -n "$process" ] || fail "rank $victim is not found"
    # stopped first: the others cannot end the save without it, so that it surely dies in the middle of one
    i=0
    while :; do
        set -- long/checkpoints/.step-*/state.safetensors
        i=$((i + 1))
        [ $i -lt 10000000 ] || fail "no save seen"
        [ -e "$1" ] || continue
        kill -STOP "$process"
        sleep 0.2
        set -- long/checkpoints/.step-*
        [ ! -e "$1" ] || break
        kill -CONT "$process"
    done
    kill -9 "$process"
    wait
    grep -q "rank $victim on .* is gone" err || fail "rank $victim killed: who"
    [ "$victim" = 0 ] || [ "$(hidden long)" = 0 ] || fail "the first rank left something aside"
    [ "$victim" = 1 ] || [ "$(hidden long)" = 1 ] || fail "what the killed one leaves: $(ls -a long/checkpoints)"
    case $(names long) in
    'last step-'*) ;;
    *) fail "after a kill: $(names long)" ;;
    esac
    last=$(readlink long/checkpoints/last)
    run 2 --epochs 100000 --zero 1 --output "$work/long" --resume auto --steps $((${last#step-} + 1)) ||
        fail "rank $victim killed: does not go on"
    grep -q "loaded .*$last" long/log/rank-1.log || fail "another checkpoint than the last: $(cat long/log/rank-1.log)"
    [ "$(hidden long)" = 0 ] || fail "left after the next start: $(ls -a long/checkpoints)"
done

# limited LIMIT OPTIONS...: the second rank may not write behind that many blocks of 512 bytes
limited() {
    limit=$1
    shift
    # shellcheck disable=SC2086
    timeout 100 "$mpi" -np 1 "$TAGINE" train $common "$@" : \
        -np 1 sh -c "ulimit -f $limit; exec \"\$@\"" sh "$TAGINE" train $common "$@" >out 2>err
}
limited 60000 --epochs 2 --zero 1 --output small --checkpoint-steps 5 && fail "the last save failed, and the run did not"
[ "$(grep -c 'was not saved: rank 1 on .*cannot write .*File too large' small/log/rank-0.log)" -ge 3 ] ||
    fail "a full disk on rank 1: the log of rank 0"
grep -q 'was not saved: rank 1 on' small/log/rank-1.log || fail "a full disk on rank 1: its own log"
grep -q '"exit": *4' small/run.json || fail "a full disk on rank 1: exit code 4"
[ "$(grep -c '"t_step"' small/metrics.jsonl)" = 24 ] || fail "a full disk on rank 1: training did not go on"
[ "$(names small)" = '*' ] && [ "$(hidden small)" = 0 ] || fail "a failed save left: $(ls -a small/checkpoints)"

# A folder of checkpoints that cannot be written: the first rank's error is everyone's.
run 2 --epochs 1 --output blocked --steps 3 || fail "to be blocked"
rm -r blocked/checkpoints
: >blocked/checkpoints
run 2 --epochs 1 --output blocked && fail "started in a used folder"
run 2 --epochs 1 --output blocked --resume auto && fail "started without a folder for checkpoints"
grep -q 'blocked/checkpoints' err || fail "a file for a folder: why"

# A disk that fills while all write.
if unshare -rm true 2>/dev/null; then
    mkdir disk
    # shellcheck disable=SC2086
    unshare -rm sh -c 'mount -t tmpfs -o size=30m none disk || exit 99
        timeout 100 "$@" >out 2>err
        code=$?
        ls -a disk/run/checkpoints >left
        cp disk/run/log/rank-1.log rank-1.log
        exit $code' sh "$mpi" -np 2 "$TAGINE" train $common --zero 1 --epochs 1 --steps 10 --checkpoint-steps 4 \
        --output disk/run
    code=$?
    if [ $code != 99 ]; then
        [ $code != 0 ] || fail "a full disk did not fail the last save"
        grep -q 'was not saved: rank . on .*No space left' rank-1.log || fail "a full disk: why: $(cat rank-1.log)"
        [ "$(grep -cvx '\.*' left)" = 0 ] || fail "a full disk: left $(cat left)"
    fi
fi
exit 0
