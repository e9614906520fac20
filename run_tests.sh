#!/usr/bin/env bash
# Installs what is missing, builds everything and runs every test but the soak runs and those that measure time.
#
#   ./run_tests.sh [CTEST-OPTION ...]
#
# With options for CTest (such as -R job or -L viewer) these choose the tests instead. Soak runs (-L soak) are every point
# of grids whose pairs are among the tests; what measures time (-L perf) runs alone. Sanitizers and fuzzing are apart:
# scripts/sanitize.sh and scripts/fuzz.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

say() { printf '\n== %s\n' "$*"; }

say "Packages"
scripts/packages.sh build mpi view test

say "Optimized build"
# One architecture of GPUs is enough to see that all compiles.
scripts/build.sh release -DSHARDSCOPE_BUILD_TESTS=ON -DSHARDSCOPE_WERROR=ON -DSHARDSCOPE_CUDA_ARCHITECTURES=90
say "Tests"
# One more at a time than there are cores: some wait for others.
(($#)) || set -- -LE 'soak|perf'
ctest --test-dir build/release --output-on-failure --no-tests=error -j $(($(nproc) + 1)) "$@"
