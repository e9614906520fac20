#!/usr/bin/env bash
# Prints what --status costs a step, two ways: steps with and without it in turn, while somebody watches; and what a rank
# does for it in a step (collectives of the step times the cost of telling one), as a share of the step.
#
#   scripts/bench_status.sh [ROUNDS]     takes some minutes; needs an otherwise idle machine
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bin=${BIN:-build/release/bin} # BIN: programs that are built already
[[ -n ${BIN:-} ]] || scripts/build.sh release -DSHARDSCOPE_BUILD_TESTS=ON shardscope-train shardscope-trace bench_live >&2
rounds=${1:-9}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

# run KIND ARGUMENT...: µs of a step, without the first: the mean of the half of the run's steps that were the fastest.
run() {
    local kind=$1 watcher=
    shift
    if [[ $kind == with ]]; then
        "$bin/shardscope-train" "$@" --format json --status "$folder/run.status" > "$folder/json" 2> "$folder/err" &
        local job=$!
        until [[ -S $folder/run.status ]]; do
            kill -0 "$job" 2> /dev/null || { cat "$folder/err" >&2; exit 1; }
            sleep 0.02
        done
        "$bin/shardscope-trace" watch --format json "$folder/run.status" > "$folder/lines" &
        watcher=$!
        wait $job
        wait $watcher || true
        [[ -s $folder/lines ]] || { echo "nobody watched" >&2; exit 1; }
    else
        "$bin/shardscope-train" "$@" --format json > "$folder/json" 2> "$folder/err"
    fi
    grep -o '"seconds":\[[^]]*' "$folder/json" | sed 's/.*\[//' | tr ',' '\n' |
        awk 'NR > 1 { print ($1 - before) * 1e6 } { before = $1 }' | sort -g |
        awk '{ v[NR] = $1 } END { n = int(NR / 2); for (i = 1; i <= n; i++) s += v[i]; print s / n }'
}

# compare NAME ARGUMENT...
compare() {
    local name=$1 told step collectives
    shift
    run without "$@" > /dev/null # warms up
    for ((i = 0; i < rounds; i++)); do
        if ((i % 2)); then run with "$@" >> "$folder/$name.with"; run without "$@" >> "$folder/$name.without"
        else run without "$@" >> "$folder/$name.without"; run with "$@" >> "$folder/$name.with"; fi
    done
    # The collectives of a step: of the last two lines' numbers, over the steps between.
    collectives=$(tail -2 "$folder/lines" | head -1 |
        sed -E 's/.*"ranks":\[\{"rank":0,[^}]*"steps_done":([0-9]+).*"collective":\{"operation":"[a-z_]+","number":([0-9]+).*/\1 \2/' |
        awk '{ print $2 / $1 }')
    told=$("$bin/bench_live" | sed -E 's/.*"collective_ns": ([0-9.]+), "step_ns": ([0-9.]+).*/\1 \2/')
    step=$(median < "$folder/$name.without")
    paste "$folder/$name.without" "$folder/$name.with" | awk '{ print 100 * ($2 / $1 - 1) }' | sort -g > "$folder/$name.difference"
    awk -v name="$name" -v step="$step" -v with="$(median < "$folder/$name.with")" -v d="$(median < "$folder/$name.difference")" \
        -v low="$(head -1 "$folder/$name.difference")" -v high="$(tail -1 "$folder/$name.difference")" \
        -v n="$collectives" -v told="$told" 'BEGIN {
            split(told, t, " ")
            ns = n * t[1] + t[2]
            printf "%s: step without %.0f µs, with %.0f µs: pairs differ by %+.2f %% (median; %+.2f to %+.2f);", name, step, with, d, low, high
            printf " %.0f collectives a step at %.0f ns: %.1f µs, %.3f %% of the step\n", n, t[1], ns / 1000, ns / 10 / step
        }'
}

compare threads samples/mlp.toml --run.ranks=2 --run.steps=3000 --model.width=256
compare processes samples/mlp.toml --run.processes=2 --run.steps=3000 --model.width=256
