#!/usr/bin/env bash
# Prints what --status costs a training: of a watched job, blocks of steps in which the ranks take down what they do and
# others in which they do not, in turn (bench_watched); and what a rank does for it in a step alone: collectives of the
# step times the cost of telling one.
#
#   scripts/bench_status.sh     four minutes; needs an otherwise idle machine
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bin=${BIN:-build/release/bin} # BIN: programs that are built already
[[ -n ${BIN:-} ]] || scripts/build.sh release -DSHARDSCOPE_BUILD_TESTS=ON shardscope-trace bench_live bench_watched >&2
told=$("$bin/bench_live" | sed -E 's/.*"collective_ns": ([0-9.]+), "step_ns": ([0-9.]+).*/\1 \2/')
folder=$(mktemp -d)
job=
trap '[[ -z $job ]] || kill "$job" 2> /dev/null || true; rm -rf "$folder"' EXIT

# compare NAME JOB BLOCKS STEPS_PER_BLOCK
compare() {
    printf '\n%s\n' "$1"
    "$bin/bench_watched" "$2" "$folder/run.status" "$3" "$4" > "$folder/result" &
    job=$!
    local collectives
    until [[ -S $folder/run.status ]]; do
        kill -0 $job 2> /dev/null || { wait $job; exit 1; }
        sleep 0.02
    done
    "$bin/shardscope-trace" watch --format json "$folder/run.status" > "$folder/lines"
    wait "$job"
    job=
    # The collectives of a step: of the last two lines' numbers, over the steps between.
    collectives=$(tail -2 "$folder/lines" | head -1 |
        sed -E 's/.*"ranks":\[\{"rank":0,[^}]*"steps_done":([0-9]+).*"collective":\{"operation":"[a-z_]+","number":([0-9]+).*/\1 \2/' |
        awk '{ print $2 / $1 }')
    cat "$folder/result"
    awk -v lines="$(wc -l < "$folder/lines")" -v n="$collectives" -v told="$told" -v result="$(grep 'a step,' "$folder/result")" 'BEGIN {
        split(told, t, " ")
        match(result, /[0-9.]+ ms/)
        step = substr(result, RSTART, RLENGTH - 3) * 1e6
        printf "%-52s %10d\n", "lines that the watcher read", lines
        printf "%-52s %10.0f\n", "collectives of a rank in a step", n
        printf "%-52s %7.0f ns\n", "telling one collective", t[1]
        printf "%-52s %8.4f %%\n", "telling them and the step, of a step of a rank", 100 * (n * t[1] + t[2]) / step
    }'
}

sed -E 's/^ranks = .*/ranks = 2/' samples/gpt.toml > "$folder/gpt.toml"
sed -E 's/^ranks = .*/ranks = 2/; s/^width = .*/width = 256/' samples/mlp.toml > "$folder/mlp.toml"
compare 'GPT 6 x 256, 2 ranks' "$folder/gpt.toml" 1000 1
compare 'MLP 8 x 256, 2 ranks: a step of about a millisecond' "$folder/mlp.toml" 2000 10
