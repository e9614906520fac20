#!/usr/bin/env bash
# Installs what is missing, builds everything and runs every test.
#
#   ./run_tests.sh [CTEST-OPTION ...]
#
# First the optimized build with all tests; then the recorder's, the store's and the importers' tests under the address
# sanitizer, and those that run several threads under the thread sanitizer. With options for CTest (such as -R job or
# -L viewer) only those tests of the optimized build run, without the sanitizers. What is labelled slow is left to the
# optimized build. Between them the readers of foreign files are fuzzed for half a minute each (scripts/fuzz.sh).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

say() { printf '\n== %s\n' "$*"; }
jobs=$(nproc)

say "Packages"
scripts/packages.sh build mpi view test

say "Optimized build"
# One architecture of GPUs is enough to see that all compiles; a compiler cache does better with each source by itself.
once=ON
[[ -z ${CMAKE_CXX_COMPILER_LAUNCHER:-} ]] || once=OFF
scripts/build.sh release -DSHARDSCOPE_BUILD_TESTS=ON -DSHARDSCOPE_WERROR=ON -DSHARDSCOPE_PCH="$once" \
    -DSHARDSCOPE_UNITY="$once" -DSHARDSCOPE_CUDA_ARCHITECTURES=90
say "Tests"
ctest --test-dir build/release --output-on-failure --no-tests=error -j "$jobs" "$@"
(($# == 0)) || exit 0

say "Fuzzing"
scripts/packages.sh fuzz
scripts/fuzz.sh 30

# The thread sanitizer needs the address space where it expects it: no randomization, where that may be had.
fixed=()
if setarch "$(uname -m)" --addr-no-randomize true 2>/dev/null; then
    fixed=(setarch "$(uname -m)" --addr-no-randomize)
fi
declare -A labels=([asan]='profiler|store|import' [tsan]='threads')
for sanitizer in asan tsan; do
    say "Build for $sanitizer"
    # Its warnings are the optimized build's business: with sanitizers GCC warns of much that is not so.
    scripts/build.sh "$sanitizer" -DSHARDSCOPE_BUILD_TESTS=ON -DSHARDSCOPE_WERROR=OFF -DSHARDSCOPE_BUILD_VIEWER=OFF \
        sanitized_tests
    say "Tests under $sanitizer"
    "${fixed[@]}" ctest --test-dir "build/$sanitizer" --output-on-failure --no-tests=error -j "$jobs" \
        -L "${labels[$sanitizer]}" -LE slow
done
