#!/usr/bin/env bash
# Prints the benchmarks as a page: the machine, the date, and what Google Benchmark measured.
#
#   scripts/bench.sh > docs/benchmarks.md
#
# CPU time is the column to read: it excludes other work on the machine.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/packages.sh build test >&2
scripts/build.sh release -DSHARDSCOPE_BUILD_TESTS=ON bench_kernels bench_schedule bench_step >&2
bin=build/release/bin
cpu=$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1)
system=$(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' /etc/os-release)
version=$(sed -n 's/^project(shardscope VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
cat <<TEXT
# Benchmarks

Printed by \`scripts/bench.sh\` on $(date -u +%Y-%m-%d): ${cpu:-unknown processor}, $(nproc) cores, ${system:-Linux},
Shardscope $version.
TEXT
section() { # TITLE PROGRAM
    printf '\n## %s\n\n```\n' "$1"
    "$bin/$2" --benchmark_color=false --benchmark_min_time=0.3 2>/dev/null
    printf '```\n'
}
printf '\n## The trainer: a step beside its matrix products, beside PyTorch, and how communication hides\n\n'
scripts/bench_trainer.sh
printf '\n## Ranks that are processes: collectives, overlap, a step beside PyTorch\n\n'
scripts/bench_processes.sh
printf '\n## Simulated steps beside measured ones\n\n'
scripts/bench_simulation.sh
printf '\n## Simulated meshes, and the search among them\n\n'
scripts/bench_meshes.sh
printf '\n## Recorded runs replayed under another wrap\n\n'
scripts/bench_lift.sh
printf '\n## The schedule and the allocator: 200 units of one Linear\n\n```\n'
"$bin/bench_schedule"
printf '```\n'
printf '\n## The recorder: a range, a row, a run\n\n'
scripts/bench_recorder.sh
printf '\n## Traces: a database, a step, an import, the peers\n\n'
scripts/bench_traces.sh
section "The trainer's kernels" bench_kernels
