#!/usr/bin/env bash
# Makes the pictures of docs/viewer.md, docs/pipeline.md, docs/planning.md, docs/utilization.md, docs/learn and the README:
# trains the sample GPT wrapped in two ways and samples its stacks, plans the GPT of 7 billion parameters, simulates
# pipelines, plays the devices of a job, and lets the viewer draw each panel, without a display. The kernel must allow
# perf events (kernel.perf_event_paranoid at most 2).
#
#   scripts/viewer_pictures.sh [FOLDER]      FOLDER: docs/images
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folder=$(realpath -m "${1:-docs/images}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
scripts/packages.sh build view >&2
scripts/build.sh release shardscope-train shardscope-trace shardscope-record shardscope-view >&2
bin=$PWD/build/release/bin
mkdir -p "$folder"

job=$PWD/samples/gpt.toml
(cd "$work" && "$bin/shardscope-train" "$job" --run.steps=8 --trace block.sqlite >/dev/null)
(cd "$work" && "$bin/shardscope-train" "$job" --run.steps=8 --fsdp.wrap=root --trace root.sqlite >/dev/null)
for rate in 0.0003 0.001 0.003; do
    (cd "$work" && "$bin/shardscope-train" "${job%/*}/gpt-text.toml" --run.steps=60 --model.width=64 --model.layers=2 \
        --train.validate_every=10 --optimizer.lr=$rate --checkpoint.save=rate-$rate --trace rate-$rate.sqlite >/dev/null)
done
for batch in 8 32 128 512; do
    (cd "$work" && "$bin/shardscope-train" "${job%/*}/mlp.toml" --run.ranks=2 --model.width=64 --model.layers=4 \
        --data.batch=$batch --run.steps=$((8192 / batch)) --optimizer.lr_scaling=sqrt --optimizer.lr_batch=16 \
        --trace batch-$batch.sqlite >/dev/null)
done
(cd "$work" && "$bin/shardscope-train" "${job%/*}/fp16.toml" --trace fp16.sqlite >/dev/null)
(cd "$work" && "$bin/shardscope-train" plan "${job%/*}/gpt_7b.toml" -o plan.sqlite >/dev/null)

# Where the processor time of its training goes.
(cd "$work" && "$bin/shardscope-record" -o sampled.sqlite --sample 997 --sample-by perf -- "$bin/shardscope-train" "$job" --run.steps=40 \
    >/dev/null 2>record.txt)
if grep "not sampled" "$work/record.txt" >&2; then exit 1; fi

# Ten minutes of played devices.
"$bin/shardscope-trace" import samples/traces/mlp-root.sqlite -o "$work/job.sqlite" >/dev/null
python3 scripts/job_samples.py "$work/job.sqlite"

# A GPT on two hosts of eight GPUs, simulated, with their links as nvidia-smi prints them.
(cd "$work" && "$bin/shardscope-train" "${job%/*}/gpt_3d.toml" --trace hosts.sqlite --run.device=sim --run.steps=2 \
    --sim.cluster="${job%/*}/clusters/h100_ib.toml" --sim.trace_ranks=16 --run.ranks=16 --model.layers=8 --model.heads=16 \
    --model.width=2048 --model.context=1024 --parallel.pipeline=2 --parallel.tensor=4 --train.accumulation=4 >/dev/null)
awk 'BEGIN {
    for (i = 0; i < 16; ++i) printf "\t%s%d", i < 8 ? "GPU" : "NIC", i % 8
    print "\tCPU Affinity\tNUMA Affinity"
    for (i = 0; i < 16; ++i) {
        printf "%s%d", i < 8 ? "GPU" : "NIC", i % 8
        for (j = 0; j < 16; ++j) {
            same = int(i % 8 / 4) == int(j % 8 / 4)
            printf "\t%s", i == j ? " X " : i < 8 && j < 8 ? "NV18" : i % 8 == j % 8 ? "PIX" : same ? "NODE" : "SYS"
        }
        print i < 8 ? "\t" (i < 4 ? "0-47\t0" : "48-95\t1") : ""
    }
}' >"$work/topology.txt"
(cd "$work" && "$bin/shardscope-trace" topology hosts.sqlite --from topology.txt --host node-0 --host node-1 \
    -o wired.sqlite >/dev/null)

# A GPT on 8 places of a pipeline, simulated: 1F1B, ZB-V, and 16 pipelines beside each other.
simulate() {
    (cd "$work" && "$bin/shardscope-train" "${job%/*}/gpt_3d.toml" --trace "$1" --run.device=sim --run.steps=3 \
        --sim.cluster="${job%/*}/clusters/h100_ib.toml" --sim.trace_ranks=128 --model.layers=16 --model.heads=16 \
        --model.width=2048 --model.context=1024 --parallel.pipeline=8 "${@:2}" >/dev/null)
}
simulate schedule.sqlite --parallel.tensor=1 --train.accumulation=16
simulate schedule_zb_v.sqlite --parallel.tensor=1 --train.accumulation=8 --parallel.schedule=zb_v \
    --parallel.virtual_stages=2
