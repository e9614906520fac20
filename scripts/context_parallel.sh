#!/usr/bin/env bash
# Compares context groups with PyTorch's: the same model with the same weights and samples is trained by
# context_parallel between processes on gloo and by shardscope-train; the losses, the gradients of the first step and
# the collectives of the last, in their order, are laid side by side (docs/parallelism.md).
#
#   scripts/context_parallel.sh
#
# Exits with 1 if a collective differs in another way than the page says, or a loss by more than 1e-5 of it, or a
# gradient by more than 1e-5 of its norm. The first run makes a virtual environment with the pinned PyTorch;
# SHARDSCOPE_PYTHON may name an interpreter that has it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

. scripts/fidelity/environment.sh
with_torch scripts/context_parallel.py "$@"
