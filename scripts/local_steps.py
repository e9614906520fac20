#!/usr/bin/env python3
"""Lays PyTorch's local SGD beside shardscope-train's; see local_steps.sh."""

import argparse
import sys
import tempfile

from comm_hooks import MODELS, RANKS, build, in_ranks, job, our_parameters, samples
from torch_peer import ours

STEPS = 24
CASES = [(1, 1.0, 0.0), (4, 1.0, 0.0), (4, 0.7, 0.0), (4, 0.7, 0.9), (8, 0.7, 0.9)]  # steps, outer rate and momentum


def train(tool, folder, model, steps, case=None, rate=None):
    """{path: values} after the steps; without a case those of DDP."""
    saved = folder + "/saved"
    keys = zip(("local_steps", "outer_lr", "outer_momentum"), case or ())
    ours(tool, job(folder, model, steps, rate or MODELS[model][1]), *("--train.%s=%g" % key for key in keys),
         "--run.processes=%d" % RANKS, "--run.comm=tcp", "--checkpoint.save=" + saved, "--checkpoint.format=full",
         "--overwrite")
    return our_parameters(saved)


def rank_of(rank, weights, model, case):
    """{path: values after the steps}."""
    import warnings
    import torch
    import torch.nn.functional as F
    from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
    warnings.filterwarnings("ignore", "When period is 1")
    every, outer_rate, outer_momentum = case
    net = build(model, weights)
    inner = torch.optim.SGD(net.parameters(), lr=MODELS[model][1])
    averager = PeriodicModelAverager(period=every, warmup_steps=every - 1)
    outer = None
    if case[1:] != (1.0, 0.0):
        together = [parameter.detach().clone().requires_grad_() for parameter in net.parameters()]
        outer = torch.optim.SGD(together, lr=outer_rate, momentum=outer_momentum, nesterov=outer_momentum > 0)
    for step in range(STEPS):
        x, y = samples(model, step, rank)
        output = net(x)
        loss = F.mse_loss(output, y) if model == "linear" else F.cross_entropy(output.flatten(0, 1), y.flatten())
        inner.zero_grad()
        loss.backward()
        inner.step()
        averager.average_parameters(net.parameters())
        if outer is None or (step + 1) % every != 0:
            continue
        with torch.no_grad():
            for old, mean in zip(together, net.parameters()):
                old.grad = old - mean
            outer.step()
            for old, mean in zip(together, net.parameters()):
                mean.copy_(old)
    return {path: value.detach().reshape(weights[path].shape).clone().numpy()
            for path, value in zip(net.paths, net.weights)}


def most(values, others):
    import torch
    return max((value - torch.as_tensor(others[path])).abs().max().item() for path, value in values.items())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    tool = parser.parse_args().tool
    import torch
    wrong = 0
    print("After %d steps of SGD on %d ranks" % (STEPS, RANKS))
    print("%-7s %5s  %5s  %8s  %23s  %18s" % ("model", "steps", "outer", "outer", "largest difference of a", "largest difference"))
    print("%-7s %5s  %5s  %8s  %23s  %18s" % ("", "alone", "rate", "momentum", "parameter from PyTorch's", "from DDP's"))
    with tempfile.TemporaryDirectory() as folder:
        for m, model in enumerate(MODELS):
            start = train(tool, folder, model, 1, rate=1e-30)
            together = train(tool, folder, model, STEPS)
            for c, case in enumerate(CASES):
                values = train(tool, folder, model, STEPS, case)
                apart = most(values, in_ranks(rank_of, start, 29900 + 10 * m + c, model, case))
                wrong += apart > 1e-5
                print("%-7s %5d  %5g  %8g  %23.1e  %18.1e  %s" % (
                    model, *case, apart, most(values, together), "DIFFERS" if apart > 1e-5 else ""), flush=True)
    print("PyTorch %s, gloo" % torch.__version__)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
