# mpi.sh - what tests that start ranks of the program with mpirun share; sourced.
#
#   . "$TAGINE_SOURCE_DIR/tests/support/mpi.sh"
#   mpi_begin                    a folder of the test's own, where it goes on; removed at its end
#   mpi_need                     skips where no MPI is installed; else $mpis is the list of those that are,
#                                and $mpi the first of them
#   fail WORDS...                says so, with what $fail_shows names, and ends the test
#   mpi_photos FOLDER COUNT PX   generated photos, COUNT of each of 4 kinds
#   rank_process RUN RANK        the number of the process of a rank
#   await                        of await.sh

. "$TAGINE_SOURCE_DIR/tests/support/await.sh"

fail_shows="out err"

fail() {
    printf 'FAILED: %s\n' "$*"
    # shellcheck disable=SC2086
    tail -n 40 $fail_shows 2>/dev/null
    exit 1
}

mpi_begin() {
    [ -n "${TAGINE:-}" ] || { echo "skipped: the program was not built"; exit 77; }
    [ -z "${TAGINE_SANITIZE:-}" ] || { echo "skipped: MPI is not built for sanitizers"; exit 77; }
    work=$(mktemp -d) || exit 1
    trap 'rm -rf "$work" 2>/dev/null' EXIT
    cd "$work" || exit 1
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
    mpis=
    for mpi in openmpi mpich; do
        [ -f "$(dirname "$TAGINE")/tagine-comm-$mpi.so" ] && command -v "mpirun.$mpi" >/dev/null && mpis="$mpis $mpi"
    done
    mpis=${mpis# }
    mpi=${mpis%% *}
}

mpi_need() {
    [ -n "$mpis" ] || { echo "skipped: no MPI is installed"; exit 77; }
}

mpi_photos() {
    "$TAGINE" data synth --output "$1" --classes 4 --per-class "$2" --img-size "$3" --quiet >/dev/null || fail synth
}

# The log file that it holds open says which one it is.
rank_process() {
    rank_fd=$(find /proc/[0-9]*/fd -maxdepth 1 -lname "$(readlink -f "$1")/log/rank-$2.log" 2>/dev/null | head -n 1)
    rank_fd=${rank_fd#/proc/}
    [ -n "$rank_fd" ] && echo "${rank_fd%%/*}"
}
