#!/usr/bin/env bash
# Prints how fast traces are read and analyzed: loading a database of 10 million events compared with a bare scan, the
# critical path of a large step, the import of Kineto JSON compared with a pass of simdjson and, with a TRACE
# (Kineto JSON, plain or compressed), load and summary compared with the Python peers (bench_peers.sh).
#
#   scripts/bench_traces.sh [EVENTS [TRACE [TIMES]]]    EVENTS of the generated Kineto trace (4000000); TRACE is repeated
#                                                       TIMES times (10) for the peers
#
# CPU time is the column to read.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

events=${1:-4000000}
trace=${2:-}
times=${3:-10}
scripts/packages.sh build test >&2
scripts/build.sh release -DSHARDSCOPE_BUILD_TESTS=ON bench_load bench_critical_path bench_import shardscope-trace >&2
bin=build/release/bin
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

echo '```'
"$bin/bench_load" --rows 10000000 --folder "$folder"
echo
"$bin/bench_critical_path"
echo
"$bin/bench_import" "$events" "$folder"
[[ -z $trace ]] || { echo && scripts/bench_peers.sh "$trace" "$times"; }
echo '```'
