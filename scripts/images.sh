#!/usr/bin/env bash
# Compares the training of ResNets, VGGs and vision transformers with PyTorch's: networks in plain torch.nn with the same
# weights read the same images, and the loss, every gradient and the running statistics of batch norms are laid side by
# side; so are DDP's buckets, which PyTorch's reducer makes between processes on gloo (docs/resnet.md).
#
#   scripts/images.sh [--model NAME]
#
# Exits with 1 unless, for one of twelve seeds, every gradient and statistic is within 1e-4 of its largest entry of PyTorch's
# in fp64, and the loss within 1e-5 (in fp32 a ReLU of a number near 0 may go the other way, which moves all gradients); or if
# a bucket has other bytes. The first run makes a virtual environment with the pinned PyTorch; SHARDSCOPE_PYTHON may name an
# interpreter that has it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

. scripts/fidelity/environment.sh
with_torch scripts/images.py "$@"
