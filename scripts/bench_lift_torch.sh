#!/usr/bin/env bash
# Prints how well the trace of a PyTorch job on gloo predicts another configuration of it: three models under FSDP1,
# FSDP2 and DDP, two ranks of one thread each on the processor. Recorded is each configuration with torch.profiler;
# measured are all of them in one job without it, a step of each in turn.
#
#   scripts/bench_lift_torch.sh [FOLDER]      FOLDER: keeps traces and times, and reuses those that are there
#
# Goals: median error of the step 8 %, worst 20 %; unmodified replays 5 %. SHARDSCOPE_PYTHON may name an interpreter
# that has PyTorch; ROUNDS (40) and MODELS ("gpt llama mlp") are what to measure.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bin=${BIN:-build/release/bin} # BIN: programs that are built already
[ -n "${BIN:-}" ] || scripts/build.sh release shardscope-train >&2
python=${SHARDSCOPE_PYTHON:-python3}
folder=${1:-}
if [ -z "$folder" ]; then
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
fi
read -ra models <<< "${MODELS:-gpt llama mlp}"

# glibc returns large buffers to the system when they are freed: their pages, which then fault again, cost up to 50 times
# as much as the copies into them, in steps that depend on all that the process did before. It keeps them here.
export MALLOC_TRIM_THRESHOLD_=4294967296 MALLOC_MMAP_MAX_=0
export OMP_NUM_THREADS=1 KINETO_LOG_LEVEL=5
job() { # RANKS ARGUMENT ...
    "$python" -m torch.distributed.run --nproc_per_node "$1" --standalone scripts/bench/torch_pairs.py "${@:2}" \
        > "$folder/log" 2>&1 || { cat "$folder/log" >&2 && exit 1; }
}
read -ra two < <("$python" scripts/bench/torch_pairs_table.py --list two)
read -ra one < <("$python" scripts/bench/torch_pairs_table.py --list one)
read -ra all < <("$python" scripts/bench/torch_pairs_table.py --list all)
for model in "${models[@]}"; do
    for configuration in "${two[@]}"; do
        [ -e "$folder/$model/$configuration" ] || job 2 record "$model" "$folder/$model" "$configuration"
    done
    for configuration in "${one[@]}"; do
        [ -e "$folder/$model/$configuration" ] || job 1 record "$model" "$folder/$model" "$configuration"
    done
    [ -e "$folder/$model.json" ] || job 2 measure "$model" "${ROUNDS:-40}" "$folder/$model.json" "${all[@]}"
done

cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
echo "$("$python" scripts/bench/torch_pairs.py version), gloo, 2 ranks of one thread; $cpu, $(nproc) cores, load average $(cut -d ' ' -f 1 /proc/loadavg)."
echo
"$python" scripts/bench/torch_pairs_table.py "$bin/shardscope-train" "$folder" "${models[@]}"
