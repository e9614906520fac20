#!/usr/bin/env bash
# The recorder's part of run.sh: records a CUDA program whose every call is known, and compares the trace with what
# the program did.
#
#   tests/gpu/recorder.sh [--dry-run] [FOLDER]
# shellcheck disable=SC1091,SC2154  # lib.sh and what it sets
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
start "$@"

nvcc=$(command -v nvcc || echo "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc")
if $dry; then
    check "the program is there" yes "$([[ -f $here/cuda_job.cu ]] && echo yes || echo no)"
    if [[ -x $nvcc ]]; then
        status=0
        "$nvcc" -O1 -std=c++17 -o "$work/job" "$here/cuda_job.cu" >"$work/out" 2>&1 || status=$?
        check "it compiles" 0 "$status"
    else
        left_out "it compiles" "no nvcc"
    fi
    status=0
    "$bin/shardscope-record" -o "$work/true.sqlite" -- true >"$work/out" 2>&1 || status=$?
    check "a program without CUDA is recorded" 0 "$status"
    check "lost events" 0 "$(value "$work/true.sqlite" "SELECT dropped FROM SHARD_STATE")"
    would "everything, CUDA's runtime linked static and shared: kernels, bytes, allocations, launches, clocks"
    would "a crash keeps what was recorded; windows of steps and of the profiler API; another profiler"
    would "a launch's cost, recorded and not"
    finish
fi
[[ -x $nvcc ]] || not_run "no nvcc"

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

for runtime in static shared; do
    "$nvcc" -O2 -std=c++17 -arch=native -cudart $runtime -o "$work/job-$runtime" "$here/cuda_job.cu"
done

for runtime in static shared; do
    section "everything, CUDA's runtime linked $runtime"
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
    # Checks both clocks: calls of the range's own thread lie inside the range.
    check "launches of scale on the main thread outside its range" 0 "$(value "$trace" "SELECT count(*) FROM
        CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.shortName AND s.value = 'scale' JOIN
        CUPTI_ACTIVITY_KIND_RUNTIME r USING (correlationId) JOIN NVTX_EVENTS n ON n.text = 'all work' AND
        n.globalTid = r.globalTid WHERE r.start < n.start OR r.end > n.end")"
    check "the GPU's name" "$(nvidia-smi --query-gpu=name --format=csv,noheader | head -n 1)" \
        "$(value "$trace" "SELECT name FROM TARGET_INFO_GPU LIMIT 1")"
    check "lost events" 0 "$(value "$trace" "SELECT dropped FROM SHARD_STATE")"
    check "warnings" 0 "$(value "$trace" "SELECT count(*) FROM DIAGNOSTIC_EVENT WHERE severity >= 2")"
done

section "a crash"
status=0
record "$work/crash.sqlite" -- "$work/job-static" crash || status=$?
check "exit status" 9 "$status"
last=$(value "$work/crash.sqlite" "SELECT (max(k.end) - min(k.end)) / 1000000 FROM CUPTI_ACTIVITY_KIND_KERNEL k")
check "ms of 3500 that are there, more than 1500" yes "$([ "${last:-0}" -gt 1500 ] && echo yes || echo "no, $last")"

section "windows"
record "$work/steps.sqlite" --steps 1:1 -- "$work/job-static" windows
check "kernels of step 1" 10 "$(kernels "$work/steps.sqlite" scale)"
check "kernels between steps" 0 "$(kernels "$work/steps.sqlite" spin)"
record "$work/api.sqlite" --profiler-api -- "$work/job-static" windows
check "kernels between cudaProfilerStart and Stop" 7 "$(kernels "$work/api.sqlite" scale)"
check "other kernels" 0 "$(kernels "$work/api.sqlite" spin)"

section "another profiler in the process"
if command -v nsys >/dev/null; then
    # Both inject through the same variable: the tool leaves it to Nsight Systems, and reports so.
    (cd "$work" && nsys profile -t cuda -o other --force-overwrite true "$bin/shardscope-record" -o "$work/held.sqlite" \
        -- "$work/job-static" work) >"$work/out" 2>&1 || true
    check "the program under both did its work" 300 "$(told scale)"
else
    left_out "two profilers" "no nsys"
fi

section "a launch's cost, ns, medians of 5 runs each"
alone=$(for _ in 1 2 3 4 5; do "$work/job-static" launches 100000; done | median)
recorded=$(for _ in 1 2 3 4 5; do
    record "$work/launches.sqlite" -- "$work/job-static" launches 100000
    tail -n 1 "$work/out"
done | median)
echo "alone $alone, recorded $recorded"
check "launches" 100001 "$(kernels "$work/launches.sqlite" spin)"

finish
