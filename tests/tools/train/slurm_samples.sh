#!/usr/bin/env bash
# Submits the jobs of samples/slurm to a Slurm of this machine or, where none is installed, to fake_slurm.sh.
#
#   slurm_samples.sh FOLDER_OF_THE_TOOLS SAMPLES JOB_PROGRAM
#
# The programs that are recorded are those of samples/pytorch with $SHARDSCOPE_PYTHON, if it has PyTorch; else stand_in
# below takes the place of Python, and JOB_PROGRAM, which has NVTX ranges, that of the script.
set -euo pipefail
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
PATH=$(realpath "$1"):$PATH
samples=$(realpath "$2") job_program=$(realpath "$3")
work=$(mktemp -d)
finish() { rm -rf "$work"; }
trap finish EXIT
mkdir "$work/fake" "$work/run"
fail() {
    echo "slurm_samples: $*"
    tail -n 40 "$work"/run/*.out
    exit 1
}

real=false nodes=2
if command -v slurmctld > /dev/null; then
    # shellcheck source=tests/tools/train/slurm_cluster.sh
    source "$here/slurm_cluster.sh"
    if start_cluster "$work"; then
        real=true nodes=1
        trap 'stop_cluster; finish' EXIT
    fi
fi
if ! $real; then
    for name in sbatch srun scontrol; do ln -s "$here/fake_slurm.sh" "$work/fake/$name"; done
    PATH=$work/fake:$PATH
fi
echo "slurm_samples: $(command -v sbatch), $nodes nodes"
cd "$work/run"

# attempt TASKS SCRIPT ...: its status is the job's. submit: it must be 0.
attempt() {
    timeout 100 sbatch --wait --nodes=$nodes --ntasks-per-node="$1" --cpus-per-task=1 "$samples/slurm/$2" "${@:3}" \
        > "$work/submitted"
}
submit() { attempt "$@" || fail "$2 ends with status $?"; }
expect() { # FILE TEXT
    grep -qF -- "$2" "$1" || fail "$1 does not say: $2"
}
ranks_in() { shardscope-trace query "$1" 'SELECT count(*) FROM SHARD_RANKS' --format csv | tail -n 1; }

# --- the trainer -----------------------------------------------------------------------------------------------------
submit 2 train.sbatch "$samples/mlp.toml" --model.width=64 --run.steps=4
expect shardscope-*.out "$((2 * nodes)) processes on 1 host, started by srun"
expect shardscope-*.out "Loss: first"
[[ $(ranks_in mlp-*.sqlite) == "$((2 * nodes))" ]] || fail "the trace of train.sbatch has $(ranks_in mlp-*.sqlite) ranks"

# --- PyTorch ---------------------------------------------------------------------------------------------------------
script=ddp
if [[ -n ${SHARDSCOPE_PYTHON:-} ]] && "$SHARDSCOPE_PYTHON" -c 'import torch' 2> /dev/null; then
    export PYTHON=$SHARDSCOPE_PYTHON PYTHONPATH=$samples/pytorch PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1
    export CUDA_VISIBLE_DEVICES=''
    script_path=$samples/pytorch/ddp.py
else
    # python3 -m torch.distributed.run [options] -m shardscope_torch SCRIPT, and python3 -m shardscope_torch SCRIPT
    cat > "$work/stand_in" << 'END'
#!/usr/bin/env bash
set -euo pipefail
[[ $1 == -m ]] || exit 2
if [[ $2 == torch.distributed.run ]]; then
    shift 2
    declare -A option
    while [[ $1 == --* ]]; do option[$1]=$2 && shift 2; done
    [[ "$*" == "-m shardscope_torch "* && ${option[--rdzv_backend]} == c10d && ${option[--rdzv_endpoint]} == *:2???? ]]
    [[ ${option[--rdzv_id]} == "$SLURM_JOB_ID" ]]
    per_node=${option[--nproc_per_node]}
    for ((local = 0; local < per_node; ++local)); do
        RANK=$((SLURM_NODEID * per_node + local)) WORLD_SIZE=$((per_node * option[--nnodes])) \
            "$JOB_PROGRAM" steps 30 &
    done
    for ((local = 0; local < per_node; ++local)); do wait -n; done
else
    [[ $2 == shardscope_torch && $RANK -lt $WORLD_SIZE && $LOCAL_RANK -le $RANK && -n $MASTER_ADDR && $MASTER_PORT == 2???? ]]
    exec "$JOB_PROGRAM" steps 30
fi
END
    chmod +x "$work/stand_in"
    export PYTHON=$work/stand_in JOB_PROGRAM=$job_program
    script_path=$script.py
fi
echo "slurm_samples: $PYTHON"

RANKS_PER_NODE=2 submit 1 torchrun.sbatch "$script_path"
[[ $(ranks_in $script-*.sqlite) == "$((2 * nodes))" ]] || fail "the trace of torchrun.sbatch has $(ranks_in $script-*.sqlite) ranks"
[[ $(find $script-*/ -name '*.sqlite' | wc -l) == "$nodes" ]] || fail "torchrun.sbatch leaves no part for each node"
rm -r $script-*

submit 2 ranks.sbatch "$script_path"
[[ $(ranks_in $script-*.sqlite) == "$((2 * nodes))" ]] || fail "the trace of ranks.sbatch has $(ranks_in $script-*.sqlite) ranks"
[[ $(find $script-*/ -name 'rank*.sqlite' | wc -l) == "$((2 * nodes))" ]] || fail "ranks.sbatch leaves no part for each rank"
rm -r $script-*

# --- a program that fails --------------------------------------------------------------------------------------------
if [[ -n ${JOB_PROGRAM:-} ]]; then
    printf '#!/bin/sh\nexit 7\n' > "$work/fails"
    chmod +x "$work/fails"
    for job in torchrun ranks; do
        status=0
        JOB_PROGRAM=$work/fails attempt 1 $job.sbatch fails.py || status=$?
        ((status == 7)) || fail "$job.sbatch ends with $status, not with the program's 7"
        RECORD_OPTIONS="--keep-last 60 --hang 300" submit 1 $job.sbatch calm.py
        grep -qF "nothing was recorded" shardscope-$job-*.out || fail "$job.sbatch does not say that nothing was recorded"
    done
fi
if attempt 1 train.sbatch; then fail "train.sbatch accepts no job file"; fi
grep -q 'usage: sbatch train.sbatch' shardscope-*.out || fail "train.sbatch does not say how it is used"
echo "slurm_samples: all as it should be"
