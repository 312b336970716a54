#!/bin/sh
# Cores among the ranks of one machine as launchers really start them, and promises of launchers that do
# not come true.
set -u
. "$TAGINE_SOURCE_DIR/tests/support/mpi.sh"
mpi_begin

# Alone, among processes that a scheduler started: refused. A batch script of a job with tasks: one process.
small="--img-size 32 --patch-size 8 --num-heads 2 --embed-dim 32 --depth 1 --batch-size 4 --steps 1 --warmup 0 --json"
# refused WORDS VARIABLES...: the processes that WORDS speak of, and what to add
refused() {
    words=$1
    shift
    # shellcheck disable=SC2086
    env "$@" "$TAGINE" bench train $small >out 2>err
    [ $? = 2 ] || fail "$*: not refused as wrong usage"
    grep -q "$words" err && grep -q 'add --comm mpi' err || fail "$*: says what is wrong"
}
refused 'started 4 processes (SLURM_STEP_NUM_TASKS)' SLURM_STEP_NUM_TASKS=4 SLURM_NTASKS=4 SLURM_PROCID=0
refused 'started 4 processes (SLURM_PROCID)' SLURM_NTASKS=4 SLURM_PROCID=2
refused 'started 3 processes (SLURM_PROCID)' SLURM_PROCID=2
refused 'started 4 processes (SLURM_STEP_NUM_TASKS)' PMIX_RANK=0 SLURM_STEP_NUM_TASKS=4
refused 'started 2 processes (OMPI_COMM_WORLD_SIZE)' OMPI_COMM_WORLD_SIZE=2 SLURM_STEP_NUM_TASKS=1
refused 'started 3 processes (PMI_SIZE)' PMI_RANK=0 PMI_SIZE=3
# MPICH's launcher that srun started
refused 'started 3 processes (PMI_SIZE)' HYDI_CONTROL_FD=7 PMI_RANK=0 PMI_SIZE=3 PMIX_RANK=0 SLURM_STEP_NUM_TASKS=1
# srun without MPI: --comm mpi cannot help, and the first one says what does
for rank in 0 1; do
    # shellcheck disable=SC2086
    SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=$rank "$TAGINE" bench train --comm mpi $small >out 2>err
    [ $? = 2 ] || fail "srun without MPI, rank $rank: not refused as wrong usage"
    [ "$(grep -c 'srun --mpi=pmix' err)" = $((1 - rank)) ] || fail "srun without MPI: not said by the first one alone"
done
# shellcheck disable=SC2086
SLURM_NTASKS=4 SLURM_PROCID=0 "$TAGINE" bench train $small >out 2>err || fail "a batch script may run one process"
# shellcheck disable=SC2086
SLURM_STEP_NUM_TASKS=1 SLURM_PROCID=0 "$TAGINE" bench train $small >out 2>err || fail "srun of one task"

[ -n "$mpis" ] || { echo "left out: no MPI is installed"; exit 0; }

# Promised more ranks than MPI finds: each would train for itself.
# alone MPI VARIABLES...
alone() {
    mpi=$1
    shift
    case $mpis in *"$mpi"*) ;; *) return ;; esac
    # shellcheck disable=SC2086
    env "$@" timeout 60 "$TAGINE" bench train --comm mpi $small >out 2>err && fail "$*: works alone"
    grep -q 'they do not belong together' err || fail "$*: says what is wrong"
}
alone openmpi OMPI_COMM_WORLD_SIZE=3
alone openmpi PMIX_RANK=0 SLURM_STEP_NUM_TASKS=4
alone mpich PMI_RANK=0 PMI_SIZE=3
# What the launcher's own launcher left in the environment is not what started this rank.
case $mpis in *mpich*)
    # shellcheck disable=SC2086
    PMIX_RANK=0 SLURM_STEP_NUM_TASKS=1 timeout 60 mpirun.mpich -np 2 "$TAGINE" bench train --comm mpi $small >out 2>err ||
        fail "mpirun of MPICH below srun"
    [ "$(grep -c '"images_per_s"' out)" = 1 ] || fail "mpirun of MPICH below srun: each rank worked alone"
    ;;
esac

