#!/usr/bin/env bash
# Prints how fast the trainer is, compared with the matmuls of a step alone and with PyTorch on the same model,
# batch and threads, and how communication overlaps with computation. Compared runs alternate.
#
#   scripts/bench_trainer.sh        takes some minutes; needs an otherwise idle machine
#
# PyTorch is that of the python3 on PATH (python3 -m pip install torch, in an environment of its own), with its own
# matmuls and default settings; if it is not installed its rows are omitted, with a note.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/packages.sh build test >&2
scripts/build.sh release -DSHARDSCOPE_BUILD_TESTS=ON bench_step >&2
ours=build/release/bin/bench_step
theirs=scripts/bench/torch_step.py
rounds=5

median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
least() { sort -g | head -n 1; }

echo '```'
"$ours" gpt
echo
version=$(python3 "$theirs" version 2>/dev/null || true)
if [[ -n $version ]]; then
    core=$("$ours" core)
    a=() b=() c=() d=() e=() f=() g=()
    for ((i = 0; i < rounds; ++i)); do
        a+=("$("$ours" gpt-step)")
        b+=("$(python3 "$theirs" gpt 4)")
        e+=("$(python3 "$theirs" gpt-fused 4)")
        f+=("$("$ours" resnet50-step)")
        g+=("$(python3 "$theirs" resnet50 3)")
        c+=("$("$ours" mlp-step)")
        d+=("$(python3 "$theirs" mlp 20 2>/dev/null)")
    done
    row() { # TITLE OURS THEIRS GOAL
        awk -v t="$1" -v a="$2" -v b="$3" -v g="$4" \
            'BEGIN { printf "%-52s %9.1f %9.1f %8.2f   %s\n", t, a, b, a / b, g }'
    }
    printf 'Step in ms, %s alternating rounds; %s\nours: products with OpenBLAS, %s kernels; convolutions with %s\n' \
        "$rounds" "$version" "$core" "$("$ours" convolutions)"
    printf '%-52s %9s %9s %8s   %s\n' '' ours PyTorch ratio goal
    row 'GPT 6 x 384, context 256, batch 8, one thread (CPU)' "$(printf '%s\n' "${a[@]}" | median)" \
        "$(printf '%s\n' "${b[@]}" | median)" 'at most 0.90'
    row 'the same, PyTorch with its fused attention' "$(printf '%s\n' "${a[@]}" | median)" \
        "$(printf '%s\n' "${e[@]}" | median)" 'below 1'
    row 'ResNet-50, 16 images of 224, one thread (CPU)' "$(printf '%s\n' "${f[@]}" | median)" \
        "$(printf '%s\n' "${g[@]}" | median)" 'at most 1.11'
    row 'MLP 8 x 1024, batch 128, DDP on 2 ranks (wall)' "$(printf '%s\n' "${c[@]}" | least)" \
        "$(printf '%s\n' "${d[@]}" | least)" 'at most 0.67'
else
    echo 'The python3 on PATH has no PyTorch; its rows are omitted.'
fi
echo
"$ours" bf16
echo
"$ours" overlap
echo '```'
