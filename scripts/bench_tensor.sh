#!/usr/bin/env bash
# Prints what two ranks of a tensor group cost next to two ranks that read different samples, with the same samples per
# step: a GPT of 6 blocks, 384 wide, context 256, one worker a rank. The runs alternate.
#
#   scripts/bench_tensor.sh         takes some minutes; needs an otherwise idle machine with two cores
#
# Goal: at most 1.15 times as long. BIN names programs that are built already, ROUNDS (7) the runs of each.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bin=${BIN:-build/release/bin}
[ -n "${BIN:-}" ] || scripts/build.sh release shardscope-train shardscope-trace >&2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/gpt.toml" <<JOB
[run]
ranks = 2
steps = 12
workers = 2
[model]
type = "gpt"
layers = 6
width = 384
heads = 6
context = 256
[data]
type = "text"
path = "/usr/share/common-licenses"
[parallel]
mode = "ddp"
[optimizer]
type = "adamw"
JOB

median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
# The median step of a run after the first two, in ms.
step_of() { # NAME ARGUMENT ...
    "$bin/shardscope-train" "$folder/gpt.toml" --trace "$folder/run.sqlite" --overwrite "${@:2}" >"$folder/log" 2>&1 ||
        { cat "$folder/log" >&2 && exit 1; }
    "$bin/shardscope-trace" query "$folder/run.sqlite" --format csv \
        "SELECT (end - start) / 1e6 FROM SHARD_STEPS WHERE rank = 0 AND step >= 2" | tail -n +2 | median >>"$folder/$1"
}
for ((i = 0; i < ${ROUNDS:-7}; ++i)); do
    step_of data --data.batch=4
    step_of tensor --data.batch=8 --parallel.tensor=2
    step_of sequence --data.batch=8 --parallel.tensor=2 --parallel.sequence=true
done
echo "GPT 6 x 384, context 256, 8 samples a step, 2 ranks with a worker each; $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo |
    head -n 1), $(nproc --all) cores, $(date +%F)"
echo
echo "| ranks | median step, ms | fastest round, ms | median / that of data = 2 (goal: at most 1.15) |"
echo "| --- | ---: | ---: | ---: |"
base=$(median <"$folder/data")
for name in data tensor sequence; do
    awk -v n="$name" -v m="$(median <"$folder/$name")" -v l="$(sort -g "$folder/$name" | head -n 1)" -v b="$base" \
        'BEGIN { printf "| %s = 2%s | %.1f | %.1f | %.2f |\n", n == "data" ? n : "tensor",
                 n == "sequence" ? ", sequence" : "", m, l, m / b }'
done
