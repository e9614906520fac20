#!/usr/bin/env bash
# Builds and runs all fuzz targets of tests/fuzz under ASan and UBSan, as many at once as there are processors.
#
#   scripts/fuzz.sh [SECONDS [TARGET ...]]      SECONDS of each (60); TARGET: fuzz_kineto and its kin, all without
#
# What a target finds new lands in build/fuzz/corpus/NAME; an input that fails is named and kept in build/fuzz/failed.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-60}
if ! [[ $seconds =~ ^[0-9]+$ ]]; then
    echo "fuzz.sh: \"$seconds\" is no number of seconds; write for example scripts/fuzz.sh 60" >&2
    exit 2
fi
shift || true

compiler=${CXX:-clang++}
if ! command -v "$compiler" >/dev/null; then
    echo "fuzz.sh: there is no $compiler; install the packages of scripts/packages.sh --list fuzz" >&2
    exit 1
fi
c_compiler=${CC:-clang}

cmake -G Ninja -S . -B build/fuzz -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_C_COMPILER="$c_compiler" \
    -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O1 -g1" -DSHARDSCOPE_FUZZ=ON \
    -DSHARDSCOPE_BUILD_TESTS=OFF -DSHARDSCOPE_BUILD_PROFILER=OFF \
    -DSHARDSCOPE_BUILD_TRAINER=OFF -DSHARDSCOPE_BUILD_VIEWER=OFF >/dev/null
targets=("$@")
if ((${#targets[@]} == 0)); then
    mapfile -t targets < <(sed -n 's/^shardscope_fuzz(\([a-z_]*\).*/fuzz_\1/p' tests/fuzz/CMakeLists.txt)
fi
ninja -C build/fuzz "${targets[@]}"

mkdir -p build/fuzz/failed
run() {  # TARGET
    local name=${1#fuzz_} log
    log=$(mktemp)
    mkdir -p "build/fuzz/corpus/$name"
    # Lengths well beyond the seeds'; 2 GiB and 25 s for one input are too much for any.
    if "build/fuzz/bin/$1" -max_total_time="$seconds" -max_len=65536 -rss_limit_mb=2048 -timeout=25 \
        -print_final_stats=1 -verbosity=0 -artifact_prefix="build/fuzz/failed/$name-" \
        "build/fuzz/corpus/$name" "tests/fuzz/corpus/$name" >"$log" 2>&1; then
        sed -n "s/^stat::number_of_executed_units: */-- $1, $seconds s: nothing found; inputs tried: /p" "$log"
        rm -f "$log"
    else
        cat "$log" >&2
        rm -f "$log"
        echo "fuzz.sh: $1 found something; the input is in build/fuzz/failed" >&2
        return 1
    fi
}
failed=0
running=0
for target in "${targets[@]}"; do
    if ((running == $(nproc))); then
        wait -n || failed=1
        running=$((running - 1))
    fi
    run "$target" &
    running=$((running + 1))
done
for ((; running > 0; --running)); do wait -n || failed=1; done
exit "$failed"
