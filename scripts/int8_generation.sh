#!/usr/bin/env bash
# Compares texts that shardscope-train --generate continues with those of PyTorch: a small GPT that has learned a text, its
# weights in fp32, and in int8, there by torch._weight_int8pack_mm. The same random numbers draw the tokens.
#
#   scripts/int8_generation.sh
#
# Exits with 1 if a text differs, or if none is another in int8 than in fp32. The first run makes a virtual environment with
# the pinned PyTorch; SHARDSCOPE_PYTHON may name an interpreter that has it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

. scripts/fidelity/environment.sh
with_torch scripts/int8_generation.py "$@"
