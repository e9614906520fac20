#!/usr/bin/env bash
# Makes the two traces of samples/traces anew, with the tools of build/release.
#
#   scripts/sample_traces.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/build.sh release shardscope-train >&2
for wrap in root linear; do
    policy=root
    [[ $wrap == root ]] || policy=module:Linear
    build/release/bin/shardscope-train samples/mlp.toml --model.width=64 --run.ranks=2 --run.steps=4 \
        --fsdp.wrap="$policy" --trace "samples/traces/mlp-$wrap.sqlite" --overwrite
done
