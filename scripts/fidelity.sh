#!/usr/bin/env bash
# Compares the schedule and the memory that shardscope-train plans with what PyTorch does: collectives in the order of
# the host, and peaks, for several hundred configurations of DDP, FSDP1 and FSDP2 (docs/fidelity.md).
#
#   scripts/fidelity.sh                            PyTorch runs now (without communication, on the processor)
#   scripts/fidelity.sh --from-logs                what it did is in scripts/fidelity/logs; needs no PyTorch
#   scripts/fidelity.sh --write-logs scripts/fidelity/logs
#   scripts/fidelity.sh --plant all --from-logs    an error in each column must be found
#
# Exits with 1 if a configuration differs without a reason that scripts/fidelity/differences.py names. The first run
# makes a virtual environment with the pinned PyTorch; SHARDSCOPE_PYTHON may name an interpreter that has it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bin=${BIN:-build/release/bin} # BIN: programs that are built already
[ -n "${BIN:-}" ] || scripts/build.sh release shardscope-train >&2

python=${SHARDSCOPE_PYTHON:-python3}
if [[ " $* " != *" --from-logs"* && " $* " != *" --list "* ]]; then
    . scripts/fidelity/environment.sh
    python=$(torch_python)
fi
exec "$python" scripts/fidelity --tool "$bin/shardscope-train" "$@"
