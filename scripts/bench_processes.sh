#!/usr/bin/env bash
# Prints what ranks that are processes cost: collectives compared with the memory's rate and with MPI's own, how much
# communication hides behind computation, and a step compared with PyTorch's over gloo. Compared runs alternate.
#
#   scripts/bench_processes.sh      takes some minutes; needs an otherwise idle machine
#
# PyTorch is that of the python3 on PATH; if it is not installed its row is omitted, with a note.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/packages.sh build mpi test >&2
bin=${BIN:-build/release/bin} # BIN: programs that are built already
[[ -n ${BIN:-} ]] || scripts/build.sh release -DSHARDSCOPE_BUILD_TESTS=ON shardscope-train shardscope-trace \
    shardscope_mpi bench_collectives bench_step >&2
rounds=5
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
if ((EUID == 0)); then export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; fi

median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
least() { sort -g | head -n 1; }
quiet() { "$@" 2>>"$folder/log" || { tail -n 20 "$folder/log" >&2; exit 1; }; }
# Wall milliseconds of a step on rank 0, the fastest of groups of five, from a trace.
step_of() {
    sqlite3 "$1" "SELECT (end - start) / 1e6 FROM SHARD_STEPS WHERE rank = 0 AND step >= 2 ORDER BY step" |
        awk '{ s += $1; if (NR % 5 == 0) { print s / 5; s = 0 } }' | least
}

cat >"$folder/gpt.toml" <<JOB
[run]
steps = 22
[model]
type = "gpt"
layers = 4
width = 256
heads = 4
context = 128
[data]
type = "text"
path = "/usr/share/common-licenses"
batch = 8
[parallel]
mode = "ddp"
[optimizer]
type = "adamw"
lr = 1e-3
JOB
cat >"$folder/blocks.toml" <<JOB
[run]
steps = 12
[model]
type = "gpt"
layers = 6
width = 384
heads = 6
context = 256
[data]
type = "text"
path = "/usr/share/common-licenses"
batch = 4
[fsdp]
wrap = "module:Block"
[optimizer]
type = "adamw"
lr = 1e-3
JOB

echo '```'
quiet "$bin/shardscope-train" "$folder/gpt.toml" --run.ranks=2 --bench-collectives
echo '```'
printf '\nBetween two processes, beside the same MPI (alternating):\n\n```\n'
quiet mpirun --oversubscribe -np 2 "$bin/bench_collectives"
echo '```'
printf '\nGPT 6 x 384, context 256, batch 4, FSDP with a unit per block, two processes of one worker:\n\n```\n'
for comm in mpi tcp gloo; do
    quiet "$bin/shardscope-train" "$folder/blocks.toml" --run.processes=2 --run.comm=$comm --overwrite \
        --trace "$folder/blocks.sqlite" >/dev/null
    echo "over $comm"
    "$bin/shardscope-trace" overlap "$folder/blocks.sqlite"
done
echo '```'
printf '\nGPT 4 x 256, context 128, batch 8, DDP, two processes of one thread each:\n\n```\n'
theirs=scripts/bench/torch_step.py
a=() b=() c=()
torch=$(python3 "$theirs" version 2>/dev/null || true)
core=$("$bin/bench_step" core)
for ((i = 0; i < rounds; ++i)); do
    for comm in mpi tcp; do
        quiet "$bin/shardscope-train" "$folder/gpt.toml" --run.processes=2 --run.comm=$comm --overwrite \
            --trace "$folder/gpt.sqlite" >/dev/null
        if [[ $comm == mpi ]]; then a+=("$(step_of "$folder/gpt.sqlite")"); else b+=("$(step_of "$folder/gpt.sqlite")"); fi
    done
    [[ -z $torch ]] || c+=("$(python3 "$theirs" gpt-ddp 20 2>/dev/null)")
done
printf 'Step in ms (wall, the fastest of groups of five steps), %s alternating rounds\n' "$rounds"
if [[ -n $torch ]]; then
    row() {
        awk -v t="$1" -v a="$2" -v b="$3" \
            'BEGIN { printf "%-20s %9.1f %9.1f %8.2f   at most 0.90\n", t, a, b, a / b }'
    }
    printf '%-20s %9s %9s %8s   %s\n' '' ours PyTorch ratio goal
    row 'over MPI' "$(printf '%s\n' "${a[@]}" | median)" "$(printf '%s\n' "${c[@]}" | median)"
    row 'over TCP' "$(printf '%s\n' "${b[@]}" | median)" "$(printf '%s\n' "${c[@]}" | median)"
    echo "$torch, gloo; ours with OpenBLAS, $core kernels, and the recorder on"
else
    printf 'over MPI %.1f, over TCP %.1f\n' "$(printf '%s\n' "${a[@]}" | median)" "$(printf '%s\n' "${b[@]}" | median)"
    echo 'The python3 on PATH has no PyTorch; its column is omitted.'
fi
echo '```'
