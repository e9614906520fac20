#!/usr/bin/env python3
"""Prints the table of scripts/bench_lift_torch.sh: what shardscope-train predicts from the trace of one configuration for
another, next to what both took in one job.

    torch_pairs_table.py TOOL FOLDER MODEL ...      FOLDER/MODEL.json, FOLDER/MODEL/CONFIGURATION/
    torch_pairs_table.py --list two|one|all         the configurations to record with two ranks or one; to measure
"""
import json
import random
import statistics
import subprocess
import sys

BATCH = {"gpt": 4, "llama": 4, "mlp": 128, "wide": 6}
BLOCK = {"gpt": "Block", "llama": "LlamaBlock", "mlp": "Layer", "wide": "Block"}
# Recorded with, and replayed as.
PAIRS = [
    ("fsdp2+block", "fsdp2+root"),
    ("fsdp2+block", "fsdp2+linear"),
    ("fsdp2+block", "fsdp2+block+keep"),
    ("fsdp2+block", "fsdp1+block"),
    ("fsdp2+block", "ddp"),
    ("fsdp2+block", "fsdp2+block+batch2"),
    ("fsdp2+block", "fsdp2+block+accum2"),
    ("fsdp2+block", "fsdp2+block+ckpt"),
    ("fsdp2+block", "fsdp2+block+one"),
    ("fsdp2+root", "fsdp2+block"),
    ("fsdp2+root", "ddp"),
    ("fsdp2+linear", "fsdp2+block"),
    ("fsdp2+block+bf16", "fsdp2+root+bf16"),
    ("fsdp1+block", "fsdp1+root"),
    ("fsdp1+block", "fsdp1+block+noprefetch"),
    ("fsdp1+block", "ddp"),
    ("fsdp1+root", "fsdp2+block"),
    ("ddp", "ddp+small"),
    ("ddp", "fsdp2+block"),
    ("ddp", "fsdp2+root"),
    ("ddp", "fsdp1+block"),
    ("ddp+small", "ddp"),
    ("ddp+one", "ddp"),
]


def keys(model, configuration):
    """The command line that replays a trace as this configuration."""
    words = configuration.split("+")
    given = [f"--run.ranks={1 if 'one' in words else 2}", f"--train.accumulation={2 if 'accum2' in words else 1}"]
    if "accum2" in words:
        given.append("--train.accumulation_sync=true")
    if "batch2" in words:
        given.append(f"--data.batch={2 * BATCH[model]}")
    if "ckpt" in words:
        given.append(f"--memory.activation_checkpointing=module:{BLOCK[model]}")
    if words[0] == "ddp":
        cap = 1 if "small" in words else 25
        return given + ["--parallel.mode=ddp", f"--ddp.bucket_cap_mb={cap}", "--ddp.first_bucket_mb=1"]
    wrap = "module:Linear" if "linear" in words else f"module:{BLOCK[model]}" if "block" in words else "root"
    return given + [
        "--parallel.mode=fsdp",
        f"--fsdp.layout={words[0]}",
        f"--fsdp.wrap={wrap}",
        f"--fsdp.sharding_strategy={'SHARD_GRAD_OP' if 'keep' in words else 'FULL_SHARD'}",
        f"--fsdp.backward_prefetch={'NONE' if 'noprefetch' in words else 'BACKWARD_PRE'}",
        f"--fsdp.limit_all_gathers={'false' if words[0] == 'fsdp2' else 'true'}",
    ]


def plan(tool, trace, more):
    done = subprocess.run([tool, "plan", trace, "--format", "json", *more], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{trace} {' '.join(more)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def ratio(a, b):
    """The median of the rounds' ratios, and half the width of its 90 % interval (bootstrap)."""
    rounds = [y / x for x, y in zip(a, b)]
    medians = sorted(statistics.median(random.choices(rounds, k=len(rounds))) for _ in range(400))
    return statistics.median(rounds), (medians[379] - medians[20]) / 2


def percent(value):
    return f"{100 * value:+.1f} %"


def main():
    if sys.argv[1:2] == ["--list"]:
        of = {"two": lambda a: "one" not in a, "one": lambda a: "one" in a, "all": lambda a: True}[sys.argv[2]]
        names = [name for pair in PAIRS for name in (pair if sys.argv[2] == "all" else pair[:1])]
        print(*dict.fromkeys(name for name in names if of(name.split("+"))))
        return
    random.seed(1)
    tool, folder = sys.argv[1], sys.argv[2]
    print("| model | recorded with | replayed as | predicted ms | predicted change | measured change | error |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    errors, replays, peaks, recorded_peaks, planned = [], {}, {}, {}, []
    for model in sys.argv[3:]:
        with open(f"{folder}/{model}.json") as file:
            measured = json.load(file)
        for a, b in PAIRS:
            if a not in measured or b not in measured:
                continue
            result = plan(tool, f"{folder}/{model}/{a}", keys(model, b))
            unmodified, row = result["unmodified"], result["rows"][-1]
            if "step_us" not in row:
                sys.exit(f"{model} {a} as {b}: {row}")
            recorded = result["recorded"]
            replays[model, a] = unmodified["step_us"] / recorded["step_us"] - 1
            peaks[model, a] = unmodified["peak_bytes"] / recorded["peak_bytes"] - 1
            recorded_peaks[model, a] = recorded["peak_bytes"]
            planned.append((model, b, row["peak_bytes"]))
            predicted = row["step_us"] / unmodified["step_us"]
            real, half = ratio(measured[a], measured[b])
            error = predicted / real - 1
            errors.append((abs(error), model, a, b))
            print(
                f"| {model} | {a} | {b} | {row['step_us'] / 1e3:.1f} | {percent(predicted - 1)} "
                f"| {percent(real - 1)} ± {100 * half:.0f} | {percent(error)} |"
            )
    print()
    for what, chosen in [
        ("pairs", [e for e in errors if ("one" in e[2]) == ("one" in e[3])]),
        ("pairs of other numbers of ranks", [e for e in errors if ("one" in e[2]) != ("one" in e[3])]),
    ]:
        if not chosen:
            continue
        worst = max(chosen)
        print(
            f"{len(chosen)} {what}: median error {100 * statistics.median(e[0] for e in chosen):.1f} %, worst "
            f"{100 * worst[0]:.1f} % ({worst[1]}: {worst[2]} as {worst[3]})."
        )
    others = [own / recorded_peaks[model, b] - 1 for model, b, own in planned if (model, b) in recorded_peaks]
    for what, off in [
        (f"Unmodified replays of {len(replays)} traces: median error of the step", replays.values()),
        (f"Unmodified replays of {len(peaks)} traces: median error of the peak", peaks.values()),
        (f"Replays as {len(others)} settings that were recorded, too: median error of the peak", others),
    ]:
        off = [abs(own) for own in off]
        print(f"{what} {100 * statistics.median(off):.1f} %, worst {100 * max(off):.1f} %.")


if __name__ == "__main__":
    main()
