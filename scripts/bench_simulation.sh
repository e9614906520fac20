#!/usr/bin/env bash
# Prints how well a calibrated simulation predicts steps of this machine: a cost model is fitted to the traces of
# some jobs of a grid, and its simulated steps of the other jobs are compared with the measured ones.
#
#   scripts/bench_simulation.sh             some minutes; needs an otherwise idle machine
#   scripts/bench_simulation.sh -o FOLDER   keeps the traces and the model there
#
# The grid: mlp and gpt x wraps x strategies x offload x checkpointing x prefetch x 1, 2 and 4 ranks. The jobs that
# the model is fitted to run in between the others, so that the machine's drift affects both alike.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [[ -n ${BIN:-} ]]; then # tools that are built already
    bin=$BIN
else
    scripts/packages.sh build test >&2
    scripts/build.sh release shardscope-train shardscope-trace >&2
    bin=build/release/bin
fi
if [[ ${1:-} == -o ]]; then
    folder=$2
    mkdir -p "$folder"
else
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
fi
steps=32 # of a run; the first three warm up
rounds=2 # of the jobs that the model is fitted to

cat >"$folder/mlp.toml" <<JOB
[run]
steps = $steps
[model]
type = "mlp"
layers = 8
width = 512
[data]
type = "synthetic"
batch = 64
[parallel]
mode = "fsdp"
[fsdp]
wrap = "module:Linear"
[optimizer]
type = "adamw"
JOB
cat >"$folder/gpt.toml" <<JOB
[run]
steps = $steps
[model]
type = "gpt"
layers = 3
width = 192
heads = 6
context = 128
[data]
type = "text"
path = "/usr/share/common-licenses"
batch = 2
[parallel]
mode = "fsdp"
[fsdp]
wrap = "module:Block"
[optimizer]
type = "adamw"
JOB

# Each word is a key of the job, without its dashes: MODEL RANKS [KEY=VALUE ...]
fitted=(
    'mlp 1' 'mlp 2' 'mlp 4' 'mlp 2 fsdp.cpu_offload=true' 'mlp 2 parallel.mode=ddp'
    'gpt 1' 'gpt 2' 'gpt 4' 'gpt 2 fsdp.cpu_offload=true' 'gpt 2 parallel.mode=ddp'
)
others=()
for model in mlp gpt; do
    class=$([[ $model == mlp ]] && echo Linear || echo Block)
    for ranks in 1 2 4; do
        others+=("$model $ranks fsdp.wrap=root"
            "$model $ranks memory.activation_checkpointing=module:$class")
        ((ranks == 2)) || others+=("$model $ranks fsdp.cpu_offload=true")
        ((ranks == 1)) && continue
        others+=("$model $ranks fsdp.sharding_strategy=SHARD_GRAD_OP"
            "$model $ranks fsdp.sharding_strategy=NO_SHARD"
            "$model $ranks fsdp.backward_prefetch=NONE"
            "$model $ranks fsdp.wrap=root fsdp.cpu_offload=true")
        ((ranks == 2)) || others+=("$model $ranks parallel.mode=ddp"
            "$model $ranks fsdp.sharding_strategy=HYBRID_SHARD fsdp.shard_group=2")
    done
done

flags() { # MODEL RANKS [KEY=VALUE ...]: the command line of shardscope-train
    local job=$folder/$1.toml ranks=$2
    shift 2
    echo "$job" "--run.ranks=$ranks" "${@/#/--}"
}
record() { # TRACE JOB: runs it
    # shellcheck disable=SC2046,SC2086 # words
    "$bin/shardscope-train" $(flags $2) --trace "$1" --overwrite >/dev/null 2>"$folder/log" ||
        { cat "$folder/log" >&2; exit 1; }
}
measured() { # TRACE: median window of a step of rank 0, us
    "$bin/shardscope-trace" steps "$1" --rank 0 --step 3:$((steps - 2)) --format json |
        sed 's/.*"median_us":\([0-9.e+]*\).*/\1/'
}
simulated() { # JOB: a steady step, us
    # shellcheck disable=SC2046,SC2086 # words
    "$bin/shardscope-train" $(flags $1) --run.device=sim --sim.cluster="$folder/model.toml" --format json \
        2>/dev/null | sed 's/.*"last_step":{"us":\([0-9.e+]*\).*/\1/'
}
traces=()
for i in "${!others[@]}"; do
    record "$folder/other-$i.sqlite" "${others[i]}"
    # The rounds of the fitted jobs are spread evenly among the others.
    while ((${#traces[@]} * ${#others[@]} < (i + 1) * rounds * ${#fitted[@]})); do
        n=${#traces[@]}
        record "$folder/fitted-$n.sqlite" "${fitted[n % ${#fitted[@]}]}"
        traces+=("$folder/fitted-$n.sqlite")
    done
done
"$bin/shardscope-train" calibrate "${traces[@]}" -o "$folder/model.toml" --overwrite >"$folder/calibration.txt"

cpu=$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1)
cat <<TEXT
Printed by \`scripts/bench_simulation.sh\` on $(date -u +%Y-%m-%d): ${cpu:-unknown processor}, $(nproc) cores.

The cost model was fitted to ${#fitted[@]} other jobs, each run $rounds times in between. Times are of a step, in ms: the median
of $((steps - 4)) steps, and what is simulated with the model of \`calibrate\`. Error: (simulated - measured) / measured.

\`\`\`
TEXT
printf '%-5s %5s  %-52s %9s %10s %8s\n' model ranks 'FULL_SHARD, a unit per Linear or Block, but' measured simulated 'error %'
for i in "${!others[@]}"; do
    read -r model ranks keys <<<"${others[i]}"
    us="$(measured "$folder/other-$i.sqlite") $(simulated "${others[i]}")"
    echo "$us $model $ranks $keys"
done | tee "$folder/steps.txt" | awk '{
    keys = ""; for (k = 5; k <= NF; ++k) keys = keys (keys == "" ? "" : ", ") substr($k, index($k, ".") + 1)
    gsub("activation_checkpointing=module:", "checkpointing=", keys)
    printf "%-5s %5d  %-52s %9.2f %10.2f %+8.1f\n", $3, $4, keys, $1 / 1e3, $2 / 1e3, 100 * ($2 / $1 - 1) }'
awk '{ e = 100 * ($2 / $1 - 1); print e < 0 ? -e : e }' "$folder/steps.txt" | sort -g | awk '
    { v[NR] = $1 }
    END {
        m = NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2; p = 0.9 * NR; p = p > int(p) ? int(p) + 1 : p
        printf "\n%d jobs: |error| median %.1f %% (goal: at most 15), 90th percentile %.1f %% (at most 30), largest %.1f %%\n",
               NR, m, v[p], v[NR]
    }'
# A choice between two configurations depends on the ratio of their steps.
awk '{ group[NR] = $3 " " $4; ratio[NR] = $2 / $1
       for (i = 1; i < NR; ++i) if (group[i] == group[NR]) { e = 100 * (ratio[NR] / ratio[i] - 1); print e < 0 ? -e : e } }' \
    "$folder/steps.txt" | sort -g | awk '
    { v[NR] = $1 }
    END {
        m = NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2; q = int(NR / 4) + 1
        printf "%d pairs of one model and number of ranks: |error of the ratio of their steps| quartile %.1f %%, median %.1f %%\n",
               NR, v[q], m
    }'
printf '```\n'
