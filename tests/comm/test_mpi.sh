#!/bin/sh
# Ranks under the launchers that are installed: they find one another, exchange, and a process that was
# started as one of many never works alone.
set -u
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
fail() { printf 'FAILED: %s\n' "$*"; cat out err 2>/dev/null; exit 1; }
[ -z "${TAGINE_SANITIZE:-}" ] || { echo "skipped: MPI is not built for sanitizers"; exit 77; }

# Objects on stdout; an MPI's own transport may write warnings there too (UCX without /sys does).
objects() { grep '^{' out; }
# field NAME: of the first object
field() { objects | sed -n "1s/.*\"$1\":\([^,}]*\).*/\1/p"; }

tried=0
for mpi in openmpi mpich; do
    [ -f "$(dirname "$TAGINE")/tagine-comm-$mpi.so" ] && command -v "mpirun.$mpi" >/dev/null || {
        echo "left out: $mpi is not installed"
        continue
    }
    tried=$((tried + 1))
    for ranks in 2 3; do
        timeout 60 "mpirun.$mpi" -np $ranks "$TAGINE" bench comm --comm mpi --json --mib 0.01 2 --repeats 2 \
            >out 2>err || fail "$mpi, $ranks ranks"
        [ "$(objects | wc -l)" = 7 ] || fail "$mpi: one line for each collective and size, by one rank"
        [ "$(field ranks)" = $ranks ] || fail "$mpi: $ranks ranks"
    done
    timeout 60 "mpirun.$mpi" -np 2 "$TAGINE" bench comm --json >out 2>err && fail "$mpi: two alone"
    grep -q 'add --comm mpi' err || fail "$mpi: says what to add"
done
[ $tried -gt 0 ] || { echo "skipped: no MPI is installed"; exit 77; }

# Not started by a launcher, or by another one's.
"$TAGINE" bench comm --comm mpi >out 2>err
[ $? = 2 ] || fail "no launcher: wrong usage"
grep -q 'mpirun -np' err || fail "no launcher: says how to start"
if command -v mpirun.openmpi >/dev/null; then
    OMPI_COMM_WORLD_SIZE=3 timeout 60 "$TAGINE" bench comm --comm mpi >out 2>err && fail "three promised, one there"
    grep -q 'started 3 ranks' err || fail "three promised, one there: says so"
fi
SLURM_STEP_NUM_TASKS=4 "$TAGINE" bench comm >out 2>err
[ $? = 2 ] || fail "srun without MPI: wrong usage"
exit 0
