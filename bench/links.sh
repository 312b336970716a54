#!/bin/sh
# How much of a link the ranks of a job get, on hosts of their own, beside plain sockets there.
#
#   bench/links.sh BUILD MBIT [RANKS...]                  default: 2 3 4; BUILD: build/release
#
# Hosts are namespaces (tests/dist/hosts.sh; needs root or user namespaces, Open MPI and iproute2), one rank each,
# with links of MBIT each way. A line: ranks, dtype on the wire, collective, size, time of the slowest rank (median), and of the
# link: data that a rank sends over that time and MBIT. "sockets" is one phase by bench_sockets, all at once
# and by turns of 64 KiB. After a pause the links let 64 KB through at once, which lifts small sizes.
set -u
. "$(dirname "$0")/../tests/dist/hosts.sh"
[ $# -ge 2 ] || { sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }
build=$(readlink -f "$1") mbit=$2 repeats=${REPEATS:-5}
shift 2
[ $# -ge 1 ] || set -- 2 3 4
hosts_need

# collectives RANKS DTYPE
collectives() {
    hosts_mpirun openmpi "$1" "$build/tagine" bench comm --comm mpi --json --mib 0.25 1 2 4 16 --link-mbit "$mbit" \
        --repeats "$repeats" --reduce-dtype "$2" >"$HOSTS_DIR/out" 2>"$HOSTS_DIR/err" || { cat "$HOSTS_DIR/err"; exit 1; }
    awk -v ranks="$1" -v dtype="$2" 'function field(name) { match($0, "\"" name "\":[^,}]*")
            return substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 3) }
        /"link_share"/ { name = field("collective"); gsub(/"/, "", name)
            line(name, field("bytes"), field("seconds"), field("link_share")) }
        function line(name, bytes, seconds, share) {
            printf "%s %-9s %-15s %6.2f MiB %9.2f ms", ranks, dtype, name, bytes / 1048576, 1e3 * seconds
            print share == "null" ? "" : sprintf("  %.2f of the link", share) }' "$HOSTS_DIR/out"
}

# sockets RANKS PART WHAT
sockets() {
    list= sizes= others= i=1
    while [ $i -le "$1" ]; do list=$list${list:+,}10.200.0.$i i=$((i + 1)); done
    for kib in 256 1024 2048 4096 16384; do sizes="$sizes $((kib * 1024 / $1))"; done
    i=2
    while [ $i -le "$1" ]; do
        # shellcheck disable=SC2086  # a list
        hosts_on $i "$build/bench/bench_sockets" $((i - 1)) "$list" "$repeats" "$2" $sizes &
        others="$others $!" i=$((i + 1))
    done
    # shellcheck disable=SC2086
    hosts_on 1 "$build/bench/bench_sockets" 0 "$list" "$repeats" "$2" $sizes |
        awk -v ranks="$1" -v what="$3" -v mbit="$mbit" '{
            printf "%s %-25s %6.2f MiB %9.2f ms  %.2f of the link\n", ranks, what, $1 * ranks / 1048576, 1e3 * $2,
                $1 * (ranks - 1) * 8e-6 / $2 / mbit }'
    # shellcheck disable=SC2086
    wait $others
}

for ranks; do
    hosts_up "$ranks" "${mbit}mbit"
    collectives "$ranks" float32
    collectives "$ranks" bfloat16
    sockets "$ranks" 0 "sockets, all at once"
    sockets "$ranks" 65536 "sockets, by turns"
    hosts_down
done
