#!/bin/sh
# Ranks under the launchers that are installed: they find one another, exchange, and a process that was
# started as one of many never works alone.
set -u
. "$TAGINE_SOURCE_DIR/tests/support/mpi.sh"
mpi_begin
mpi_need

# Objects on stdout; an MPI's own transport may write warnings there too (UCX without /sys does).
objects() { grep '^{' out; }
# field NAME: of the first object
last() { objects | sed -n "\$s/.*\"$1\":\([^,}]*\).*/\1/p"; }
field() { objects | sed -n "1s/.*\"$1\":\([^,}]*\).*/\1/p"; }

echo "with $mpis"
for mpi in $mpis; do
    for ranks in 2 3; do
        timeout 60 "mpirun.$mpi" -np $ranks "$TAGINE" bench comm --comm mpi --json --mib 0.01 2 --repeats 2 \
            >out 2>err || fail "$mpi, $ranks ranks"
        [ "$(objects | wc -l)" = 8 ] || fail "$mpi: one line for each collective and size, by one rank"
        [ "$(field ranks)" = $ranks ] || fail "$mpi: $ranks ranks"
        # 2 MiB to each of the others in messages of 60 KiB, out and back; packets are known (>= 0) or null, never absent
        [ "$(last messages)" = $(((ranks - 1) * 2 * ((2048 / ranks + 60) / 60))) ] || fail "$mpi: messages"
        awk "BEGIN { exit !($(last cpu_ns) > 0 && $(last cpu_ns) < 2e9 * $(last seconds) && $(last cpu_ns_per_message) > 0) }" ||
            fail "$mpi: core time of the thread: $(objects | tail -n 1)"
        case $(last packets_ns) in null | [0-9]*) ;; *) fail "$mpi: packets: $(objects | tail -n 1)" ;; esac
    done
    timeout 60 "mpirun.$mpi" -np 2 "$TAGINE" bench comm --json >out 2>err && fail "$mpi: two alone"
    grep -q 'add --comm mpi' err || fail "$mpi: says what to add"
done

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
