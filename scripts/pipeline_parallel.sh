#!/usr/bin/env bash
# Compares pipelines with PyTorch's: the same model with the same weights and samples is trained by the schedules of
# torch.distributed.pipelining between processes on gloo and by shardscope-train, and the losses and each place's
# actions, messages and collectives of a step, in their order, are laid side by side (docs/parallelism.md).
#
#   scripts/pipeline_parallel.sh
#   scripts/pipeline_parallel.sh --only zb_v --show
#
# Exits with 1 if one of them differs, or a loss by more than 1e-5 of it. The first run makes a virtual environment with
# the pinned PyTorch; SHARDSCOPE_PYTHON may name an interpreter that has it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

. scripts/fidelity/environment.sh
with_torch scripts/pipeline_parallel.py "$@"
