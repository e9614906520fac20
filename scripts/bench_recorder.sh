#!/usr/bin/env bash
# Prints what recording costs: a range in process and through the injected library, compared with two readings of
# the clock and (if nsys is on PATH or named by $NSYS) with Nsight Systems; the writer's rates and bytes; ranges at
# a million per second; and a training job with a trace and without one. Compared runs alternate.
#
#   scripts/bench_recorder.sh [SOAK_SECONDS [BLOCKS]]     takes about 8 minutes; needs an otherwise idle machine
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

soak=${1:-60}
blocks=${2:-100}
scripts/packages.sh build test >&2
scripts/build.sh release -DSHARDSCOPE_BUILD_TESTS=ON bench_recorder bench_injection bench_writer bench_tracing >&2
bin=build/release/bin

echo '```'
echo 'In process, medians of 15 rounds, in ns'
"$bin/bench_recorder" --benchmark_repetitions=15 --benchmark_enable_random_interleaving=true \
    --benchmark_report_aggregates_only=true --benchmark_color=false 2>/dev/null |
    awk '
        function row(what, ns, goal) { printf "%-52s %9.1f   %s\n", what, ns, goal }
        /_median/ { split($1, name, "/"); ns[name[1]] = $2 }
        END {
            row("two clock readings", ns["two_clock_reads"], "")
            row("push and pop", ns["push_and_pop"], "")
            row("  over two readings", ns["push_and_pop"] - ns["two_clock_reads"], "at most 5")
            row("push and pop, the writer given no time to drain", ns["push_and_pop_burst"], "")
            row("push and pop without a recorder", ns["push_and_pop_off"], "at most 1 for each range")
            row("kernel, both times known", ns["kernel"], "")
            row("allocation", ns["memory"], "")
        }'
echo
"$bin/bench_injection"
echo
"$bin/bench_writer" --rows 2000000
echo
if [[ $soak -gt 0 ]]; then
    "$bin/bench_injection" --soak "$soak" --rate 1000000 --threads 4 || echo 'the soak failed'
    echo
    here=$(mktemp -d)
    "$bin/bench_injection" --soak 10 --rate 1000000 --threads 4 --output "$here/disk.sqlite" || echo 'the soak failed'
    rm -rf "$here"
    echo
fi
echo 'A training job traced against untraced, samples/gpt-text.toml'
"$bin/bench_tracing" samples/gpt-text.toml "$blocks" 1
echo
echo 'The same, samples/gpt.toml'
"$bin/bench_tracing" samples/gpt.toml "$blocks" 1
echo '```'
