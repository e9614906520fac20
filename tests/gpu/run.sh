#!/usr/bin/env bash
# The tests that need a GPU, in parts of at most ten minutes each.
#
#   tests/gpu/run.sh [--dry-run] [--part recorder|trainer|speed] ... [FOLDER]
#
#   recorder   shardscope-record: a CUDA program whose every call is known is compared with its trace
#   trainer    run.device = "cuda": kernels, losses, memory, traces, compared with the CPU's of the same jobs
#   speed      matmuls, memory-bound kernels, attention, a GPT's step compared with PyTorch's, the cost of tracing
#
# Runs all parts without --part. FOLDER has the tools (bin/ of a bundle or build/release/bin of this clone, unless it is
# given). Prints a line for each check. --dry-run runs what needs no GPU and lists the rest. Exit status 0: all checks
# passed, 1: one failed, 2: the command line is wrong, 77: nothing was run.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

parts=() options=() folder=()
while (($#)); do
    case $1 in
        --dry-run) options=(--dry-run) ;;
        --part)
            case ${2:-} in
                recorder | trainer | speed) parts+=("$2") ;;
                *)
                    echo "run.sh: \"${2:-}\" is not a part; use recorder, trainer or speed" >&2
                    exit 2
                    ;;
            esac
            shift
            ;;
        -h | --help)
            sed -n '2,/^set /{/^set /d; s/^# \{0,1\}//; p}' "${BASH_SOURCE[0]}"
            exit 0
            ;;
        -*)
            echo "run.sh: \"$1\" is not an option; use --dry-run or --part NAME" >&2
            exit 2
            ;;
        *) folder=("$1") ;;
    esac
    shift
done
((${#parts[@]})) || parts=(recorder trainer speed)

result=77
for part in "${parts[@]}"; do
    echo "=== $part"
    status=0
    "$here/$part.sh" "${options[@]}" "${folder[@]}" || status=$?
    case $status in
        0) ((result != 77)) || result=0 ;;
        77) ;;
        *) result=1 ;;
    esac
done
exit "$result"
