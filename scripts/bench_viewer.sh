#!/usr/bin/env bash
# Prints how fast the viewer opens ten million events and draws them (viewer/bench/bench_viewer.cpp), how fast a
# million events of Kineto JSON become columns compared with a pass of simdjson, and what an idle window costs.
#
#   scripts/bench_viewer.sh [--large] [EVENTS [TRACE]]    EVENTS of the generated trace (10000000); TRACE: its path;
#                                                         it is generated if it does not exist (default: a temporary
#                                                         file). --large: also opens and draws 100 million events
#                                                         (16 GB of temporary space, 6 GB of memory, ten minutes)
#
# CPU time is the column to read.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

large=
if [[ ${1:-} == --large ]]; then
    large=100000000
    shift
fi
events=${1:-10000000}
folder=$(mktemp -d)
trace=${2:-$folder/viewer.sqlite}
viewer=
trap '[[ -z $viewer ]] || kill "$viewer" 2>/dev/null || true; rm -rf "$folder"' EXIT
scripts/packages.sh build test >&2
scripts/build.sh release -DSHARDSCOPE_BUILD_TESTS=ON bench_viewer bench_import shardscope-view >&2
bin=build/release/bin

# Processor time of a process in clock ticks, of all its threads.
ticks() {
    awk '{ sub(/^.*\) /, ""); print $12 + $13 }' "/proc/$1/stat"
}

idle() {
    command -v Xvfb >/dev/null || { echo "an idle window: Xvfb is not installed, not measured" && return; }
    local server shown=99 before after
    while [[ -e /tmp/.X$shown-lock ]]; do shown=$((shown + 1)); done
    Xvfb ":$shown" -screen 0 1600x900x24 >/dev/null 2>&1 &
    server=$!
    sleep 1
    DISPLAY=:$shown XDG_STATE_HOME=$folder "$bin/shardscope-view" "$trace" --panel timeline >/dev/null 2>&1 &
    viewer=$!
    sleep 30 # it opens the trace and comes to rest
    before=$(ticks "$viewer")
    sleep 20
    after=$(ticks "$viewer")
    echo "an idle window: $(awk -v t=$((after - before)) -v hz="$(getconf CLK_TCK)" \
        'BEGIN { printf "%.2f %% of a processor", 100 * t / hz / 20 }') over 20 s"
    kill "$viewer" "$server"
    wait "$viewer" "$server" 2>/dev/null || true
    viewer=
}

echo '```'
"$bin/bench_viewer" --events "$events" --trace "$trace"
echo
[[ -z $large ]] || "$bin/bench_viewer" --events "$large" --trace "$folder/large.sqlite" --only large
echo
"$bin/bench_import" 1000000 "$folder"
echo
idle
echo '```'
