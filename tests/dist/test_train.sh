#!/bin/sh
# Ranks on hosts of their own train what one rank trains: the same losses, in shares, over fast and slow links.
set -u
. "$TAGINE_SOURCE_DIR/tests/dist/hosts.sh"
. "$TAGINE_SOURCE_DIR/tests/dist/work.sh"
work_begin

work_alone 30 one || fail "one rank"
hosts_up 4
for ranks in 2 4; do
    hosts_mpirun openmpi $ranks timeout 60 "$TAGINE" train $work_options --comm mpi --zero 1 --steps 30 --output "fast-$ranks" \
        >out 2>err || fail "$ranks hosts"
    work_close one "fast-$ranks" 1 30 1e-5 || fail "$ranks hosts are not one rank"
done
grep -q '"ranks": *4' fast-4/run.json || fail "run.json does not tell the ranks"
hosts_down

# A rank's part of a gradient is rounded to bfloat16 once, by at most 2^-9 of itself. AdamW moves an element by
# lr times a ratio of which that changes at most 2 x 2^-9 (two moments); where ranks' parts cancel it changes more,
# and matters less, as the gradient is small there. Roundings of different elements are independent: together
# they change a step's loss by 2 x 2^-9 x lr x |g|_2 (one standard deviation at the most), of all parts, for
# which twice the sum's norm is allowed. Four deviations, and every step adds as much.
hosts_up 3 100mbit
hosts_mpirun openmpi 3 timeout 60 "$TAGINE" train $work_options --comm mpi --zero 1 --steps 30 --output slow \
    --reduce-dtype bfloat16 >out 2>err || fail "three hosts, slow links, bfloat16"
bound=$(work_column grad_norm one | awk '$1 > most { most = $1 }
    END { print 4 * 2 * 2 ^ -9 * 1e-3 * 2 * most * NR }')
work_close one slow 1 30 0 "$bound" || fail "bfloat16 on the wire: further from one rank than $bound"
echo "bfloat16 on the wire: losses within $bound"
work_close one slow 1 30 1e-7 >/dev/null && fail "bfloat16 on the wire changes nothing"
exit 0
