#!/usr/bin/env bash
# Builds and runs all fuzz targets of tests/fuzz under ASan and UBSan, as many at a time as there are processors.
#
#   scripts/fuzz.sh [--short] [SECONDS [TARGET ...]]      SECONDS per target (60); TARGET: such as fuzz_kineto (all)
#
# --short: fifteen seconds per target, compiled by scripts/sanitize.sh address, which tries half as many inputs.
# New inputs of a target are kept in build/fuzz/corpus/NAME; an input that fails is named and kept in build/fuzz/failed.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=build/fuzz optimize=-O1 seconds=60
if [[ ${1:-} == --short ]]; then
    folder=build/asan optimize=-O0 seconds=15
    shift
fi
seconds=${1:-$seconds}
if ! [[ $seconds =~ ^[0-9]+$ ]]; then
    echo "fuzz.sh: \"$seconds\" is not a number of seconds; write for example scripts/fuzz.sh 60" >&2
    exit 2
fi
shift || true

if ! command -v clang++ >/dev/null; then
    echo "fuzz.sh: clang++ is not installed; install the packages of scripts/packages.sh --list sanitize" >&2
    exit 1
fi
# The sanitizer's folder keeps its configuration; the other folder belongs to the fuzz targets.
if [[ $folder == build/fuzz || ! -f $folder/CMakeCache.txt ]]; then
    cmake --preset asan -B "$folder" -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="$optimize -g1" -DSHARDSCOPE_BUILD_TESTS=OFF \
        -DSHARDSCOPE_BUILD_PROFILER=OFF -DSHARDSCOPE_BUILD_TRAINER=OFF -DSHARDSCOPE_BUILD_VIEWER=OFF >/dev/null
fi
targets=("$@")
if ((${#targets[@]} == 0)); then
    mapfile -t targets < <(sed -n 's/^shardscope_fuzz(\([a-z_]*\).*/fuzz_\1/p' tests/fuzz/CMakeLists.txt)
fi
ninja -C "$folder" "${targets[@]}"

mkdir -p build/fuzz/failed
run() {  # TARGET
    local name=${1#fuzz_} log
    log=$(mktemp)
    mkdir -p "build/fuzz/corpus/$name"
    # Lengths go well beyond the seeds'; no input may take 2 GiB or 25 s. libFuzzer's preference for inputs that reach
    # rare code would take three quarters of the time or more.
    if "$folder/bin/$1" -max_total_time="$seconds" -entropic=0 -max_len=65536 -rss_limit_mb=2048 -timeout=25 \
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
