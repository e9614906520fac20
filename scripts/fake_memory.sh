#!/usr/bin/env bash
# Prints how well a recording of the fake mode (samples/pytorch/shardscope_fake.py) shows the peak of a PyTorch job: next
# to the storages that a real run on gloo has, and replayed as other configurations next to their own peaks.
#
#   scripts/fake_memory.sh [FOLDER]      FOLDER: keeps recordings and counts, and reuses those that are there
#
# Exits with 1 if a peak is off by more than 1 %. SHARDSCOPE_PYTHON may name an interpreter that has PyTorch; MODELS
# ("mlp llama gpt") are those to train. A model takes about five minutes on two cores.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bin=${BIN:-build/release/bin} # BIN: programs that are built already
[ -n "${BIN:-}" ] || scripts/build.sh release shardscope-train >&2
python=${SHARDSCOPE_PYTHON:-python3}
folder=${1:-}
if [ -z "$folder" ]; then
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
fi
mkdir -p "$folder"
read -ra models <<< "${MODELS:-mlp llama gpt}"

echo "$("$python" scripts/bench/torch_step.py version); fake: two ranks without a device; counted: gloo, two ranks."
echo
"$python" scripts/bench/fake_memory.py "$bin/shardscope-train" "$folder" "${models[@]}"
