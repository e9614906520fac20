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
# shellcheck source=tests/tools/train/slurm_cluster.sh
source "$(dirname "${BASH_SOURCE[0]}")/slurm_cluster.sh"
train=$(realpath "$1") job=$(realpath "$2")
work=$(mktemp -d)
trap 'stop_cluster; rm -rf "$work"' EXIT
start_cluster "$work" || skip "$no_cluster"

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
