#!/usr/bin/env bash
# Runs the tests repeatedly on busy processors, and lists those that ever failed: it finds tests that depend on chance.
#
#   scripts/repeat_tests.sh [--busy N] [RUNS [CTEST-OPTION ...]]
#
# Makes RUNS (20) runs of the tests of build/release, as many tests at a time as there are processors, along with N (as
# many) endless loops. Prints a line for each run and one at the end; exit status 1 if any test failed. The output of a
# failed test is kept in build/repeat_tests.log. With options for CTest (such as -R LiftedRun) only those tests run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

busy=$(nproc)
if [[ ${1:-} == --busy ]]; then
    busy=${2:-}
    shift
    shift || true
fi
runs=${1:-20}
shift || true
if ! [[ $runs =~ ^[1-9][0-9]*$ && $busy =~ ^[0-9]+$ ]]; then
    echo "repeat_tests.sh: \"$runs\" runs beside \"$busy\" loops: write two numbers, for example --busy 2 20" >&2
    exit 2
fi
if [[ ! -f build/release/CTestTestfile.cmake ]]; then
    echo "repeat_tests.sh: build/release has no tests; run ./run_tests.sh once" >&2
    exit 2
fi

loops=()
stop() { ((${#loops[@]} == 0)) || kill "${loops[@]}" 2>/dev/null || true; }
trap stop EXIT
for ((i = 0; i < busy; ++i)); do
    (while :; do :; done) &
    loops+=($!)
done

log=build/repeat_tests.log
: >"$log"
output=$(mktemp)
trap 'stop; rm -f "$output"' EXIT
red=0
for ((run = 1; run <= runs; ++run)); do
    status=0
    started=$SECONDS
    ctest --test-dir build/release --output-on-failure --no-tests=error -j "$(nproc)" "$@" >"$output" 2>&1 || status=$?
    printf 'run %2d of %d: %s, %d s\n' "$run" "$runs" "$(grep -E 'tests passed' "$output" || tail -1 "$output")" \
        $((SECONDS - started))
    if ((status != 0)); then
        red=$((red + 1))
        sed -n '/The following tests FAILED/,$p' "$output"
        { printf '== run %d\n' "$run"; grep -vE ' (Passed|Start +[0-9]+:) ' "$output"; } >>"$log"
    fi
done
printf '%d of %d runs green, beside %d busy loops, on %s\n' $((runs - red)) "$runs" "$busy" "$(date +%Y-%m-%d)"
((red == 0))
