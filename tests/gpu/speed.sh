#!/usr/bin/env bash
# The speed part of run.sh: kernels compared with their bounds, the step of a GPT of 124 million parameters (context
# 1024, bf16) compared with PyTorch's, the cost of tracing, and the device's idle time. Compared runs alternate.
#
#   tests/gpu/speed.sh [--dry-run] [FOLDER]
#
# $SHARDSCOPE_PYTHON: a Python with a PyTorch for CUDA (python3). Needs an otherwise idle machine.
# shellcheck disable=SC1091,SC2154  # lib.sh and what it sets
# shellcheck disable=SC2119,SC2120  # in_turn passes words to ours, which shellcheck does not see
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
start "$@"
[[ -x $bin/shardscope-train ]] || not_run "no shardscope-train in $bin"
job=$here/gpt2.toml
rounds=5
export CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES:-0}
CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES%%,*}

# --- kernels -----------------------------------------------------------------------------------------------

section "kernels"
bench=$bin/bench_cuda
if [[ ! -x $bench ]]; then
    left_out "kernels" "no bench_cuda in $bin (it is built where nvcc is)"
elif $dry; then
    "$bench" nothing >"$work/out" 2>"$work/err"
    check "bench_cuda starts, and knows its parts" 2 $?
    would "products, kernels that move memory, attention, convolutions"
else
    timeout 240 "$bench" >"$work/bench" 2>"$work/err"
    check "bench_cuda" 0 "$?$(head -n 1 "$work/err")"
    echo "products: us of ours, us of cuBLASLt alone, alone / ours, TFLOP/s"
    grep '^gemm' "$work/bench"
    compare "bf16 products, alone / ours, the least" \
        "$(awk '/^gemm bf16/ { print $7 }' "$work/bench" | sort -g | head -n 1)" ">=" 0.95
    echo "GELU and ReLU in the product: us in it, us apart, apart / in it"
    grep '^fused' "$work/bench"
    compare "bf16 GELU in the product, apart / in it" "$(awk '/^fused bf16 gelu/ { print $6 }' "$work/bench")" ">=" 1
    echo "memory: elements, us, GB/s, of a copy's GB/s"
    grep '^memory' "$work/bench"
    compare "AdamW in all segments at once, of a copy's bandwidth" \
        "$(awk '/^memory adamw/ { print $7 }' "$work/bench")" ">=" 0.85
    echo "fused causal attention: batch x context, heads x features, us, TFLOP/s of what the mask leaves"
    grep '^attention' "$work/bench"
    echo "convolutions of a resnet50 in fp32: images, window / stride, filters, us, TFLOP/s"
    grep '^convolution' "$work/bench"
fi

# --- a step ------------------------------------------------------------------------------------------------

# Enough words for byte pairs to fill GPT-2's vocabulary.
text=$work/words.txt
words=400000
$dry && words=2000
awk -v words=$words 'BEGIN {
    srand(1)
    for (i = 0; i < 60000; ++i) {
        n = 3 + int(8 * rand())
        for (j = 0; j < n; ++j) word[i] = word[i] sprintf("%c", 97 + int(26 * rand() * rand()))
    }
    for (i = 0; i < words; ++i) printf "%s%s", word[int(60000 * rand() * rand())], i % 12 == 11 ? "\n" : " "
}' >"$text"
keys=(--run.device="$device" --data.path="$text")
$dry && keys+=(--run.steps=4 --model.layers=1 --model.width=64 --model.heads=1 --model.context=32 --model.vocabulary=300 --data.batch=2)

# Tokens per second after the first step, from the last line of progress.
ours() { # KEY ...
    timeout 120 "$bin/shardscope-train" "$job" "${keys[@]}" "$@" --format json >"$work/ours.json" 2>"$work/ours.err"
    sed -n 's|^step .* tokens/s (mean \([0-9]*\)) .*done$|\1|p' "$work/ours.err" | tail -n 1
}
python=${SHARDSCOPE_PYTHON:-python3}
theirs() {
    timeout 120 "$python" "$here/torch_gpt.py" 2>"$work/theirs.err"
}
# Runs `ours` and COMMAND in turn; medians of what they print as `one` and `other`.
$dry && rounds=1
in_turn() { # COMMAND ...
    local a=() b=() i
    for ((i = 0; i < rounds; ++i)); do
        a+=("$(ours)")
        b+=("$("$@")")
    done
    one=$(printf '%s\n' "${a[@]}" | median)
    other=$(printf '%s\n' "${b[@]}" | median)
}
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { if (a > 0 && b > 0) printf "%.3f\n", a / b }'; }

section "a step: 12 x 768, context 1024, batch 8, 124,439,808 parameters in bf16"
if $dry; then
    parameters=$("$bin/shardscope-train" "$job" --data.path="$text" --dry-run | grep -o '[0-9][0-9,]* parameters' | head -n 1)
    check "parameters" "124,439,808 parameters" "$parameters"
    compare "tokens a second on the processor, of a much smaller one" "$(ours)" ">" 0
    if command -v "$python" >/dev/null; then
        "$python" -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' "$here/torch_gpt.py" 2>"$work/err"
        check "torch_gpt.py is Python" 0 $?
    else
        left_out "torch_gpt.py is Python" "no $python"
    fi
    would "PyTorch on the same shapes"
elif ! "$python" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
    left_out "beside PyTorch" "no PyTorch for CUDA in $python"
    compare "tokens a second" "$(ours)" ">" 0
else
    in_turn theirs
    echo "tokens per second, medians of $rounds: ours $one, $(sed -n 's/.*, PyTorch/PyTorch/p' "$work/theirs.err") $other"
    [[ -n $one ]] || tail -n 1 "$work/ours.err"
    [[ -n $other ]] || tail -n 1 "$work/theirs.err"
    compare "our step / PyTorch's" "$(ratio "$other" "$one")" "<=" 1.2
fi

section "the step with GELU in the product (model.fused_activation)"
in_turn ours --model.fused_activation=true
echo "tokens per second, medians of $rounds: apart $one, in the product $other"
if $dry; then
    compare "in the product / apart" "$(ratio "$other" "$one")" ">" 0
else
    compare "in the product / apart" "$(ratio "$other" "$one")" ">=" 0.98
fi

section "tracing with CUPTI: traced / untraced step, and the device's idle time"
trace=$work/gpt2.sqlite
in_turn ours --trace "$trace" --overwrite
echo "tokens per second, medians of $rounds: untraced $one, traced $other"
if $dry; then
    compare "traced / untraced" "$(ratio "$one" "$other")" ">" 0
else
    compare "traced / untraced" "$(ratio "$one" "$other")" "<=" 1.02
fi
check "lost events" 0 "$(value "$trace" "SELECT dropped FROM SHARD_STATE")"
idle=$("$bin/shardscope-trace" temporal "$trace" --format csv | tr -d '\r' | awk -F, '
    NR == 1 { for (i = 1; i <= NF; ++i) column[$i] = i; next }
    $column["step"] >= 2 && $column["step"] != "" { total += $column["total_us"]; idle += $column["idle_us"] }
    END { if (total > 0) printf "%.4f\n", idle / total }')
if $dry; then compare "idle share of the steps" "$idle" "<=" 1; else compare "idle share of the steps" "$idle" "<=" 0.03; fi
echo "where the idle time comes from (shardscope-trace idle):"
"$bin/shardscope-trace" idle "$trace" | head -n 12
finish
