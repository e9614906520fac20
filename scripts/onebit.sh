#!/usr/bin/env bash
# Compares 1-bit Adam with a form of it in PyTorch that the script writes after the paper (arXiv 2102.02888) and DeepSpeed's
# compressed_allreduce: a small GPT with the same weights and samples, on two ranks, ours over tcp and PyTorch's over gloo,
# with torch.optim.Adam until the variance is frozen (docs/parallelism.md).
#
#   scripts/onebit.sh
#
# Exits with 1 if a parameter differs by more than 1e-5 after the warm-up, or after the last step if more than one in a
# thousand does: a number so near 0 that rounding decides its sign is sent as another bit, which later ones follow. The first
# run makes a virtual environment with the pinned PyTorch; SHARDSCOPE_PYTHON may name an interpreter that has it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

. scripts/fidelity/environment.sh
with_torch scripts/onebit.py "$@"