cores=$(nproc)
[ "$cores" -ge 2 ] || { echo "left out: one core cannot be divided"; exit 0; }
mpi_photos photos 4 32
# train MPI RANKS BINDING OPTIONS...
train() {
    mpi=$1 ranks=$2 binding=$3
    shift 3
    rm -rf run
    # shellcheck disable=SC2086
    timeout 60 "mpirun.$mpi" $binding -np "$ranks" "$TAGINE" train --comm mpi --data photos --img-size 32 \
        --patch-size 8 --num-heads 2 --embed-dim 32 --depth 1 --global-batch-size 8 --epochs 1 --output run "$@" \
        >out 2>err
}
# each FIELD: its values in run.json, one a line, in the order of ranks
each() { sed 's/.*"each":\[\([^]]*\)\].*/\1/' run/run.json | tr '{' '\n' | sed -n "s/.*\"$1\":\"\{0,1\}\([^\",}]*\).*/\1/p"; }

for mpi in $mpis; do
    case $mpi in openmpi) free="--bind-to none" tied="--bind-to core" ;; *) free="-bind-to none" tied="-bind-to core" ;; esac
    train "$mpi" 2 "$free" || fail "$mpi: two ranks, not bound"
    [ "$(each bound | sort -u)" = true ] || fail "$mpi: not bound to their parts"
    [ "$(each threads | awk '{ s += $1 } END { print s }')" = "$cores" ] || fail "$mpi: threads are not as many as cores"
    [ "$(each cores | sort -u | wc -l)" = 2 ] || fail "$mpi: the same cores"
    [ "$(each host | wc -l)" = 2 ] && [ "$(each rank | tr '\n' ' ')" = "0 1 " ] || fail "$mpi: host and rank"
    grep -q 'cores: .*: 2 ranks of .* divided among them' run/log/rank-0.log || fail "$mpi: the log says nothing"
    grep -q 'warning' err && fail "$mpi: a warning where nothing is wrong"

    train "$mpi" 2 "$free" --threads "$cores" || fail "$mpi: more threads than cores"
    [ "$(each bound | sort -u)" = false ] || fail "$mpi: bound, though the threads do not fit"
    [ "$(each threads | sort -u)" = "$cores" ] || fail "$mpi: --threads does not count"
    grep -q "warning: .*2 ranks have $((2 * cores)) compute threads together" err || fail "$mpi: no warning"

    train "$mpi" 1 "$tied" || fail "$mpi: one rank, bound"
    [ "$(each threads)" = 1 ] && [ "$(each bound)" = false ] || fail "$mpi: bound to one core: one thread"
    grep -q "warning: .*: 1 rank runs on 1 of $cores cores.*bind-to none" err || fail "$mpi: idle cores are not named"
done

# Two jobs on one machine. They do not divide its cores, and the second one says so; given cores of their own, they stay
# on these.
case $mpi in openmpi) free="--bind-to none" ;; *) free="-bind-to none" ;; esac
own=$(taskset -pc $$ | sed 's/.*: //; s/,/ /g' | tr ' ' '\n' | awk -F- '{ for (i = $1; i <= $NF; i++) print i }')
one=$(echo "$own" | sed -n 1p) two=$(echo "$own" | sed -n 2p)
# shellcheck disable=SC2086
taskset -c "$one" "mpirun.$mpi" $free -np 2 "$TAGINE" train --comm mpi --data photos --img-size 32 --patch-size 8 \
    --num-heads 2 --embed-dim 32 --depth 1 --global-batch-size 8 --epochs 100000 --eval-interval 100000 \
    --checkpoint-steps 50 --output first >first.out 2>first.err &
first=$!
await 60 test -e first/checkpoints/last || fail "two jobs: the first does not train"
train "$mpi" 2 "$free" || fail "two jobs: the second, on all cores"
grep -q 'cores: .*: [0-9]* processes of other jobs may run on [0-9]* of these' err || fail "two jobs: not said"
grep -q warning err && fail "two jobs: a warning"
rm -rf run
# shellcheck disable=SC2086
timeout 60 taskset -c "$two" "mpirun.$mpi" $free -np 2 "$TAGINE" train --comm mpi --data photos --img-size 32 --patch-size 8 \
    --num-heads 2 --embed-dim 32 --depth 1 --global-batch-size 8 --epochs 1 --output run >out 2>err ||
    fail "two jobs: the second, on a core of its own"
[ "$(each cores | sort -u)" = "$two" ] || fail "two jobs: the second is on $(each cores | tr '\n' ' '), not on $two"
kill "$first"
wait "$first"
rm -rf run
mv first run
[ "$(each cores | sort -u)" = "$one" ] || fail "two jobs: the first is on $(each cores | tr '\n' ' '), not on $one"
exit 0
