#!/usr/bin/env bash
# Has PyTorch and the trainer read each other's checkpoints and compares every tensor (docs/checkpoints.md): those of
# torch.distributed.checkpoint, with the optimizer's state, of one and of two processes, in fp32 and bf16, and those of
# safetensors; of networks for images (a ResNet, a VGG, a ViT) in both formats; and models of Hugging Face's transformers.
#
#   scripts/checkpoints.sh
#
# Exits with 1 if a tensor differs in one bit, or if training that continues from PyTorch's copy of a checkpoint of ours does
# not have the bits of training that continues from ours. The first run makes a virtual environment with the pinned PyTorch;
# SHARDSCOPE_PYTHON may name an interpreter that has it. Without its packages safetensors and transformers the script says
# so and leaves out their lines.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

. scripts/fidelity/environment.sh
export PYTHONWARNINGS=ignore  # of torch.distributed.checkpoint, which says that one process has no process group
with_torch scripts/checkpoints.py "$@"
