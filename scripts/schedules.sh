#!/usr/bin/env bash
# Compares the pipeline schedules that shardscope-train makes with the tables that PyTorch's schedule classes build:
# every class, all actions, computations alone and with the transfers and FSDP's actions that lowering adds
# (docs/pipeline.md). Nothing is trained.
#
#   scripts/schedules.sh
#   scripts/schedules.sh --write tests/trainer/schedules.csv    PyTorch's tables of the cases that the tests keep
#
# Exits with 1 if a table differs. The first run makes a virtual environment with the pinned PyTorch; SHARDSCOPE_PYTHON may
# name an interpreter that has it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

. scripts/fidelity/environment.sh
with_torch scripts/schedules.py "$@"
