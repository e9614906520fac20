#!/usr/bin/env python3
"""Prints the table of scripts/fake_memory.sh: peaks that shardscope-train predicts from the fake recording of one
configuration for another, next to the other's own.

    fake_memory.py TOOL FOLDER MODEL ...      FOLDER keeps recordings and counts, and those that are there are used
"""
import os
import re
import subprocess
import sys

from torch_pairs_table import keys, plan

HERE = os.path.dirname(os.path.abspath(__file__))
JOB = os.path.join(HERE, "torch_pairs.py")
FAKE = os.path.join(HERE, "..", "..", "samples", "pytorch", "shardscope_torch.py")
STEPS = "4"
# Recorded, and then replayed as each of CONFIGURATIONS with the same precision.
RECORDED = ["fsdp2+block", "fsdp1+block", "fsdp1+linear", "ddp", "fsdp2+block+bf16"]
CONFIGURATIONS = [
    "fsdp2+block", "fsdp2+root", "fsdp2+linear", "fsdp2+block+keep", "fsdp2+block+ckpt", "fsdp2+block+batch2",
    "fsdp2+block+accum2", "fsdp1+block", "fsdp1+root", "fsdp1+linear", "fsdp1+block+keep", "fsdp1+block+noprefetch",
    "fsdp1+block+ckpt", "ddp", "ddp+small", "fsdp2+block+bf16", "fsdp2+root+bf16", "fsdp2+block+ckpt+bf16",
]


def output(command, to):
    """What the command printed, kept in a file."""
    if not os.path.exists(to):
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
        if done.returncode:
            sys.exit(f"{' '.join(command)}:\n{done.stderr}{done.stdout}")
        with open(to, "w") as file:
            file.write(done.stdout)
    with open(to) as file:
        return file.read()


def fake_peak(model, configuration, folder):
    trace = f"{folder}/{model}.{configuration}.json.gz"
    job = [JOB, "train", model, STEPS, configuration]
    command = [sys.executable, FAKE, "--fake", trace, "--ranks", "2", *job]
    text = output(command, f"{folder}/{model}.{configuration}.fake")
    return trace, int(re.search(r"\((\d+) bytes\)", text)[1])


def counted_peak(model, configuration, folder):
    job = [JOB, "count", model, STEPS, configuration]
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "--standalone", *job]
    return int(output(launch, f"{folder}/{model}.{configuration}.counted"))


def main():
    tool, folder, models = sys.argv[1], sys.argv[2], sys.argv[3:]
    print("| model | configuration | counted on gloo | fake | difference | replayed from | worst replay |")
    print("| --- | --- | ---: | ---: | ---: | ---: | --- |")
    fakes, replays = [], []
    for model in models:
        own = {c: fake_peak(model, c, folder) for c in CONFIGURATIONS}
        for b in CONFIGURATIONS:
            counted, (_, peak) = counted_peak(model, b, folder), own[b]
            errors = []
            for a in RECORDED:
                if ("bf16" in a) != ("bf16" in b):
                    continue
                row = plan(tool, own[a][0], keys(model, b))["rows"][-1]
                if "peak_bytes" not in row:
                    sys.exit(f"{model} {a} as {b}: {row['reason']}")
                errors.append((row["peak_bytes"] / peak - 1, a))
            worst = max(errors, key=lambda e: abs(e[0]))
            fakes.append(abs(peak / counted - 1))
            replays += [(abs(error), model, a, b) for error, a in errors]
            print(
                f"| {model} | {b} | {counted:,} | {peak:,} | {100 * (peak / counted - 1):+.3f} % | {len(errors)} "
                f"| {100 * worst[0]:+.2f} % ({worst[1]}) |",
                flush=True,
            )
    print()
    print(f"{len(fakes)} fake recordings: worst difference from the counted storages {100 * max(fakes):.3f} %.")
    worst, within, equal = max(replays), sum(e[0] <= 0.01 for e in replays), sum(e[0] == 0 for e in replays)
    print(
        f"{len(replays)} replays: {equal} equal to the byte, {within} within 1 %, worst {100 * worst[0]:.4f} % "
        f"({worst[1]}: {worst[2]} as {worst[3]})."
    )
    sys.exit(within < len(replays) or max(fakes) > 0.01)


if __name__ == "__main__":
    main()
