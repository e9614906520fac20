#!/usr/bin/env bash
# Compares local SGD with PyTorch's: a linear model and a small GPT with the same weights and samples, on two ranks, ours over
# tcp and PyTorch's over gloo, there with PeriodicModelAverager and, for DiLoCo's outer step, with torch.optim.SGD of the
# averages (docs/parallelism.md).
#
#   scripts/local_steps.sh
#
# Exits with 1 if a parameter after the last step differs by more than 1e-5. The first run makes a virtual environment with
# the pinned PyTorch; SHARDSCOPE_PYTHON may name an interpreter that has it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

. scripts/fidelity/environment.sh
with_torch scripts/local_steps.py "$@"
