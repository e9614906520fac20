#!/usr/bin/env bash
# Prints what messages between two processes cost over mpi, beside a plain loop of MPI_Isend and MPI_Irecv
# (scripts/bench/mpi_pairs.cpp) with osu_bw's window: medians of alternating runs, their ratio, and the goals. Then what
# cost models predict for the collectives of another run: one of `calibrate` from messages between the pairs alone, and one
# from a whole benchmark.
#
#   scripts/bench_pairs.sh      two minutes; needs an otherwise idle machine with two cores, and an MPI with mpicxx
#
# ROUNDS: alternating runs (9). BIN: a folder with shardscope-train that is built already.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bin=${BIN:-build/release/bin}
[[ -n ${BIN:-} ]] || scripts/build.sh release shardscope-train shardscope_mpi >&2
rounds=${ROUNDS:-9}
sizes=(8 4194304 16777216)
for tool in mpicxx mpirun; do
    command -v "$tool" >/dev/null || {
        echo "bench_pairs.sh: $tool is not installed; scripts/packages.sh lists the packages" >&2
        exit 1
    }
done
if ((EUID == 0)); then export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mpicxx -O2 -std=c++20 -o "$folder/mpi_pairs" scripts/bench/mpi_pairs.cpp
cat >"$folder/job.toml" <<'TOML'
[run]
steps = 1
[model]
type = "mlp"
width = 64
layers = 2
[data]
batch = 4
TOML

median() { sort -g | awk '{ v[NR] = $1 } END { print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'; }
# Lines of BYTES LATENCY_US ONE_WAY_US BOTH_WAYS_US: ours of the wire, and those of a Plan behind them.
theirs() { mpirun --oversubscribe -np 2 "$folder/mpi_pairs" "$@"; }
ours() {
    local range
    for range in "${sizes[0]}:${sizes[0]}" "${sizes[1]}:${sizes[-1]}"; do
        "$bin/shardscope-train" "$folder/job.toml" --run.processes=2 --run.comm=mpi --bench-collectives --messages \
            --sizes "$range" --format csv 2>>"$folder/log" |
            awk -F, '$1 == "send" { print $5, $14, $13, $15, $8, $7, $9 }'
    done
}
for ((i = 0; i < rounds; ++i)); do
    theirs "${sizes[@]}" >>"$folder/theirs"
    theirs --serialized "${sizes[0]}" >>"$folder/theirs_serialized"
    ours >>"$folder/ours" || { tail -n 20 "$folder/log" >&2; exit 1; }
done
# of FILE BYTES COLUMN
of() { awk -v bytes="$2" -v column="$3" '$1 == bytes { print $column }' "$folder/$1" | median; }

printf 'Two processes over %s, medians of %s alternating runs, each the fastest of its rounds\n\n' \
    "$(mpirun --version | head -n 1 | sed 's/mpirun (\(.*\)) /\1 /')" "$rounds"
printf '%-24s %12s %12s %8s %12s %8s   %s\n' '' 'plain loop' 'wire' 'ratio' 'in a Plan' 'ratio' 'goal'
row() { # NAME THEIRS WIRE PLAN GOAL
    awk -v n="$1" -v t="$2" -v w="$3" -v p="$4" -v g="$5" \
        'BEGIN { printf "%-24s %12.2f %12.2f %8.2f %12.2f %8.2f   %s\n", n, t, w, w / t, p, p / t, g }'
}
row 'latency of 8 B, us' "$(of theirs 8 2)" "$(of ours 8 2)" "$(of ours 8 5)" 'wire at most 1.50'
row '  MPI_THREAD_SERIALIZED' "$(of theirs_serialized 8 2)" "$(of ours 8 2)" "$(of ours 8 5)" ''
# FILE BYTES COLUMN MESSAGES: GB/s
rate() { awk -v us="$(of "$1" "$2" "$3")" -v bytes="$2" -v n="$4" 'BEGIN { print n * bytes / us / 1e3 }'; }
for bytes in "${sizes[@]:1}"; do
    row "$((bytes >> 20)) MiB one way, GB/s" "$(rate theirs "$bytes" 3 1)" "$(rate ours "$bytes" 3 1)" \
        "$(rate ours "$bytes" 6 1)" 'at least 0.90'
    row "$((bytes >> 20)) MiB both ways, GB/s" "$(rate theirs "$bytes" 4 2)" "$(rate ours "$bytes" 4 2)" \
        "$(rate ours "$bytes" 7 2)" ''
done

# bench COMM [OPTION ...]: the benchmark of two processes
bench() {
    local comm=$1
    shift
    "$bin/shardscope-train" "$folder/job.toml" --run.processes=2 --run.comm="$comm" --bench-collectives --format csv \
        --sizes 64K:16M "$@" 2>>"$folder/log" || { tail -n 20 "$folder/log" >&2; exit 1; }
}
# predict NAME: what the model fitted to NAME.sqlite gives
predict() {
    "$bin/shardscope-train" calibrate "$folder/$1.sqlite" -o "$folder/$1.toml" --overwrite >>"$folder/log"
    "$bin/shardscope-train" "$folder/job.toml" --run.device=sim --sim.cluster="$folder/$1.toml" --run.ranks=2 \
        --bench-collectives --format csv --sizes 64K:16M
}
printf '\nCollectives of two processes in a run that no model was fitted to, and what models predict, in us\n\n'
printf '%-5s %-15s %10s %10s %16s %8s %16s %8s\n' over collective bytes measured 'by messages' ratio 'by a benchmark' ratio
for comm in mpi tcp; do
    bench "$comm" --pairs --messages --trace "$folder/messages.sqlite" --overwrite >/dev/null
    bench "$comm" --pairs --trace "$folder/all.sqlite" --overwrite >/dev/null
    bench "$comm" >"$folder/measured.csv"
    predict messages >"$folder/by_messages.csv"
    predict all >"$folder/by_all.csv"
    awk -F, -v comm="$comm" '
        $1 == "send" || $1 == "operation" { next }
        FILENAME ~ /by_messages/ { messages[$1 $5] = $7; next }
        FILENAME ~ /by_all/ { all[$1 $5] = $7; next }
        $5 == 65536 || $5 == 1048576 || $5 == 16777216 {
            a = messages[$1 $5]; b = all[$1 $5]
            printf "%-5s %-15s %10d %10.1f %16.1f %8.2f %16.1f %8.2f\n", comm, $1, $5, $7, a, a / $7, b, b / $7
        }' "$folder/by_messages.csv" "$folder/by_all.csv" "$folder/measured.csv"
done
