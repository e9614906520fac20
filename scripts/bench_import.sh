#!/usr/bin/env bash
# How fast Kineto traces are imported: against the least that simdjson must do, and against the Python peers that are
# installed (load and summary of one and the same file).
#
#   scripts/bench_import.sh [BUILD [EVENTS [TRACE]]]    BUILD: a build folder (build/release); EVENTS of the made trace
#                                                       (1000000); TRACE: for the peers, with steps and kernels
#                                                       (without: not compared)
set -euo pipefail
cd "$(dirname "$0")/.."

build=${1:-build/release}
events=${2:-1000000}
trace=${3:-}
ninja -C "$build" bench_import shardscope-trace >/dev/null

"$build/bin/bench_import" "$events"
[[ -n $trace ]] || exit 0

cpu_and_memory() {  # LABEL COMMAND ...
    local label=$1 figures
    shift
    figures=$(mktemp)
    if /usr/bin/time -f '%U %S %e %M' -o "$figures" "$@" >/dev/null 2>&1; then
        awk -v label="$label" '{printf "%-34s %9.2f %9.2f %14.0f\n", label, $1 + $2, $3, $4 / 1024}' "$figures"
    else
        printf '%-34s %s\n' "$label" "failed on this file"
    fi
    rm -f "$figures"
}

printf '\n%s\n%-34s %9s %9s %14s\n' "load and summary of $(basename "$trace")" "" "CPU (s)" "wall (s)" "resident (MiB)"
cpu_and_memory "shardscope-trace summary" "$build/bin/shardscope-trace" summary "$trace"

if python3 -c 'import torch_tb_profiler' 2>/dev/null; then
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    suffix=.pt.trace.json
    [[ $trace == *.gz ]] && suffix+=.gz
    cp "$trace" "$folder/worker0.1$suffix"
    cpu_and_memory "torch_tb_profiler" python3 -c '
import sys
from torch_tb_profiler.io import Cache
from torch_tb_profiler.profiler import RunLoader
RunLoader("run", sys.argv[1], Cache()).load()' "$folder"
else
    printf '%-34s %s\n' torch_tb_profiler "not installed"
fi
if python3 -c 'import hta' 2>/dev/null; then
    cpu_and_memory "HolisticTraceAnalysis" python3 -c '
import sys
from hta.trace_analysis import TraceAnalysis
TraceAnalysis(trace_files={0: sys.argv[1]}).get_temporal_breakdown(visualize=False)' "$(realpath "$trace")"
else
    printf '%-34s %s\n' HolisticTraceAnalysis "not installed"
fi
