#!/usr/bin/env python3
"""Lays a form of 1-bit Adam in PyTorch beside shardscope-train's; see onebit.sh."""

import argparse
import sys
import tempfile

from comm_hooks import MODELS, RANKS, WIDTH, build, in_ranks, job, our_parameters, samples
from torch_peer import ours

FREEZE, STEPS, RATE, BETAS, EPSILON = 100, 120, 1e-3, (0.9, 0.999), 1e-8


def train(tool, folder, steps, rate=RATE):
    saved = folder + "/saved"
    ours(tool, job(folder, "gpt", steps, rate), "--optimizer.type=onebit_adam", "--optimizer.freeze_step=%d" % FREEZE,
         "--run.processes=%d" % RANKS, "--run.comm=tcp", "--checkpoint.save=" + saved, "--checkpoint.format=full",
         "--overwrite")
    return our_parameters(saved)


class Compression:
    """The momentum of all parameters in one row, a scale for each parameter, chunks of whole 32-bit words."""

    def __init__(self, variances):
        import torch
        self.variance = torch.cat(variances)
        # What had no gradient, or only rounding, is left out.
        ends = torch.tensor([len(v) for v in variances]).cumsum(0)
        self.parameter = torch.searchsorted(ends, torch.arange(len(self.variance)), right=True)
        self.count = len(variances)
        means = torch.stack([v.double().mean() for v in variances])[self.parameter]
        self.variance[self.variance < 1e-10 * means] = 0
        self.used = self.variance > 0
        self.chunk = (len(self.variance) + 32 * RANKS - 1) // (32 * RANKS) * 32
        self.worker_error = torch.zeros_like(self.variance)
        self.server_error = torch.zeros_like(self.variance)

    def signs(self, x, error, part):
        """+-scale, with a scale for each parameter's share of the part; the error keeps the rest."""
        import torch
        error += torch.where(self.used & part, x, 0)
        scale = torch.zeros(self.count)
        for p in range(self.count):
            own = (self.parameter == p) & self.used & part
            if own.any():
                scale[p] = error[own].double().square().mean().sqrt()
        sent = torch.where(error >= 0, scale[self.parameter], -scale[self.parameter])
        sent = torch.where(self.used & part, sent, 0)
        error -= sent
        return sent

    def average(self, momentum, rank):
        """What all ranks have afterwards: sums of fp32 numbers, which a wire would carry as bits and scales."""
        import torch
        import torch.distributed as dist
        everything = torch.ones_like(self.used)
        sent = self.signs(momentum, self.worker_error, everything) / RANKS
        dist.all_reduce(sent)
        part = torch.zeros_like(self.used)
        part[rank * self.chunk : (rank + 1) * self.chunk] = True
        served = self.signs(sent, self.server_error, part)
        dist.all_reduce(served)  # the parts do not overlap
        return served


def rank_of(rank, weights):
    import torch
    import torch.distributed as dist
    import torch.nn.functional as F
    net = build("gpt", weights)
    adam = torch.optim.Adam(net.parameters(), lr=RATE, betas=BETAS, eps=EPSILON)
    compression, momentum = None, None
    values = lambda: {path: value.detach().reshape(weights[path].shape).clone().numpy()
                      for path, value in zip(net.paths, net.weights)}
    for step in range(STEPS):
        x, y = samples("gpt", step, rank)
        net.zero_grad()
        F.cross_entropy(net(x).flatten(0, 1), y.flatten()).backward()
        if step < FREEZE:
            for parameter in net.parameters():
                dist.all_reduce(parameter.grad)
                parameter.grad /= RANKS
            adam.step()
            continue
        if step == FREEZE:
            warm = values()
            states = [adam.state[p] for p in net.parameters()]
            compression = Compression([s["exp_avg_sq"].flatten() for s in states])
            momentum = torch.cat([s["exp_avg"].flatten() for s in states])
        gradient = torch.cat([p.grad.flatten() for p in net.parameters()])
        momentum = torch.where(compression.used, BETAS[0] * momentum + (1 - BETAS[0]) * gradient, 0)
        momentum = compression.average(momentum, rank)
        root = (compression.variance / (1 - BETAS[1] ** FREEZE)).sqrt()
        update = RATE / (1 - BETAS[0] ** (step + 1)) * momentum / (root + EPSILON)
        with torch.no_grad():
            for parameter, part in zip(net.parameters(), update.split([p.numel() for p in net.parameters()])):
                parameter -= part.view_as(parameter)
    return warm, values()


def difference(path, mine, their):
    """Of each number, but for the biases of keys: a softmax ignores them, and Adam makes steps of their rounding."""
    import torch
    apart = (mine - their).abs().flatten()
    return torch.cat([apart[:WIDTH], apart[2 * WIDTH :]]) if path.endswith("qkv.bias") else apart


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    tool = parser.parse_args().tool
    import torch
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        start = train(tool, folder, 1, 1e-30)
        theirs = in_ranks(rank_of, start, 29850)
        print("steps   stage       parameters  differ by more than 1e-5  largest difference")
        for steps, values, most in ((FREEZE, theirs[0], 0), (STEPS, theirs[1], 1e-3)):
            mine = train(tool, folder, steps)
            apart = torch.cat([difference(path, mine[path], torch.from_numpy(values[path])) for path in mine])
            differ = int((apart > 1e-5).sum())
            bad = differ > most * len(apart)
            wrong += bad
            print("%5d   %-10s  %10d  %24d  %18.1e  %s" % (steps, "warm-up" if most == 0 else "compressed", len(apart),
                                                           differ, apart.max(), "DIFFERS" if bad else ""), flush=True)
    print("PyTorch %s, gloo; %d ranks of %d samples" % (torch.__version__, RANKS, MODELS["gpt"][0]))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
