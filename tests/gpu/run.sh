#!/usr/bin/env bash
# What only a GPU can prove of shardscope-record: a CUDA program whose every call is known is recorded, and what
# is in the trace is compared with what it did.
#
#   tests/gpu/run.sh [FOLDER WITH shardscope-record AND shardscope-trace]
#
# Prints a line for each check and for what was measured. Exit status 0: all is right, 1: something is not,
# 77: not run.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if ! nvidia-smi -L 2>/dev/null | grep -q '^GPU'; then
    echo "not run: no GPU"
    exit 77
fi

bin=$(cd "${1:-$here/../../build/release/bin}" 2>/dev/null && pwd) || {
    echo "not run: build first, or name the folder of shardscope-record" >&2
    exit 77
}

nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
if [ ! -x "$nvcc" ]; then
    echo "not run: no nvcc"
    exit 77
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

check() { # WHAT EXPECTED FOUND
    if [ "$2" = "$3" ]; then
        echo "ok      $1: $3"
    else
        echo "FAILED  $1: expected $2, found $3"
        failures=$((failures + 1))
    fi
}
value() { # TRACE SQL: the one value that it gives
    "$bin/shardscope-trace" query "$1" "$2" --format csv | tail -n 1 | tr -d '"\r'
}
record() { # TRACE OPTIONS... -- COMMAND...: what the command printed is in $work/out
    local trace=$1
    shift
    "$bin/shardscope-record" -o "$trace" --overwrite "$@" >"$work/out" 2>"$work/err"
}
told() { sed -n "s/^$1=//p" "$work/out"; }
kernels() { # TRACE NAME
    value "$1" "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.shortName WHERE s.value = '$2'"
}
bytes() { # TRACE COPY-KIND
    value "$1" "SELECT coalesce(sum(bytes), 0) FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE copyKind = $2"
}

nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | sed 's/^/GPU     /'
for runtime in static shared; do
    "$nvcc" -O2 -std=c++17 -arch=native -cudart $runtime -o "$work/job-$runtime" "$here/cuda_job.cu"
done

for runtime in static shared; do
    echo "--- everything, CUDA's runtime linked $runtime"
    trace=$work/$runtime.sqlite
    record "$trace" -- "$work/job-$runtime" work
    for name in scale in_graph spin; do check "kernels $name" "$(told $name)" "$(kernels "$trace" $name)"; done
    check "bytes to the device" "$(told htod)" "$(bytes "$trace" 1)"
    check "bytes from the device" "$(told dtoh)" "$(bytes "$trace" 2)"
    check "bytes on the device" "$(told dtod)" "$(bytes "$trace" 8)"
    check "bytes set" "$(told memset)" "$(value "$trace" "SELECT sum(bytes) FROM CUPTI_ACTIVITY_KIND_MEMSET")"
    check "largest allocation" "$(told malloc)" \
        "$(value "$trace" "SELECT max(bytes) FROM CUDA_GPU_MEMORY_USAGE_EVENTS WHERE memoryOperationType = 0")"
    check "device work without its call" 0 "$(value "$trace" "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k WHERE NOT
        EXISTS (SELECT 1 FROM CUPTI_ACTIVITY_KIND_RUNTIME r WHERE r.correlationId = k.correlationId)")"
    check "kernels before their launch" 0 "$(value "$trace" "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN
        CUPTI_ACTIVITY_KIND_RUNTIME r USING (correlationId) WHERE k.start < r.start")"
    check "kernels of graphs" "$(told in_graph)" \
        "$(value "$trace" "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE graphNodeId NOT NULL")"
    check "launching threads" 5 "$(value "$trace" "SELECT count(DISTINCT r.globalTid) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN
        CUPTI_ACTIVITY_KIND_RUNTIME r USING (correlationId)")"
    # Both clocks: what the range's own thread called lies inside the range.
    check "launches of scale on the main thread outside its range" 0 "$(value "$trace" "SELECT count(*) FROM
        CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.shortName AND s.value = 'scale' JOIN
        CUPTI_ACTIVITY_KIND_RUNTIME r USING (correlationId) JOIN NVTX_EVENTS n ON n.text = 'all work' AND
        n.globalTid = r.globalTid WHERE r.start < n.start OR r.end > n.end")"
    check "the GPU's name" "$(nvidia-smi --query-gpu=name --format=csv,noheader | head -n 1)" \
        "$(value "$trace" "SELECT name FROM TARGET_INFO_GPU LIMIT 1")"
    check "lost events" 0 "$(value "$trace" "SELECT dropped FROM SHARD_STATE")"
    check "warnings" 0 "$(value "$trace" "SELECT count(*) FROM DIAGNOSTIC_EVENT WHERE severity >= 2")"
done

echo "--- a crash"
status=0
record "$work/crash.sqlite" -- "$work/job-static" crash || status=$?
check "exit status" 9 "$status"
last=$(value "$work/crash.sqlite" "SELECT (max(k.end) - min(k.end)) / 1000000 FROM CUPTI_ACTIVITY_KIND_KERNEL k")
check "ms of 3500 that are there, more than 1500" yes "$([ "${last:-0}" -gt 1500 ] && echo yes || echo "no, $last")"

echo "--- windows"
record "$work/steps.sqlite" --steps 1:1 -- "$work/job-static" windows
check "kernels of step 1" 10 "$(kernels "$work/steps.sqlite" scale)"
check "kernels between steps" 0 "$(kernels "$work/steps.sqlite" spin)"
record "$work/api.sqlite" --profiler-api -- "$work/job-static" windows
check "kernels between cudaProfilerStart and Stop" 7 "$(kernels "$work/api.sqlite" scale)"
check "other kernels" 0 "$(kernels "$work/api.sqlite" spin)"

echo "--- another profiler in the process"
if command -v nsys >/dev/null; then
    # Both inject through the same variable: the tool leaves Nsight's place alone, and says so.
    (cd "$work" && nsys profile -t cuda -o other --force-overwrite true "$bin/shardscope-record" -o "$work/held.sqlite" \
        -- "$work/job-static" work) >"$work/out" 2>&1 || true
    check "the program under both did its work" 300 "$(told scale)"
else
    echo "not run: no nsys"
fi

echo "--- a launch's cost, ns, medians of 5 runs each"
median() { sort -n | sed -n 3p; }
alone=$(for _ in 1 2 3 4 5; do "$work/job-static" launches 100000; done | median)
recorded=$(for _ in 1 2 3 4 5; do
    record "$work/launches.sqlite" -- "$work/job-static" launches 100000
    tail -n 1 "$work/out"
done | median)
echo "alone $alone, recorded $recorded"
check "launches" 100001 "$(kernels "$work/launches.sqlite" spin)"

[ "$failures" -eq 0 ] || { echo "$failures checks failed"; exit 1; }
echo "all checks passed"
