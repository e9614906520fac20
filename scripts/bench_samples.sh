#!/usr/bin/env bash
# What sampling the stacks of threads costs a program, and how well it knows a function's share.
#
#   scripts/bench_samples.sh [ROUNDS]
#
# Runs tests/tools/record/stacks_program.cpp alone and under `shardscope-record --sample 997`, in turns, and prints
# the program's processor time in both, the ratio of the medians, and the share of its function hot() as it measured
# it itself, as the samples say it and, where perf is installed, as perf says it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

rounds=${1:-9}
work=8000  # some 7 s of processor time, 7,000 samples: a share is known to about 1 point
scripts/build.sh release -DSHARDSCOPE_BUILD_TESTS=ON shardscope-record shardscope-trace stacks_program >&2
bin=build/release/bin
program=$bin/stacks_program
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Prints the processor time in seconds that a command's child takes: user, system.
# shellcheck disable=SC2016 # the inner shell expands it
timed='TIMEFORMAT="%3U %3S"; { time "$0" "$1" >"$2"; } 2>&1'
for ((i = 0; i < rounds; ++i)); do
    bash -c "$timed" "$program" "$work" "$folder/alone.share" >>"$folder/alone"
    "$bin/shardscope-record" --overwrite -o "$folder/run.sqlite" --sample 997 -- \
        bash -c "$timed" "$program" "$work" "$folder/sampled.share" >>"$folder/sampled" 2>"$folder/notes"
    if grep "not sampled" "$folder/notes"; then exit 1; fi
    "$bin/shardscope-trace" query "$folder/run.sqlite" --format csv \
        "SELECT sum(weight * (function LIKE 'hot (%')) * 1.0 / sum(weight), count(*) FROM samples
         WHERE stack LIKE '%main (stacks_program)%'" | tail -n 1 >>"$folder/said"
    cat "$folder/sampled.share" >>"$folder/true"
done

perf=-
if command -v perf >/dev/null && perf record -q -e cpu-clock:u -F 997 -g -o "$folder/perf.data" "$program" "$work" \
    >"$folder/perf.share" 2>/dev/null; then
    perf=$(perf report -i "$folder/perf.data" --no-children -g none --stdio -F overhead,sym 2>/dev/null |
        awk '$NF == "hot" {sub("%", "", $1); print $1}')
fi

python3 - "$folder" "$perf" <<'PYTHON'
import statistics
import sys

folder, perf = sys.argv[1:]


def rows(name, separator=None):
    return [[float(x) for x in line.split(separator)] for line in open(f"{folder}/{name}")]


alone = [sum(row) for row in rows("alone")]
sampled = [sum(row) for row in rows("sampled")]
ratios = sorted(b / a for a, b in zip(alone, sampled))
said, true = rows("said", ","), [row[0] for row in rows("true")]
errors = [100 * (row[0] - share) for row, share in zip(said, true)]
print(f"{'':34} median    least     most")
for name, values in (("alone (s of processor time)", alone), ("sampled at 997 Hz (s)", sampled),
                     ("ratio of a pair", ratios)):
    print(f"{name:34} {statistics.median(values):6.3f}   {min(values):6.3f}   {max(values):6.3f}")
print(f"ratio of the medians: {statistics.median(sampled) / statistics.median(alone):.4f}")
print(f"hot(): measured by itself {100 * statistics.median(true):.2f} %, in the samples "
      f"{100 * statistics.median(row[0] for row in said):.2f} % (largest difference "
      f"{max(map(abs, errors)):.2f} points over {len(errors)} runs of some {int(said[0][1]):,} samples), perf's {perf} %")
PYTHON
