#!/usr/bin/env bash
# Starts a Slurm cluster with this machine as its only node, and a job of shardscope-train on it with srun.
#
#   srun.sh SHARDSCOPE_TRAIN JOB.toml
#
# Runs without an MPI, with one (--mpi=pmix), and with run.comm = "mpi" without that option. Exit status 77, with the
# reason: Slurm is not installed (Debian: slurmd slurmctld slurm-client munge), or it does not start.
set -euo pipefail
skip() {
    echo "srun: skipped: $*"
    exit 77
}
for tool in munged mungekey slurmctld slurmd srun sinfo; do
    command -v $tool > /dev/null || skip "$tool is not installed"
done
((EUID == 0)) || skip "slurmd must be started by root"
train=$(realpath "$1") job=$(realpath "$2")
work=$(mktemp -d)
servers=()
cleanup() {
    for server in "${servers[@]}"; do kill "$server" 2> /dev/null || true; done
    wait
    rm -rf "$work"
}
trap cleanup EXIT

# --- a private cluster: keys, sockets, ports and files of its own ----------------------------------------------------
node=$(hostname -s)
port=$((10000 + $$ % 5000))
mkdir "$work/state" "$work/spool"
chmod 755 "$work"
mungekey --create --keyfile="$work/key"
munged --foreground --force --key-file="$work/key" --socket="$work/munge" --pid-file="$work/munged.pid" \
    --log-file="$work/munged.log" --seed-file="$work/seed" 2> "$work/munged.err" &
servers+=($!)
cat > "$work/slurm.conf" << END
ClusterName=test
SlurmctldHost=$node
SlurmctldPort=$port
SlurmdPort=$((port + 1))
AuthType=auth/munge
AuthInfo=socket=$work/munge
CredType=cred/munge
SlurmUser=root
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
MpiDefault=none
NodeName=$node NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
END
export SLURM_CONF=$work/slurm.conf
slurmctld -D > "$work/slurmctld.log" 2>&1 &
servers+=($!)
slurmd -D > "$work/slurmd.log" 2>&1 &
servers+=($!)
for ((i = 0; i < 100; ++i)); do
    [[ $(sinfo --noheader --format %t 2> /dev/null || true) == idle ]] && break
    sleep 0.2
done
if ((i == 100)); then
    tail -n 5 "$work"/*.log
    skip "Slurm does not start here"
fi

# --- jobs ----------------------------------------------------------------------------------------------------------
fail() {
    echo "srun: $*"
    cat "$work/err"
    exit 1
}
# start OPTION ... -- KEY ...: starts the job; its messages are in err, its output in out.
start() {
    local options=()
    while [[ $1 != -- ]]; do options+=("$1") && shift; done
    shift
    timeout 100 srun "${options[@]}" --overcommit -n 2 "$train" "$job" --model.width=64 --run.steps=4 --format json "$@" \
        > "$work/out" 2> "$work/err"
}
losses() { grep -o '"losses": *\[[^]]*\]' "$work/out" | tr -d ' \n' || tr -d ' \n' < "$work/out" | grep -o '"losses":\[[^]]*\]'; }

start -- || fail "the job ends with status $?"
grep -q '2 processes on 1 host, started by srun, collectives over TCP' "$work/err" || fail "it does not say what it runs on"
over_tcp=$(losses)
[[ -n $over_tcp ]] || fail "there are no losses"

if start -- --run.comm=mpi; then fail "an MPI that srun did not start is used"; fi
grep -q 'srun --mpi=pmix' "$work/err" || fail "it does not say what to do"

if srun --mpi=list 2>&1 | grep -q pmix && [[ -e $(dirname "$train")/../lib/libshardscope_mpi.so ]]; then
    start --mpi=pmix -- || fail "the job over MPI ends with status $?"
    grep -q 'started by srun, collectives over Open MPI' "$work/err" || fail "it does not say that it uses MPI"
    [[ $(losses) == "$over_tcp" ]] || fail "the losses over MPI are others: $(losses) and $over_tcp"
else
    echo "srun: without --mpi=pmix: this Slurm has none, or Shardscope was built without MPI"
fi
echo "srun: all as it should be"
