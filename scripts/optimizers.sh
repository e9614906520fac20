#!/usr/bin/env bash
# Compares LARS, LAMB and NovoGrad with the formulas of their papers, written in fp64 in PyTorch: a small gpt with the same
# weights and text, of one rank and of four under FSDP. Prints how far the losses of twenty steps and the last weights are
# apart (docs/recipes.md).
#
#   scripts/optimizers.sh
#
# Exits with 1 if a loss differs by more than 1e-5 of it, a weight by more than 1e-4 of its parameter's norm, or a loss of
# four ranks by more than 1e-6 of that of one. The first run makes a virtual environment with the pinned PyTorch;
# SHARDSCOPE_PYTHON may name an interpreter that has it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

. scripts/fidelity/environment.sh
with_torch scripts/optimizers.py "$@"
