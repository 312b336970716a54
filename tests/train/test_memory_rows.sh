#!/bin/sh
# A job says what it holds, as predicted and as allocated, in its log and in run.json; the peak of the process
# after the first step is what was predicted; ZeRO divides the optimizer's state by the ranks.
set -u
[ -x "${TAGINE:-}" ] || { echo "skipped: no program"; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
fail() { printf 'FAILED: %s\n' "$*"; cat out err 2>/dev/null; exit 1; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
# row KEY WHICH RUN: bytes of a row, "null" where they are not known
row() { sed -n "s/.*\"$1_bytes\":{[^}]*\"$2\":\([-0-9.e+a-z]*\).*/\1/p" "$3/run.json"; }
whole() { sed -n "s/.*\"$1\":\([-0-9.e+a-z]*\).*/\1/p" "$2/run.json"; }
holds() { awk "BEGIN { exit !($1) }" || fail "$1 does not hold: $2"; }

"$TAGINE" data synth --output photos --classes 4 --per-class 12 --img-size 64 --quiet >/dev/null || fail synth
common="--data photos --img-size 64 --patch-size 8 --num-heads 4 --embed-dim 192 --depth 4 --epochs 1 --threads 1
    --eval-interval 0 --steps 3 --model-ema"

# shellcheck disable=SC2086
"$TAGINE" train $common --batch-size 12 --output one >out 2>err || fail "one rank"
grep -q '^memory  *predicted  *allocated$' err || fail "no table"
grep -q '^  moments (AdamW)  *[0-9.]* MiB  *[0-9.]* MiB$' err || fail "no row of moments"
grep -q '^memory after the first step: at most' err || fail "no peak"
for key in weights gradients moments average activations batches; do
    holds "$(row $key most one) <= 1.001 * $(row $key predicted one) + 8192" $key
    holds "$(row $key most one) >= 0.9 * $(row $key predicted one)" $key
done
if [ -z "${TAGINE_SANITIZE:-}" ]; then
    holds "$(row prepared most one) <= 1.1 * $(row prepared predicted one)" "prepared copies"
    holds "($(whole peak_rss_bytes one) / $(whole predicted_bytes one) - 1) ^ 2 < 0.2 ^ 2" "peak against the sum"
fi
# shellcheck disable=SC2086
"$TAGINE" train $common --batch-size 12 --output silent --quiet >out 2>err || fail "quiet"
[ ! -s err ] || fail "--quiet says something"

# shellcheck disable=SC2086
"$TAGINE" distill $common --batch-size 12 --teacher one/model --kd-loss feature --output student >out 2>err ||
    fail "distill"
for key in teacher_weights gradients activations batches; do
    holds "$(row $key most student) <= 1.001 * $(row $key predicted student) + 8192" "distill: $key"
    holds "$(row $key most student) >= 0.9 * $(row $key predicted student)" "distill: $key"
done
holds "$(row teacher_weights most student) > 0" "distill: teacher"

for mpi in openmpi mpich; do
    [ -z "${TAGINE_SANITIZE:-}" ] && [ -f "$(dirname "$TAGINE")/tagine-comm-$mpi.so" ] &&
        command -v "mpirun.$mpi" >/dev/null || continue
    for ranks in 2 3 4; do
        # shellcheck disable=SC2086
        timeout 60 "mpirun.$mpi" -np $ranks "$TAGINE" train $common --global-batch-size 12 --zero 1 --comm mpi \
            --output "$mpi-$ranks" >out 2>err || fail "$mpi: $ranks ranks"
        grep -q '^memory of a rank  *predicted  *least  *most$' err || fail "$mpi: no table"
        state="($(row moments most "$mpi-$ranks") + $(row average most "$mpi-$ranks"))"
        alone="($(row moments most one) + $(row average most one))"
        holds "$state / $alone <= 1 / $ranks + 0.01" "$mpi: state of the optimizer on $ranks ranks"
        holds "$(row exchange most "$mpi-$ranks") <= $(row exchange predicted "$mpi-$ranks")" "$mpi: exchange"
        holds "$(row exchange most "$mpi-$ranks") >= 0.9 * $(row exchange predicted "$mpi-$ranks")" "$mpi: exchange"
        grep -q '^  exchange between ranks  *[0-9.]* MiB  *[0-9.]* MiB  *[0-9.]* MiB$' err || fail "$mpi: exchange at the start"
        holds "$(whole peak_rss_bytes "$mpi-$ranks") < 1.25 * $(whole predicted_bytes "$mpi-$ranks")" "$mpi: peak"
    done
    break
done
exit 0
