# hosts.sh - several machines on this one, for tests and measurements of ranks that share a network.
#
#   . tests/dist/hosts.sh
#   hosts_need                   says why not and exits 77 where the system does not allow it
#   hosts_up N [RATE]            host1 .. hostN on a switch; RATE (100mbit): what each link carries each way
#   hosts_on I COMMAND...        runs a command on host I; 0: the head, where mpirun is started
#   hosts_mpirun MPI N COMMAND...   N ranks, one a host, by openmpi or mpich; options of mpirun may come first
#   hosts_cut I, hosts_mend I    pulls the cable of host I out of the switch, and puts it back
#   hosts_down                   ends all of them, with every process on them, as the shell's end does
#
# A host is a process in network, name, process and mount namespaces of its own, with a /dev/shm of its own
# (processes of two hosts have the same numbers, and libraries name what they keep there after them) and a cable
# (veth) to the switch (a bridge in the head's namespace); the head is 10.200.0.254, host I 10.200.0.I. Nothing is
# named outside of these namespaces, so runs side by side do not meet. The head's process namespace holds
# the hosts': when its first process ends the kernel ends whatever runs on any of them, mpirun too; and it
# ends within a second of this shell, even of its kill -9.
#
# Needed: packages iproute2 and util-linux; a kernel with bridge, veth and tbf; and either root with CAP_SYS_ADMIN and
# CAP_NET_ADMIN, or user namespaces for everybody (user.max_user_namespaces, on Debian before 11
# kernel.unprivileged_userns_clone, on Ubuntu from 24.04 kernel.apparmor_restrict_unprivileged_userns=0), in which the
# script then runs itself once more, as their root. The program, and a folder for TMPDIR, must be readable
# to that user.
#
# HOSTS_PIN=1: a host has one core, the machine's (I - 1) mod count. HOSTS_DIR is a folder for files,
# made by hosts_need and removed at the shell's end.

hosts_head=

hosts_skip() {
    echo "skipped: $*"
    exit 77
}

# Without such rights: once more, as root of a user namespace.
if [ -z "${HOSTS_USER:-}" ] && ! unshare --net --mount true 2>/dev/null; then
    if unshare --user --map-root-user --net --mount true 2>/dev/null; then
        HOSTS_USER=1 exec unshare --user --map-root-user sh "$0" "$@"
    fi
    hosts_skip "separate hosts need root, or user namespaces for everybody"
fi

