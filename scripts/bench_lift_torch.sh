#!/usr/bin/env bash
# Prints how well the trace of a PyTorch job on gloo predicts another configuration of it: three models under FSDP1,
# FSDP2 and DDP, two ranks of one thread each on the processor. Recorded is each configuration with torch.profiler;
# measured are all of them in one job without it, a step of each in turn.
#
#   scripts/bench_lift_torch.sh [FOLDER]      FOLDER: keeps traces and times, and reuses those that are there
#
# Goals: median error of the step 8 %, worst 20 %; unmodified replays 5 %. SHARDSCOPE_PYTHON may name an interpreter
# that has PyTorch; ROUNDS (40) and MODELS ("gpt llama mlp wide") are what to measure.
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
mkdir -p "$folder"
read -ra models <<< "${MODELS:-gpt llama mlp wide}"

# Fresh pages make a copy into a large buffer up to 50 times as slow, and glibc's malloc gives fresh ones in some steps and
# not in others, depending on all that the process did before. jemalloc keeps them, if it is there (libjemalloc2).
malloc=${MALLOC-$(ldconfig -p | sed -n 's/.*=> \(.*libjemalloc\.so\.2\)$/\1/p' | head -n 1)} # MALLOC: another library
export OMP_NUM_THREADS=1 KINETO_LOG_LEVEL=5
job() { # RANKS ARGUMENT ...
    env LD_PRELOAD="$malloc" MALLOC_CONF=dirty_decay_ms:-1,muzzy_decay_ms:-1 \
        "$python" -m torch.distributed.run --nproc_per_node "$1" --standalone scripts/bench/torch_pairs.py "${@:2}" \
        > "$folder/log" 2>&1 || { cat "$folder/log" >&2 && exit 1; }
}
read -ra two < <("$python" scripts/bench/torch_pairs_table.py --list two)
read -ra one < <("$python" scripts/bench/torch_pairs_table.py --list one)
read -ra all < <("$python" scripts/bench/torch_pairs_table.py --list all)
for model in "${models[@]}"; do
    [ -e "$folder/$model" ] || {
        job 2 record "$model" "$folder/$model" "${two[@]}"
        job 1 record "$model" "$folder/$model" "${one[@]}"
    }
    [ -e "$folder/$model.json" ] || job 2 measure "$model" "${ROUNDS:-40}" "$folder/$model.json" "${all[@]}"
done

name=$(basename "${malloc:-malloc of glibc}")
cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
echo "$("$python" scripts/bench/torch_step.py version), gloo, 2 ranks of one thread, $name; $cpu, $(nproc --all) cores, load average $(cut -d ' ' -f 1 /proc/loadavg)."
echo
"$python" scripts/bench/torch_pairs_table.py "$bin/shardscope-train" "$folder" "${models[@]}"
