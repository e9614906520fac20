#!/usr/bin/env bash
# Compares tensor and sequence parallelism with PyTorch's: the same model with the same weights and samples is trained by
# parallelize_module and loss_parallel between processes on gloo and by shardscope-train, and the losses and the
# collectives of a step, in their order, are laid side by side (docs/parallelism.md).
#
#   scripts/tensor_parallel.sh
#
# Exits with 1 if a collective differs, or a loss by more than 1e-5 of it. The first run makes a virtual environment with
# the pinned PyTorch; SHARDSCOPE_PYTHON may name an interpreter that has it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

. scripts/fidelity/environment.sh
with_torch scripts/tensor_parallel.py "$@"
