#!/usr/bin/env bash
# Makes the pictures of docs/viewer.md, docs/planning.md and the README: trains the sample GPT wrapped in two ways,
# plans the GPT of 7 billion parameters, and lets the viewer draw each panel, without a display.
#
#   scripts/viewer_pictures.sh [FOLDER]      FOLDER: docs/images
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folder=$(realpath -m "${1:-docs/images}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
scripts/packages.sh build view >&2
scripts/build.sh release shardscope-train shardscope-trace shardscope-view >&2
bin=$PWD/build/release/bin
mkdir -p "$folder"

job=$PWD/samples/gpt.toml
(cd "$work" && "$bin/shardscope-train" "$job" --run.steps=8 --trace block.sqlite >/dev/null)
(cd "$work" && "$bin/shardscope-train" "$job" --run.steps=8 --fsdp.wrap=root --trace root.sqlite >/dev/null)
(cd "$work" && "$bin/shardscope-train" plan "${job%/*}/gpt_7b.toml" -o plan.sqlite >/dev/null)

# The fifth step.
read -r from to < <("$bin/shardscope-trace" steps "$work/block.sqlite" --rank 0 --step 4 --format csv |
    awk -F, 'NR == 2 { printf "%.0f %.0f\n", $3, $3 + $4 * 1000 }')
{
    echo "set size 1400x820"
    echo "open block.sqlite root.sqlite"
    echo wait
    echo "set trace block.sqlite"
    for panel in runs modules units memory summary operators kernels copies collectives distributed idle advice \
        compare; do
        printf 'panel %s\nwait\nshot %s/%s.png\n' "$panel" "$folder" "$panel"
    done
    # One step.
    printf 'set visible %sns:%sns\npanel timeline\nwait\nshot %s/timeline.png\n' "$from" "$to" "$folder"
    printf 'panel shardmap\nwait\nshot %s/shardmap.png\n' "$folder"
    printf 'panel query\nwait\nclick query.run\nwait\nhover query.sql at 90%% 80%%\nwait\nshot %s/query.png\n' "$folder"
    # The planner's Pareto front with its best row selected.
    printf 'open plan.sqlite\nset trace plan.sqlite\npanel plan\nwait\nshot %s/plan.png\n' "$folder"
} >"$work/pictures.script"
(cd "$work" && "$bin/shardscope-view" --script pictures.script)
ls -l "$folder"
