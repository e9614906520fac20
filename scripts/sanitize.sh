#!/usr/bin/env bash
# Builds and runs tests under a sanitizer, with clang: without optimization it compiles in half of GCC's time.
#
#   scripts/sanitize.sh address|thread [ROOM [LABELS [CTEST-OPTION ...]]]
#
# address (with undefined behaviour): the recorder's, the store's and the importers' tests; thread: those of code
# that runs several threads. ROOM, such as traces or 'profiler|trainer': only those of these rooms. LABELS, a pattern
# such as trainer or 'viewer|report', selects others (with "" as ROOM). Tests labelled slow run in the optimized build.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

case ${1:-} in
    address) preset=asan labels='profiler|store|import' ;;
    thread) preset=tsan labels=threads ;;
    *)
        echo "sanitize.sh: say which: scripts/sanitize.sh address, or scripts/sanitize.sh thread" >&2
        exit 2
        ;;
esac
shift
room=${1:-}
shift || true
labels=${1:-$labels}
shift || true

if ! command -v clang++ >/dev/null; then
    echo "sanitize.sh: clang++ is not installed; install the packages of scripts/packages.sh --list sanitize" >&2
    exit 1
fi
# The thread sanitizer expects a fixed layout of the address space: randomization is switched off if possible.
fixed=()
if setarch "$(uname -m)" --addr-no-randomize true 2>/dev/null; then
    fixed=(setarch "$(uname -m)" --addr-no-randomize)
fi
# Warnings are checked by the optimized build.
scripts/build.sh "$preset" -DSHARDSCOPE_BUILD_TESTS=ON -DSHARDSCOPE_WERROR=OFF -DSHARDSCOPE_BUILD_VIEWER=OFF \
    -DSHARDSCOPE_SANITIZED_LABELS="$labels" -DSHARDSCOPE_SANITIZED_ROOMS="$room" sanitized_tests
"${fixed[@]}" ctest --test-dir "build/$preset" --output-on-failure --no-tests=error -j "$(nproc)" \
    -L "$labels" ${room:+-L "$room"} -LE slow "$@"
