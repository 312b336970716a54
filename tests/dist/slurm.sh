# slurm.sh - a Slurm cluster of hosts on this machine, for tests; sourced after hosts.sh.
#
#   slurm_need                   says why not and exits 77 where packages are missing or the user may not
#   slurm_up N                   controller on the head, a node on each of host1 .. hostN, named after it, after hosts_up;
#                                each node says that it has 2 cores
#   slurm COMMAND...             runs sbatch, srun, scontrol ... on the head, as root of the cluster
#   slurm_state JOB              PENDING, RUNNING, COMPLETED ...; nothing when the job is not known
#   slurm_logs                   the last lines of the daemons
#
# The daemons' configuration, state, sockets, key and logs are in HOSTS_DIR/slurm, and their ports are those of
# the hosts' own network: a Slurm or munge of the system and runs side by side do not meet. They end with the hosts.
# Each host has a munged of its own, as it must: one would take what all nodes are sent for a replay.

slurm_need() {
    for slurm_tool in munged mungekey slurmctld slurmd srun sbatch scontrol; do
        command -v $slurm_tool >/dev/null || hosts_skip "no $slurm_tool (packages slurm-wlm, munge)"
    done
    # The daemons give up groups, which a user namespace of one user forbids.
    ! grep -qs deny /proc/self/setgroups || hosts_skip "Slurm needs root: its daemons may not set their groups otherwise"
}

# Devices (and with them cgroups), limits and accounting are not what is tested.
slurm_configuration() {
    cat <<END
ClusterName=tagine
SlurmctldHost=head(10.200.0.254)
AuthType=auth/munge
AuthInfo=socket=$slurm_dir/munge/socket
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$slurm_dir/state
SlurmdSpoolDir=$slurm_dir/spool.%n
TmpFS=$slurm_dir/tmp.%n
SlurmctldPidFile=$slurm_dir/controller.pid
SlurmdPidFile=$slurm_dir/%n.pid
SlurmctldLogFile=$slurm_dir/controller.log
SlurmdLogFile=$slurm_dir/%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SwitchType=switch/none
MpiDefault=none
PropagateResourceLimits=NONE
ReturnToService=2
KillWait=10
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1
END
    slurm_i=1
    while [ "$slurm_i" -le "$1" ]; do
        echo "NodeName=host$slurm_i NodeAddr=10.200.0.$slurm_i CPUs=2 RealMemory=1000"
        slurm_i=$((slurm_i + 1))
    done
    echo "PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP"
}

slurm() { SLURM_CONF=$slurm_dir/slurm.conf hosts_on 0 "$@"; }

# slurm_await COMMAND...
slurm_await() {
    slurm_ticks=600
    until "$@"; do
        slurm_ticks=$((slurm_ticks - 1))
        [ $slurm_ticks -gt 0 ] || { slurm_logs; echo "FAILED: $*: not within 60 s"; exit 1; }
        sleep 0.1
    done
}
slurm_nodes_idle() { [ "$(slurm sinfo --noheader --Node --format=%T 2>/dev/null | grep -c '^idle$')" = "$1" ]; }

slurm_address() { if [ "$1" = 0 ]; then echo 10.200.0.254; else echo "10.200.0.$1"; fi; }

# slurm_munge I: the socket is found under the same path on every host.
slurm_munge() {
    hosts_on "$1" mount -t tmpfs -o mode=755 munge "$slurm_dir/munge" || exit 1
    # forced: folders above may belong to others
    hosts_on "$1" munged --foreground --force --socket="$slurm_dir/munge/socket" --key-file="$slurm_dir/key" \
        --pid-file="$slurm_dir/munge/pid" --seed-file="$slurm_dir/munge/seed" --log-file="$slurm_dir/munge/log" \
        --origin="$(slurm_address "$1")" \
        </dev/null >"$slurm_dir/munge$1.out" 2>&1 &
    slurm_await hosts_on "$1" test -S "$slurm_dir/munge/socket"
}

slurm_up() {
    slurm_dir=$HOSTS_DIR/slurm
    mkdir -p "$slurm_dir/state" "$slurm_dir/munge"
    chmod 755 "$HOSTS_DIR" "$slurm_dir" "$slurm_dir/munge"
    slurm_configuration "$1" >"$slurm_dir/slurm.conf"
    slurm_version=$(slurmd -V | sed -n 's/[^0-9]*\([0-9]*\)\.\([0-9]*\).*/\1\2/p')
    # it looks for cgroups otherwise, also where nothing is to use them
    [ "${slurm_version:-0}" -lt 2311 ] || echo CgroupPlugin=disabled >"$slurm_dir/cgroup.conf"
    mungekey --create --keyfile="$slurm_dir/key" || exit 1
    slurm_i=0
    while [ "$slurm_i" -le "$1" ]; do
        slurm_munge "$slurm_i"
        slurm_i=$((slurm_i + 1))
    done
    hosts_on 0 slurmctld -D -f "$slurm_dir/slurm.conf" </dev/null >"$slurm_dir/controller.out" 2>&1 &
    slurm_i=1
    while [ "$slurm_i" -le "$1" ]; do
        mkdir "$slurm_dir/spool.host$slurm_i" "$slurm_dir/tmp.host$slurm_i"
        hosts_on "$slurm_i" slurmd -D -N "host$slurm_i" -f "$slurm_dir/slurm.conf" \
            </dev/null >"$slurm_dir/host$slurm_i.out" 2>&1 &
        slurm_i=$((slurm_i + 1))
    done
    slurm_await slurm_nodes_idle "$1"
}

slurm_state() { slurm scontrol --oneliner show job "$1" 2>/dev/null | sed -n 's/.* JobState=\([A-Z_]*\) .*/\1/p'; }

slurm_logs() { tail -n 15 "$slurm_dir"/*.log "$slurm_dir"/*.out 2>/dev/null; }
