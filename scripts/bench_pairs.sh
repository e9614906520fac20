#!/usr/bin/env bash
# Prints what messages between two processes cost over mpi, beside a plain loop of MPI_Isend and MPI_Irecv
# (scripts/bench/mpi_pairs.cpp) with osu_bw's window: medians of alternating runs, their ratio, and the goals.
#
#   scripts/bench_pairs.sh      a minute; needs an otherwise idle machine with two cores, and an MPI with mpicxx
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
