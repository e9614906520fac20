#!/usr/bin/env bash
# Prints how fast the files of memory.nvme are read and written through the ring (bench_files), beside fio on the same
# folder with pieces as large and as many under way (1 MiB, 16, io_uring, past the page cache): medians of alternating
# runs, their ratio, and the goal.
#
#   scripts/bench_files.sh FOLDER      two minutes on a disk of 1 GB/s; needs fio (Debian: fio) and an otherwise idle disk
#
# ROUNDS: alternating runs (5). MIB: of the file (2048). BIN: a folder with bench_files that is built already.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

where=${1:?say in which folder; see the head of this script}
bin=${BIN:-build/release/bin}
[[ -n ${BIN:-} ]] || scripts/build.sh release bench_files >&2
rounds=${ROUNDS:-5} mib=${MIB:-2048}
command -v fio >/dev/null || {
    echo "bench_files.sh: fio is not installed; its Debian package is fio" >&2
    exit 1
}
folder=$(mktemp -d)
file=$(mktemp -p "$where" .bench_files.XXXXXX)
trap 'rm -rf "$folder" "$file"' EXIT

median() { sort -g | awk '{ v[NR] = $1 } END { print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'; }
fio_rate() { # read or write: bytes/s
    fio --name=bench --filename="$file" --rw="$1" --size="${mib}m" --bs=1m --iodepth=16 --ioengine=io_uring --direct=1 \
        --output-format=json | python3 -c 'import json, sys; print(json.load(sys.stdin)["jobs"][0][sys.argv[1]]["bw_bytes"])' "$1"
}
for ((i = 0; i < rounds; ++i)); do
    "$bin/bench_files" "$where" "$mib" >"$folder/round"
    while read -r what rate; do echo "$rate" >>"$folder/ours_$what"; done <"$folder/round"
    for what in write read; do fio_rate "$what" >>"$folder/fio_$what"; done
done

printf 'A file of %s MiB in %s, medians of %s alternating runs, MB/s\n\n' "$mib" "$where" "$rounds"
printf '%-8s %10s %10s %8s   %s\n' '' fio bench_files ratio goal
for what in read write; do
    theirs=$(median <"$folder/fio_$what") ours=$(median <"$folder/ours_$what")
    awk -v what="$what" -v theirs="$theirs" -v ours="$ours" -v goal="$([[ $what == read ]] && echo '>= 0.8' || echo -)" \
        'BEGIN { printf "%-8s %10.0f %11.0f %8.2f   %s\n", what, theirs / 1e6, ours / 1e6, ours / theirs, goal }'
done
printf '%-8s %10s %11.0f\n' both - "$(median <"$folder/ours_both" | awk '{ print $1 / 1e6 }')"
