#!/usr/bin/env bash
# What sampling the stacks of threads costs a program, and how well it knows a function's share.
#
#   scripts/bench_samples.sh [ROUNDS]
#
# Runs tests/tools/record/stacks_program.cpp alone and under `shardscope-record --sample 997`, by perf events (where the
# kernel permits them) and by timers, and, where it is installed, under perf at the same rate, in turns. Prints the
# program's processor time in each, the ratios, and the share of its function hot() as it measured it itself, as the
# samples say it and as perf says it. A round takes a second of processor time in each; the noise of a ratio is that of
# a mean of the middle half of the rounds.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

rounds=${1:-24}
work=800
scripts/build.sh release -DSHARDSCOPE_BUILD_TESTS=ON shardscope-record shardscope-trace stacks_program >&2
bin=build/release/bin
program=$bin/stacks_program
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Runs a command before the program, and writes what processor time in seconds the program takes: user, system.
take() {
    local name=$1
    shift
    # shellcheck disable=SC2016 # the inner shell expands it
    "$@" bash -c 'TIMEFORMAT="%3U %3S"; { time "$0" "$1" >"$2"; } 2>&1' "$program" "$work" "$folder/share" \
        >>"$folder/$name" 2>"$folder/notes"
    cat "$folder/share" >>"$folder/$name.true"
}
alone() { take alone; }
recorded() {
    take "$1" "$bin/shardscope-record" --overwrite -o "$folder/run.sqlite" --sample 997 --sample-by "$1" --
    "$bin/shardscope-trace" query "$folder/run.sqlite" --format csv \
        "SELECT sum(weight * (function LIKE 'hot (%')), sum(weight), count(*) FROM samples
         WHERE stack LIKE '%main (stacks_program)%'" | tail -n 1 | tr , ' ' >>"$folder/$1.said"
}
by_perf() { recorded perf; }
by_timers() { recorded timer; }
linux_perf() {
    take linux perf record -q -e cpu-clock:u -F 997 -g -o "$folder/perf.data"
    perf script -i "$folder/perf.data" -F comm,ip,sym 2>/dev/null |
        awk '/^stacks_program/ {first = 1; next} first {first = 0; ++all; hot += $2 == "hot"}
             END {print hot, all, all}' >>"$folder/linux.said"
}

legs=(alone by_timers)
if ! "$bin/shardscope-record" -o "$folder/try.sqlite" --sample 997 --sample-by perf -- true 2>&1 |
    grep "not sampled" >&2; then
    legs+=(by_perf)
    if command -v perf >/dev/null; then legs+=(linux_perf); fi
fi
for ((i = 0; i < rounds; ++i)); do
    for ((k = 0; k < ${#legs[@]}; ++k)); do
        "${legs[i % 2 ? ${#legs[@]} - 1 - k : k]}"
    done
done

python3 - "$folder" <<'PYTHON'
import os
import statistics
import sys

folder = sys.argv[1]


def rows(name):
    return [[float(x) for x in line.split()] for line in open(f"{folder}/{name}")]


def middle(values):
    left = len(values) // 4
    return sorted(values)[left:len(values) - left]


def noise(values):  # of the mean of the middle half
    left = len(values) // 8
    return 1.25 * statistics.pstdev(sorted(values)[left:len(values) - left]) / len(values) ** 0.5


alone = [sum(row) for row in rows("alone")]
print(f"{len(alone)} rounds; a program of {statistics.median(alone):.3f} s of processor time")
print(f"{'997 times per second':24} {'time / alone':>16}   {'samples per s':>13}   {'hot(): itself':>13}   "
      f"{'in samples':>10}")
for name, title in {"perf": "perf events", "timer": "timers", "linux": "perf record -g"}.items():
    if not os.path.exists(f"{folder}/{name}"):
        continue
    times = [sum(row) for row in rows(name)]
    ratios = [time / base for time, base in zip(times, alone)]
    true = statistics.mean(row[0] for row in rows(f"{name}.true"))
    hot, weight, count = (sum(column) for column in zip(*rows(f"{name}.said")))
    print(f"{title:24} {statistics.mean(middle(ratios)):.4f} +- {noise(ratios):.4f}   {count / sum(times):13.0f}   "
          f"{100 * true:11.2f} %   {100 * hot / weight:8.2f} %")
PYTHON
