#!/usr/bin/env bash
# Compares DDP with communication hooks with PyTorch's: the same linear model and the same GPT, weights, samples and first Q
# of PowerSGD, on two ranks, ours over tcp and PyTorch's over gloo, with PyTorch's own bf16_compress_hook, fp16_compress_hook
# and powerSGD_hook, and for top-k, of which PyTorch has none, with one that the script writes in PyTorch
# (docs/parallelism.md).
#
#   scripts/comm_hooks.sh
#
# Exits with 1 if a parameter after the last step differs by more than 1e-5, or if a step sends other bytes. The first run
# makes a virtual environment with the pinned PyTorch; SHARDSCOPE_PYTHON may name an interpreter that has it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

. scripts/fidelity/environment.sh
with_torch scripts/comm_hooks.py "$@"
