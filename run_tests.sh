#!/usr/bin/env bash
# Installs missing packages, builds everything and runs every test except the soak runs and those that measure time.
#
#   ./run_tests.sh [CTEST-OPTION ...]
#
# Options for CTest (such as -R job or -L viewer) select the tests instead. Soak runs (-L soak) run every point of grids
# of which the other tests run each pair; tests that measure time (-L perf) run alone. Sanitizers and fuzzing are in
# scripts/sanitize.sh and scripts/fuzz.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

say() { printf '\n== %s\n' "$*"; }

say "Packages"
scripts/packages.sh build mpi view test

say "Optimized build"
# One GPU architecture is enough to check that everything compiles.
scripts/build.sh release -DSHARDSCOPE_BUILD_TESTS=ON -DSHARDSCOPE_WERROR=ON -DSHARDSCOPE_CUDA_ARCHITECTURES=90
say "Tests"
# More at a time than there are cores: many tests wait.
(($#)) || set -- -LE 'soak|perf'
ctest --test-dir build/release --output-on-failure --no-tests=error -j $((2 * $(nproc) + 1)) "$@"
