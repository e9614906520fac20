#!/usr/bin/env bash
# What the jobs in samples/slurm need of Slurm, on this machine alone: called as sbatch, srun or scontrol. All nodes are
# this host. As Slurm does, it copies the job script before it runs, gives options of the command line precedence over
# #SBATCH lines, refuses options that it does not know, and ends a step of which a task has failed.
set -euo pipefail
name=$(basename "$0")
die() {
    echo "$name: error: $*" >&2
    exit 1
}

case $name in
sbatch)
    options=() nodes=1 tasks=1
    output=slurm-%j.out job=name
    take() { # an option and its value
        case $1 in
        --nodes=*) nodes=${1#*=} ;;
        --ntasks-per-node=*) tasks=${1#*=} ;;
        --cpus-per-task=*) export SLURM_CPUS_PER_TASK=${1#*=} ;;
        --output=*) output=${1#*=} ;;
        --job-name=*) job=${1#*=} ;;
        --time=??:??:?? | --wait) ;;
        *) die "unrecognized option '$1'" ;;
        esac
    }
    while [[ ${1:-} == --* ]]; do options+=("$1") && shift; done
    while read -r line; do take "$line"; done < <(sed -n 's/^#SBATCH //p' "$1")
    for option in "${options[@]}"; do take "$option"; done
    export SLURM_JOB_ID=${FAKE_JOB_ID:-$$} SLURM_JOB_NUM_NODES=$nodes SLURM_NTASKS_PER_NODE=$tasks
    export SLURM_NTASKS=$((nodes * tasks)) SLURM_PROCID=0 SLURM_JOB_NODELIST=localhost
    script=$(mktemp)
    cp "$1" "$script" && shift
    output=${output//%j/$SLURM_JOB_ID}
    echo "Submitted batch job $SLURM_JOB_ID"
    status=0
    bash "$script" "$@" > "${output//%x/$job}" 2>&1 < /dev/null || status=$?
    rm "$script"
    exit $status
    ;;
scontrol)
    [[ $# == 3 && $1 == show && $2 == hostnames ]] || die "only show hostnames LIST"
    echo "$3"
    ;;
srun)
    [[ -n ${SLURM_JOB_ID:-} ]] || die "only within a job"
    while [[ ${1:-} == --* ]]; do
        case $1 in
        --cpus-per-task=* | --kill-on-bad-exit=1) ;;
        *) die "unrecognized option '$1'" ;;
        esac
        shift
    done
    export SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=$SLURM_NTASKS SLURM_STEP_NODELIST=localhost
    export SLURM_STEP_TASKS_PER_NODE="$SLURM_NTASKS_PER_NODE(x$SLURM_JOB_NUM_NODES)"
    tasks=()
    for ((rank = 0; rank < SLURM_NTASKS; ++rank)); do
        SLURM_PROCID=$rank SLURM_LOCALID=$((rank % SLURM_NTASKS_PER_NODE)) \
            SLURM_NODEID=$((rank / SLURM_NTASKS_PER_NODE)) "$@" &
        tasks+=($!)
    done
    status=0
    for _ in "${tasks[@]}"; do
        code=0
        wait -n || code=$?
        if ((code)); then
            ((status)) || status=$code # of the one that failed, not of those that it ends
            kill "${tasks[@]}" 2> /dev/null || true
        fi
    done
    exit $status
    ;;
*) die "unknown command" ;;
esac
