#!/usr/bin/env bash
# What sampling the stacks of threads costs a program, and how well it knows a function's share.
#
#   scripts/bench_samples.sh [ROUNDS]
#
# Runs tests/tools/record/stacks_program.cpp alone and under `shardscope-record --sample 997`, by perf events (where the
# kernel permits them) and by timers, in turns, and prints the program's processor time in each, the ratios, and the
# share of its function hot() as it measured it itself, as the samples say it and, where perf is installed, as perf says
# it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

rounds=${1:-9}
work=6000  # some 8 s of processor time, and with timers, at 250 ticks per second, 2,000 samples
scripts/build.sh release -DSHARDSCOPE_BUILD_TESTS=ON shardscope-record shardscope-trace stacks_program >&2
bin=build/release/bin
program=$bin/stacks_program
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Prints the processor time in seconds that a command's child takes: user, system.
# shellcheck disable=SC2016 # the inner shell expands it
timed='TIMEFORMAT="%3U %3S"; { time "$0" "$1" >"$2"; } 2>&1'
means=(perf timer)
if "$bin/shardscope-record" -o "$folder/try.sqlite" --sample 997 --sample-by perf -- true 2>&1 | grep "not sampled" >&2; then
    means=(timer)
fi
for ((i = 0; i < rounds; ++i)); do
    bash -c "$timed" "$program" "$work" "$folder/share" >>"$folder/alone"
    for by in "${means[@]}"; do
        "$bin/shardscope-record" --overwrite -o "$folder/run.sqlite" --sample 997 --sample-by "$by" -- \
            bash -c "$timed" "$program" "$work" "$folder/share" >>"$folder/$by" 2>"$folder/notes"
        "$bin/shardscope-trace" query "$folder/run.sqlite" --format csv \
            "SELECT sum(weight * (function LIKE 'hot (%')) * 1.0 / sum(weight), count(*) FROM samples
             WHERE stack LIKE '%main (stacks_program)%'" | tail -n 1 >>"$folder/$by.said"
        cat "$folder/share" >>"$folder/$by.true"
    done
done

perf=-
if command -v perf >/dev/null && perf record -q -e cpu-clock:u -F 997 -g -o "$folder/perf.data" "$program" "$work" \
    >"$folder/perf.share" 2>/dev/null; then
    perf=$(perf report -i "$folder/perf.data" --no-children -g none --stdio -F overhead,sym 2>/dev/null |
        awk '$NF == "hot" {sub("%", "", $1); print $1}')
fi

python3 - "$folder" "$perf" "${means[@]}" <<'PYTHON'
import statistics
import sys

folder, perf, *means = sys.argv[1:]
median = statistics.median


def rows(name, separator=None):
    return [[float(x) for x in line.split(separator)] for line in open(f"{folder}/{name}")]


def line(name, values):
    print(f"{name:38} {median(values):6.3f}   {min(values):6.3f}   {max(values):6.3f}")


title = {"perf": "perf events", "timer": "timers"}
alone = [sum(row) for row in rows("alone")]
sampled = {by: [sum(row) for row in rows(by)] for by in means}
print(f"{'':38} median    least     most")
line("alone (s of processor time)", alone)
for by in means:
    line(f"sampled at 997 Hz by {title[by]} (s)", sampled[by])
    line("  ratio of a pair", [b / a for a, b in zip(alone, sampled[by])])
for by in means:
    said, true = rows(f"{by}.said", ","), [row[0] for row in rows(f"{by}.true")]
    errors = [abs(100 * (row[0] - share)) for row, share in zip(said, true)]
    print(f"{title[by]}: ratio of the medians {median(sampled[by]) / median(alone):.4f}; hot(): measured by itself "
          f"{100 * median(true):.2f} %, in the samples {100 * median(row[0] for row in said):.2f} % (largest difference "
          f"{max(errors):.2f} points over {len(errors)} runs of some {int(said[0][1]):,} samples)")
print(f"perf's: {perf} %")
PYTHON
