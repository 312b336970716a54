#!/bin/sh
# Training by many ranks, from the outside: the same losses as one rank's, whatever their number, stage and
# changes between stops; a rank that is killed, stopped or asked to stop; ranks that are not alike.
set -u
. "$TAGINE_SOURCE_DIR/tests/support/mpi.sh"
mpi_begin
mpi_need

mpi_photos photos 30 32
common="--data photos --img-size 32 --patch-size 8 --num-heads 2 --embed-dim 32 --depth 2 --warmup-epochs 0
    --lr 1e-3 --threads 1 --model-ema --mixup 0.2 --cutmix 0.5 --cpu-isa avx2 --quiet"

# run MPI RANKS OPTIONS...
run() {
    mpi=$1 ranks=$2
    shift 2
    # shellcheck disable=SC2086
    if [ "$ranks" = 1 ]; then
        timeout 60 "$TAGINE" train $common "$@" >out 2>err
    else
        timeout 60 "mpirun.$mpi" -np "$ranks" "$TAGINE" train $common --comm mpi "$@" >out 2>err
    fi
}
weights() { cksum <"$1/model/model.safetensors"; }
losses() { sed -n 's/.*"step":\([0-9]*\).*"images":\([0-9]*\),"loss":\([^,]*\).*/\1 \2 \3/p' "$1/metrics.jsonl"; }
# close A B: the same steps and photos, and losses to 1e-5
close() {
    losses "$1" >a
    losses "$2" >b
    paste -d' ' a b | awk '$1 != $4 || $2 != $5 || ($3 / $6 - 1) ^ 2 > 1e-10 { bad = 1; print } END { exit bad || NR < 20 }'
}

run none 1 --epochs 3 --batch-size 12 --output one || fail "one rank"
for mpi in $mpis; do
    for zero in 0 1; do
        run "$mpi" 2 --epochs 3 --batch-size 6 --zero $zero --output "two-$mpi-$zero" || fail "$mpi: two ranks"
        close one "two-$mpi-$zero" || fail "$mpi: two ranks are not one"
    done
    [ "$(weights "two-$mpi-0")" = "$(weights "two-$mpi-1")" ] || fail "$mpi: in shares or not"
    [ "$(weights "two-${mpis%% *}-0")" = "$(weights "two-$mpi-0")" ] || fail "$mpi: other bits than ${mpis%% *}"
done
mpi=${mpis%% *}
run "$mpi" 3 --epochs 3 --global-batch-size 12 --zero 1 --output three || fail "three ranks"
close one three || fail "three ranks are not one"
grep -q '"ranks": *3' three/run.json || fail "run.json does not tell the ranks"
[ -s three/log/rank-2.log ] || fail "the third rank left no log"

# Stopped inside and between epochs, gone on with by another number of ranks.
for stage in "1 7 0" "2 13 1" "4 20 1" "3 24 0" "1 30 0"; do
    # shellcheck disable=SC2086
    set -- $stage
    run "$mpi" "$1" --epochs 3 --global-batch-size 12 --output chain --resume auto --steps "$2" --zero "$3" ||
        fail "chain: $1 ranks to step $2"
done
close one chain || fail "the chain 1 2 4 3 1 is not the unbroken run"

start_long() {
    rm -rf long
    run "$mpi" 3 --epochs 100000 --batch-size 4 --output "$work/long" --checkpoint-steps 20 \
        --eval-interval 100000 --stall-seconds 2 "$@" &
    await 60 test -e long/checkpoints/last || fail "no checkpoint"
}
goes_on() {
    at=$(sed -n 's/.*"step":\([0-9]*\),.*/\1/p' long/metrics.jsonl | tail -n 1)
    run "$mpi" 2 --epochs 100000 --global-batch-size 12 --output "$work/long" --eval-interval 100000 \
        --resume auto --steps $((at + 5)) || fail "$1: does not go on"
}

start_long
kill -9 "$(rank_process long 1)"
wait
grep -q 'rank 1 on .* is gone' err || fail "killed: who and where"
grep -q 'last checkpoint is whole: start again with --resume auto' err || fail "killed: what to do"
grep -q 'is gone' long/failure || fail "killed: no failure file"
goes_on killed

start_long --zero 1
stopped=$(rank_process long 2)
kill -STOP "$stopped"
await 30 grep -q '"exit": *5' long/run.json || fail "stopped: exit code 5"
kill -CONT "$stopped" 2>/dev/null
wait
grep -q 'nothing has moved for .*rank 2 on' err || fail "stopped: who and where"
goes_on stopped

start_long --zero 1
kill -TERM "$(rank_process long 1)"
wait
grep -q 'stopped on request' err || fail "asked to stop"
grep -q '"exit": *143' long/run.json || fail "asked to stop: exit code"
goes_on "asked to stop"

# Other options, other photos.
cp -r photos others
rm "$(find others/train -name '*.jpg' | head -n 1)"
for difference in "--lr 2e-3" "--drop-path 0.1" "--interpolation bilinear" "--steps 9" "--seed 1" "--data others"; do
    # shellcheck disable=SC2086
    timeout 60 "mpirun.$mpi" -np 1 "$TAGINE" train $common --comm mpi --epochs 1 --batch-size 6 --output unlike : \
        -np 1 "$TAGINE" train $common --comm mpi --epochs 1 --batch-size 6 --output unlike $difference \
        >out 2>err && fail "$difference on one rank alone"
    case $difference in
        "--data others") said="rank 1 on .* has other training photos" ;;
        "--lr 2e-3") said="rank 1 on .* has --lr 0.002, rank 0 on .* has 0.001" ;;
        *) said="rank 1 on .* has $difference, rank 0 on .* has" ;;
    esac
    grep -q -e "$said" err || fail "$difference: who differs"
done
exit 0
