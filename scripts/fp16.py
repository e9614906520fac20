#!/usr/bin/env python3
"""Lays PyTorch's fp16 and its GradScaler beside shardscope-train's; see fp16.sh."""

import argparse
import os
import sqlite3
import sys
import tempfile

import torch_peer
from torch_peer import Case

SCALE = 65536
# Steps whose gradients overflow at first and, since the scale grows often, again and again.
PATH_JOB = """
[run]
steps = 60
ranks = 2
[model]
type = "mlp"
layers = 2
width = 64
[data]
batch = 8
[parallel]
mode = "fsdp"
[precision]
param = "fp16"
initial_scale = 1e9
growth_interval = 4
[optimizer]
type = "sgd"
lr = 0.01
"""


def our_path(tool, folder):
    """[(loss scale, whether the step was skipped)] by step, of a run's metrics."""
    path, trace = os.path.join(folder, "path.toml"), os.path.join(folder, "path.sqlite")
    with open(path, "w", encoding="utf-8") as file:
        file.write(PATH_JOB)
    torch_peer.ours(tool, path, "--trace", trace)
    with sqlite3.connect(trace) as database:
        values = lambda name: [row[0] for row in database.execute(
            "SELECT value FROM metrics WHERE name = ? ORDER BY step", (name,))]
        scales, skipped = values("loss_scale"), values("skipped_steps")
    return [(scale, after > before) for scale, before, after in zip(scales, [0] + skipped, skipped)]


def their_path(overflows):
    """The scale of each step of torch.amp.GradScaler, whose gradients overflow as given."""
    import torch
    parameter = torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([parameter], lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1e9, growth_interval=4)
    scales = []
    for overflow in overflows:
        scaler.scale(torch.ones(1))
        scales.append(scaler.get_scale())
        parameter.grad = torch.tensor([float("inf") if overflow else 1.0])
        before = parameter.item()
        scaler.step(optimizer)
        scaler.update()
        assert (parameter.item() == before) == overflow
    return scales


def gradients(case, weights, dtype):
    """The loss and {name: gradient in fp64}: in fp16 as FSDP's MixedPrecision computes, of parameters in fp16 and scaled."""
    import torch
    import torch.nn.functional as F
    net = torch_peer.build(case, weights).to(dtype)
    tokens, targets = torch_peer.samples(case)
    logits = net(tokens)
    loss = F.cross_entropy((logits.float() if dtype == torch.float16 else logits).flatten(0, 1), targets.flatten())
    scale = SCALE if dtype == torch.float16 else 1
    (loss * scale).backward()
    return loss.item(), {name: p.grad.double() / scale for name, p in net.named_parameters()}


def distance(exact, other):
    """Of the parameter that differs most. The gradient of a bias of keys is 0, so that only its rounding is seen."""
    least = max(gradient.norm() for gradient in exact.values()) / 100
    return max(((exact[name] - other[name]).norm() / max(exact[name].norm(), least)).item() for name in exact)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    arguments = parser.parse_args()
    import torch
    torch.set_num_threads(1)
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        ours = our_path(arguments.tool, folder)
        skipped = [overflow for _, overflow in ours]
        theirs = their_path(skipped)
        differ = sum(scale != other for (scale, _), other in zip(ours, theirs))
        bad = differ > 0 or not 0 < sum(skipped) < len(ours)
        wrong += bad
        print("Loss scale of %d steps, %d of them skipped, from %g to %g: %d differ from GradScaler's %s" % (
            len(ours), sum(skipped), ours[0][0], min(scale for scale, _ in ours), differ, "DIFFERS" if bad else ""))

        print("Largest difference of a parameter's gradient from PyTorch's in fp64, relative to its norm (or a hundredth of the largest)")
        print("%-6s %5s  %-19s  %-19s" % ("layout", "ranks", "us, PyTorch in fp16", ""))
        case = Case("gpt")
        weights = torch_peer.our_weights(arguments.tool, folder, "gpt")
        exact_loss, exact = gradients(case, weights, torch.float64)
        half_loss, half = gradients(case, weights, torch.float16)
        for layout in ("fsdp1", "fsdp2"):
            for ranks in (1, 2):
                saved = os.path.join(folder, "saved")
                path = torch_peer.job(folder, Case("gpt", batch=4 // ranks), steps=1, rate=1e-30)
                torch_peer.ours(arguments.tool, path, "--run.ranks=%d" % ranks, "--parallel.mode=fsdp",
                                "--fsdp.layout=" + layout, "--precision.param=fp16",
                                "--precision.initial_scale=%d" % SCALE, "--optimizer.momentum=0.9",
                                "--checkpoint.save=" + saved, "--checkpoint.format=full", "--overwrite")
                found = torch_peer.saved_weights(saved, "momentum_buffer")
                mine = {name: torch_peer.ours_of(case, found, name).view_as(exact[name]).double() for name in exact}
                us, them = distance(exact, mine), distance(exact, half)
                bad = us > 1.5 * them or us > 0.02
                wrong += bad
                print("%-6s %5d  %9.1e %9.1e  %s" % (layout, ranks, us, them, "DIFFERS" if bad else ""), flush=True)
    print("PyTorch %s" % torch.__version__)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
