# A private Slurm cluster with this machine as its only node: keys, sockets, ports and files of its own. To be sourced.
# shellcheck shell=bash
servers=()
no_cluster="" # why there is none

# start_cluster FOLDER: starts it there and sets SLURM_CONF; status 1 if Slurm is not installed or does not start.
start_cluster() {
    local folder=$1 tool node port i
    for tool in munged mungekey slurmctld slurmd srun sinfo; do
        command -v $tool > /dev/null || { no_cluster="$tool is not installed" && return 1; }
    done
    ((EUID == 0)) || { no_cluster="slurmd must be started by root" && return 1; }
    node=$(hostname -s)
    port=$((10000 + $$ % 5000))
    mkdir "$folder/state" "$folder/spool"
    chmod 755 "$folder"
    mungekey --create --keyfile="$folder/key"
    munged --foreground --force --key-file="$folder/key" --socket="$folder/munge" --pid-file="$folder/munged.pid" \
        --log-file="$folder/munged.log" --seed-file="$folder/seed" 2> "$folder/munged.err" &
    servers+=($!)
    cat > "$folder/slurm.conf" << END
ClusterName=test
SlurmctldHost=$node
SlurmctldPort=$port
SlurmdPort=$((port + 1))
AuthType=auth/munge
AuthInfo=socket=$folder/munge
CredType=cred/munge
SlurmUser=root
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
MpiDefault=none
NodeName=$node NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
END
    export SLURM_CONF=$folder/slurm.conf
    slurmctld -D > "$folder/slurmctld.log" 2>&1 &
    servers+=($!)
    slurmd -D > "$folder/slurmd.log" 2>&1 &
    servers+=($!)
    for ((i = 0; i < 100; ++i)); do
        [[ $(sinfo --noheader --format %t 2> /dev/null || true) == idle ]] && return 0
        sleep 0.2
    done
    tail -n 5 "$folder"/*.log
    # shellcheck disable=SC2034 # the caller's
    no_cluster="Slurm does not start here"
    return 1
}

stop_cluster() {
    local server
    for server in "${servers[@]}"; do kill "$server" 2> /dev/null || true; done
    wait
}