simulate schedule_128.sqlite --run.ranks=128 --parallel.tensor=4 --train.accumulation=16

# The fifth step.
read -r from to < <("$bin/shardscope-trace" steps "$work/block.sqlite" --rank 0 --step 4 --format csv |
    awk -F, 'NR == 2 { printf "%.0f %.0f\n", $3, $3 + $4 * 1000 }')
{
    echo "set size 1400x820"
    echo "open block.sqlite root.sqlite"
    echo wait
    echo "set trace block.sqlite"
    for panel in start runs modules units memory summary operators kernels copies collectives distributed idle advice \
        compare; do
        printf 'panel %s\nwait\nshot %s/%s.png\n' "$panel" "$folder" "$panel"
    done
    # A unit merged into its parent, tried in place.
    printf 'panel modules\nwait\nclick modules.row.FullyShardedDataParallel_0/GPT_0/FullyShardedDataParallel_2\nwait\n'
    printf 'click modules.try.merge\nwait\nshot %s/try.png\nclick modules.try.close\n' "$folder"
    # One step.
    printf 'set visible %sns:%sns\npanel timeline\nwait\nshot %s/timeline.png\n' "$from" "$to" "$folder"
    # Another run below it; memory over the timeline.
    printf 'action other_run\nwait\nshot %s/two_runs.png\naction other_run\n' "$folder"
    printf 'panes memory /45 timeline\nwait\nshot %s/panes.png\npanes timeline\nwait\n' "$folder"
    printf 'set area %sns:%sns "rank 0" "rank 1"\nwait\nclick timeline.area.by.kind\nwait\n' "$from" "$to"
    printf 'click timeline.area.groups.Communication at 5 5\nwait\nshot %s/area.png\nset area none\n' "$folder"
    printf 'action find\ntype all_gather dur>1ms\nwait\naction find_list\nwait\nshot %s/find.png\n' "$folder"
    printf 'action find\nkey Ctrl+A\nkey Del\nwait\n'
    printf 'panel shardmap\nwait\nshot %s/shardmap.png\n' "$folder"
    printf 'panel query\nwait\nclick query.run\nwait\nhover query.sql at 90%% 80%%\nwait\nshot %s/query.png\n' "$folder"
    # The planner's Pareto front with its best row selected.
    printf 'open plan.sqlite\nset trace plan.sqlite\npanel plan\nwait\nshot %s/plan.png\n' "$folder"
} >"$work/pictures.script"
(cd "$work" && "$bin/shardscope-view" --script pictures.script)
printf '%s\n' "set size 1400x820" "open rate-0.0003.sqlite rate-0.001.sqlite rate-0.003.sqlite" wait "panel training" wait \
    "click training.smooth.exponential" "hover training.chart.loss at 60% 50%" wait "shot $folder/training.png" \
    >"$work/training.script"
(cd "$work" && "$bin/shardscope-view" --script training.script)
printf '%s\n' "set size 1400x820" "open batch-8.sqlite batch-32.sqlite batch-128.sqlite batch-512.sqlite" wait \
    "panel training" wait "click training.over.samples" "click training.smooth.exponential" wait \
    "shot $folder/batches.png" >"$work/batches.script"
(cd "$work" && "$bin/shardscope-view" --script batches.script)
printf '%s\n' "set size 1400x960" "open fp16.sqlite" wait "panel training" wait "click training.log" wait \
    "hover training.chart.loss_scale at 8% 40%" wait "shot $folder/loss_scale.png" >"$work/fp16.script"
(cd "$work" && "$bin/shardscope-view" --script fp16.script)
printf '%s\n' "set size 1400x820" "open wired.sqlite" wait "panel topology" wait "click topology.colors.bytes" \
    "click topology.node.node-0/GPU0" "click topology.node.node-1/GPU0" \
    "hover topology.picture at 50% 95%" wait "shot $folder/topology.png" \
    "panel collectives" wait "click collectives.show.bandwidth" wait \
    "shot $folder/bandwidth.png" >"$work/wires.script"
(cd "$work" && "$bin/shardscope-view" --script wires.script)
printf '%s\n' "set size 1400x820" "open sampled.sqlite" wait "panel samples" wait "hover samples.box.2.0 at 20% 50%" wait \
    "shot $folder/samples.png" >"$work/samples.script"
(cd "$work" && "$bin/shardscope-view" --script samples.script)
(cd "$work" && "$bin/shardscope-view" job.sqlite --panel job --size 1400x820 --screenshot "$folder/job.png")
for name in schedule schedule_zb_v; do
    (cd "$work" && "$bin/shardscope-view" $name.sqlite --panel schedule --size 1400x820 \
        --screenshot "$folder/$name.png")
done
printf '%s\n' "set size 1400x820" "open schedule_128.sqlite" wait "panel schedule" wait "click schedule.pipeline" wait \
    "click schedule.pipeline.all" wait "shot $folder/schedule_128.png" >"$work/many.script"
(cd "$work" && "$bin/shardscope-view" --script many.script)
ls -l "$folder"
