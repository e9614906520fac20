#!/usr/bin/env bash
# Prints what a simulated step of a large mesh and a search among meshes take: time, and the largest resident size.
#
#   scripts/bench_meshes.sh        two minutes
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [[ -n ${BIN:-} ]]; then # tools that are built already
    bin=$BIN
else
    scripts/packages.sh build test >&2
    scripts/build.sh release shardscope-train >&2
    bin=build/release/bin
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

timed() { # TEXT ARGUMENT...: runs shardscope-train and prints its time and memory
    local text=$1
    shift
    /usr/bin/time -o "$folder/time" -f '%e %U %S %M' "$bin/shardscope-train" "$@" >"$folder/out" 2>"$folder/log" ||
        { cat "$folder/log" >&2; exit 1; }
    awk -v text="$text" '{ printf "%-64s %7.2f %7.2f %7.0f\n", text, $1, $2 + $3, $4 / 1024 }' "$folder/time"
}

cpu=$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1)
cat <<TEXT
Printed by \`scripts/bench_meshes.sh\` on $(date -u +%Y-%m-%d): ${cpu:-unknown processor}, $(nproc) cores,
load $(cut -d' ' -f1 /proc/loadavg).
CPU: of all threads. Goals: a step in 10 s and 2048 MiB, a search among 1,000 meshes in 120 s.

\`\`\`
TEXT
printf '%-64s %7s %7s %7s\n' 'simulated' 's' 'CPU s' 'MiB'
job=samples/llama_70b_tp_pp.toml
timed 'llama-70b: a step on 1,024 ranks (tensor 8, pipeline 4)' "$job"
timed 'three steps' "$job" --run.steps=3
timed 'a step with its trace' "$job" --trace "$folder/trace.sqlite"
search() { # TEXT ARGUMENT...: a search's time, and the numbers of its rows
    timed "$1" plan "${@:2}"
    sed -n '1s/^/  /p' "$folder/out"
}
search 'llama-70b: search among meshes of 512 ranks' "$job" --meshes --run.ranks=512
search 'llama-8b, 131,072 tokens a sample: meshes of 64 ranks' "$job" --meshes --run.ranks=64 --model.name=llama-8b \
    --model.context=131072 --parallel.context_exchange=allgather,ring
search 'mixture of 8 experts: meshes of 64 ranks' samples/moe.toml --meshes
printf '```\n'
