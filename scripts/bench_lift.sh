#!/usr/bin/env bash
# Prints how well a recorded run predicts another's step: jobs are trained on the cpu under several wraps, each trace is
# exported to PyTorch's JSON, imported, lifted, and replayed unchanged and under the other wraps.
#
#   scripts/bench_lift.sh
#
# Goals: the unmodified replay within 10 % of its own recorded median step, another wrap within 20 % of the job's
# step under it, peaks equal to the byte. Runs under different wraps alternate, so that other load on the machine
# slows all of them alike.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bin=${BIN:-build/release/bin} # BIN: programs that are built already
[ -n "${BIN:-}" ] || scripts/build.sh release shardscope-train shardscope-trace >&2
train=$(realpath "$bin")/shardscope-train
trace=$(realpath "$bin")/shardscope-trace
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
repeats=${REPEATS:-3}

cat > "$folder/mlp.toml" <<'TOML'
[run]
steps = 30
ranks = 2
[model]
type = "mlp"
layers = 8
width = 1024
[data]
batch = 64
TOML
cat > "$folder/gpt.toml" <<'TOML'
[run]
steps = 30
ranks = 2
[model]
type = "gpt"
layers = 4
width = 256
heads = 4
context = 64
[data]
type = "text"
path = "docs"
batch = 8
[optimizer]
type = "adamw"
TOML

name() { printf '%s' "$1" | tr ':' '-'; }
declare -A wraps=([mlp]="module:Linear root" [gpt]="module:Block root module:Linear")
for repeat in $(seq "$repeats"); do
    for job in mlp gpt; do
        for wrap in ${wraps[$job]}; do
            file="$folder/$job-$(name "$wrap")-$repeat"
            "$train" "$folder/$job.toml" --fsdp.wrap="$wrap" --trace "$file.sqlite" > /dev/null 2>&1
            "$trace" export "$file.sqlite" --to chrome -o "$file.json" > /dev/null
            for other in ${wraps[$job]}; do
                "$train" plan "$file.json" --format json --fsdp.wrap="$other;" \
                    --fsdp.sharding_strategy=FULL_SHARD --fsdp.backward_prefetch=BACKWARD_PRE \
                    --fsdp.limit_all_gathers=true 2> /dev/null > "$file-$(name "$other").plan"
            done
        done
    done
done

python3 - "$folder" "$repeats" <<'PYTHON'
import json, statistics, sys
folder, repeats = sys.argv[1], int(sys.argv[2])
wraps = {"mlp": ["module:Linear", "root"], "gpt": ["module:Block", "root", "module:Linear"]}
def plan(job, wrap, other, repeat):
    dash = lambda text: text.replace(":", "-")
    with open(f"{folder}/{job}-{dash(wrap)}-{repeat}-{dash(other)}.plan") as file:
        return json.load(file)
def replayed(plan, other):
    for row in plan["rows"]:
        if row["settings"].get("fsdp.wrap", plan["recorded"]["settings"]["fsdp.wrap"]) == other:
            return row
    return plan["unmodified"]
ms = lambda us: f"{us / 1e3:.2f}"
print("| job | recorded with | replayed as | replayed ms | measured ms | error | peak |")
print("| --- | --- | --- | --- | --- | --- | --- |")
errors = {True: [], False: []}
for job, names in wraps.items():
    for wrap in names:
        for other in names:
            pairs = []
            for repeat in range(1, repeats + 1):
                of = plan(job, wrap, other, repeat)
                own = plan(job, other, other, repeat)["recorded"]
                row = of["unmodified"] if other == wrap else replayed(of, other)
                pairs.append((row["step_us"], own["step_us"], row["peak_bytes"] - own["peak_bytes"]))
            replay, measured = (statistics.median(p[i] for p in pairs) for i in (0, 1))
            error = 100 * (replay / measured - 1)
            errors[other == wrap].append(abs(error))
            off = max((p[2] for p in pairs), key=abs)
            peak = "equal" if off == 0 else f"{off:+} bytes"
            print(f"| {job} | {wrap} | {'the same' if other == wrap else other} | {ms(replay)} | {ms(measured)} "
                  f"| {error:+.1f} % | {peak} |")
print(f"\nLargest error: {max(errors[True]):.1f} % unmodified (goal 10 %), {max(errors[False]):.1f} % under another "
      f"wrap (goal 20 %). Medians of {repeats} runs.")
PYTHON