hosts_need() {
    for hosts_tool in ip tc unshare nsenter taskset; do
        command -v $hosts_tool >/dev/null || hosts_skip "no $hosts_tool (packages iproute2, util-linux)"
    done
    hosts_said=$(unshare --net --uts --pid --mount --fork sh -c 'mount -t tmpfs shm /dev/shm && ip link add name b type bridge &&
        ip link add name v type veth peer name w && tc qdisc add dev v root tbf rate 1mbit burst 64kb latency 50ms' 2>&1) ||
        hosts_skip "no namespaces, bridge, veth or tbf for this user on this kernel: $hosts_said"
    HOSTS_DIR=$(mktemp -d) || exit 1
    trap 'hosts_down; rm -rf "$HOSTS_DIR"' EXIT
    trap 'exit 143' INT TERM HUP
    mkdir "$HOSTS_DIR/tmp" || exit 1
    export TMPDIR="$HOSTS_DIR/tmp" # libraries name what they keep there after host and process, as above
}

# hosts_start NAME COMMAND-PREFIX...: the first process of a host; its number goes to NAME.pid
hosts_start() {
    hosts_name=$1
    shift
    # shellcheck disable=SC2016  # the inner shell's words
    "$@" unshare --net --uts --pid --mount --fork --kill-child sh -c 'hostname "$1"
        mount -t tmpfs shm /dev/shm
        ip link set lo up
        read -r pid rest </proc/self/stat
        echo "$pid" >"$2.part"
        mv "$2.part" "$2"
        while [ -d "/proc/$3" ]; do sleep 1; done' sh "$hosts_name" "$HOSTS_DIR/$hosts_name.pid" $$ </dev/null >/dev/null 2>&1 &
    hosts_tries=0
    until [ -s "$HOSTS_DIR/$hosts_name.pid" ]; do
        hosts_tries=$((hosts_tries + 1))
        [ $hosts_tries -lt 400 ] || { echo "host $hosts_name does not start"; exit 1; }
        sleep 0.05
    done
}

# hosts_pid I
hosts_pid() {
    if [ "$1" = 0 ]; then cat "$HOSTS_DIR/head.pid"; else cat "$HOSTS_DIR/host$1.pid"; fi
}

hosts_core() {
    if [ "${HOSTS_PIN:-0}" = 1 ]; then echo $((($1 - 1) % $(nproc --all))); else echo "0-$(($(nproc --all) - 1))"; fi
}

hosts_on() {
    hosts_at=$1
    shift
    if [ "$hosts_at" = 0 ]; then
        nsenter -t "$(hosts_pid 0)" -n -u -p -m --wd="$PWD" -- "$@"
    else
        nsenter -t "$(hosts_pid "$hosts_at")" -n -u -p -m --wd="$PWD" -- taskset -c "$(hosts_core "$hosts_at")" "$@"
    fi
}

# Within the switch; not in its process namespace, so that numbers of processes mean the same.
hosts_switch() { nsenter -t "$(hosts_pid 0)" -n -- "$@"; }

# hosts_limit I DEVICE: the rate of what goes out there
hosts_limit() {
    hosts_at=$1 hosts_device=$2
    [ -z "$hosts_rate" ] ||
        hosts_on "$hosts_at" tc qdisc add dev "$hosts_device" root tbf rate "$hosts_rate" burst 64kb latency 50ms
}

hosts_up() {
    hosts_count=$1 hosts_rate=${2:-}
    hosts_start head
    hosts_head=$!
    hosts_switch ip link add name switch type bridge
    hosts_switch ip addr add 10.200.0.254/24 dev switch
    hosts_switch ip link set switch up
    hosts_i=1
    while [ "$hosts_i" -le "$hosts_count" ]; do
        hosts_start "host$hosts_i" nsenter -t "$(hosts_pid 0)" -p --
        hosts_switch ip link add name "v$hosts_i" type veth peer name eth0 netns "$(hosts_pid "$hosts_i")"
        hosts_switch ip link set "v$hosts_i" master switch up
        hosts_on "$hosts_i" ip addr add "10.200.0.$hosts_i/24" dev eth0
        hosts_on "$hosts_i" ip link set eth0 up
        hosts_limit 0 "v$hosts_i"
        hosts_limit "$hosts_i" eth0
        hosts_i=$((hosts_i + 1))
    done
    hosts_write_agent >"$HOSTS_DIR/agent"
    chmod +x "$HOSTS_DIR/agent"
}

# What mpirun starts its daemons with, in the place of ssh: AGENT [OPTION...] ADDRESS COMMAND...
hosts_write_agent() {
    cat <<END
#!/bin/sh
while [ "\${1#-}" != "\$1" ]; do shift; done
host=\${1##*.}
shift
pin=${HOSTS_PIN:-0}
cores=0-\$((\$(nproc --all) - 1))
[ "\$pin" = 0 ] || cores=\$(((host - 1) % \$(nproc --all)))
exec nsenter -t "\$(cat $HOSTS_DIR/host\$host.pid)" -n -u -p -m --wd="\$PWD" -- taskset -c "\$cores" sh -c "\$*"
END
}

hosts_mpirun() {
    hosts_mpi=$1 hosts_ranks=$2 hosts_list= hosts_i=1
    shift 2
    while [ "$hosts_i" -le "$hosts_ranks" ]; do
        hosts_list=$hosts_list${hosts_list:+,}10.200.0.$hosts_i:1
        hosts_i=$((hosts_i + 1))
    done
    if [ "$hosts_mpi" = openmpi ]; then
        OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
            hosts_on 0 mpirun.openmpi --mca plm_rsh_agent "$HOSTS_DIR/agent" --mca plm_rsh_no_tree_spawn 1 \
            --mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include 10.200.0.0/24 \
            --mca oob_tcp_if_include 10.200.0.0/24 --bind-to none --host "$hosts_list" -np "$hosts_ranks" "$@"
    else
        UCX_TLS=tcp,self UCX_NET_DEVICES=eth0 hosts_on 0 mpirun.mpich -launcher ssh -launcher-exec "$HOSTS_DIR/agent" -localhost 10.200.0.254 \
            -bind-to none -hosts "$hosts_list" -n "$hosts_ranks" "$@"
    fi
}

hosts_cut() { hosts_switch ip link set "v$1" down; }
hosts_mend() { hosts_switch ip link set "v$1" up; }

hosts_down() {
    [ -n "$hosts_head" ] || return 0
    kill -9 "$hosts_head" 2>/dev/null
    wait "$hosts_head" 2>/dev/null
    hosts_head=
    rm -f "$HOSTS_DIR"/*.pid
}
