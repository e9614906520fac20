#!/usr/bin/env bash
# Compares a mixture of experts with PyTorch's operators: the same gpt and llama with the same weights and samples, of
# one rank, with and without capacity and balance loss. Prints how far the losses of some steps, and the gradients of
# the first, are apart (docs/parallelism.md).
#
#   scripts/experts.sh
#
# Exits with 1 if a loss differs by more than 1e-5 of it, or a gradient by more than 1e-5 of its norm. The first run
# makes a virtual environment with the pinned PyTorch; SHARDSCOPE_PYTHON may name an interpreter that has it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

. scripts/fidelity/environment.sh
with_torch scripts/experts.py "$@"
