#!/usr/bin/env bash
# Configures a preset where that is needed and builds targets of it.
#
#   scripts/build.sh PRESET [-DNAME=VALUE ...] [TARGET ...]
#
# A build folder that exists keeps its options unless they are given; a fresh one has no tests unless they are
# asked for. Output is short: the whole of it is shown only when something fails.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

preset=$1
shift
options=() targets=()
for argument in "$@"; do
    case $argument in
        -D*) options+=("$argument") ;;
        *) targets+=("$argument") ;;
    esac
done
if [[ ! -f build/$preset/CMakeCache.txt && " ${options[*]} " != *" -DSHARDSCOPE_BUILD_TESTS="* ]]; then
    options+=(-DSHARDSCOPE_BUILD_TESTS=OFF)
fi
((${#targets[@]})) || targets=(all)

log=$(mktemp)
trap 'rm -f "$log"' EXIT
started=$SECONDS
if ! cmake --preset "$preset" "${options[@]}" >"$log" 2>&1; then
    cat "$log" >&2
    echo "build.sh: cmake could not configure the preset $preset; the lines above say why." >&2
    exit 1
fi
grep -E '^-- CUDA Toolkit' "$log" || true
echo "-- building $preset: ${targets[*]}"
if ! cmake --build --preset "$preset" --target "${targets[@]}" >"$log" 2>&1; then
    grep -vE '^\[[0-9]+/[0-9]+\] ' "$log" >&2 || true
    echo "build.sh: the preset $preset does not build; the lines above say why." >&2
    exit 1
fi
echo "-- built $preset in $((SECONDS - started)) s"
