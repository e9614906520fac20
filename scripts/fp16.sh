#!/usr/bin/env bash
# Compares training in fp16 with PyTorch's: the loss scale, step by step, with torch.amp.GradScaler's for the same overflows,
# and the gradients of a GPT with those of the same network in plain torch.nn, whose parameters are fp16 and whose loss is
# scaled, as FSDP's MixedPrecision computes (docs/fsdp.md).
#
#   scripts/fp16.sh
#
# Exits with 1 if a scale differs, or if a gradient is farther from PyTorch's in fp64 than one and a half times what PyTorch's
# own in fp16 is. The first run makes a virtual environment with the pinned PyTorch; SHARDSCOPE_PYTHON may name an interpreter
# that has it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

. scripts/fidelity/environment.sh
with_torch scripts/fp16.py "$@"
