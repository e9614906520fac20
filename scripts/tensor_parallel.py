#!/usr/bin/env python3
"""Lays PyTorch's tensor and sequence parallelism beside shardscope-train's; see tensor_parallel.sh."""

import argparse
import sys
import tempfile

import torch_peer
from torch_peer import Case

MESHES = [("gpt", 1, 2), ("gpt", 1, 4), ("gpt", 2, 2), ("llama", 1, 2), ("llama", 2, 2)]  # model, data, tensor


def torch_rank(rank, case, weights, mesh):
    import torch.nn.functional as F
    from torch.distributed.tensor.parallel import loss_parallel

    seen = []
    recorder = torch_peer.Recorder(seen)
    net = torch_peer.build(case, weights, tensor_place=rank % case.tensor)
    torch_peer.divide(case, net, mesh)
    tokens, targets = torch_peer.samples(case)
    losses = []
    with recorder.mode:
        for step in range(torch_peer.STEPS):
            recorder.on = step == torch_peer.STEPS - 1
            for parameter in net.parameters():
                parameter.grad = None
            with loss_parallel():
                loss = F.cross_entropy(net(tokens).flatten(0, 1), targets.flatten())
                loss.backward()
            torch_peer.descend(net.parameters())
            value = loss.full_tensor() if hasattr(loss, "full_tensor") else loss
            losses.append(value.item())
    return (losses, seen) if rank == 0 else None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    parser.add_argument("--show", action="store_true", help="print the collectives that differ")
    arguments = parser.parse_args()
    wrong, port = 0, 29700
    with tempfile.TemporaryDirectory() as folder:
        print("%-6s %4s %6s  %-8s  %11s  %5s  %12s" % ("model", "data", "tensor", "sequence", "collectives", "equal",
                                                      "loss differs"))
        weights = {model: torch_peer.our_weights(arguments.tool, folder, model) for model in ("gpt", "llama")}
        for model, data, tensor in MESHES:
            for sequence in (False, True):
                port += 1
                case = Case(model, data, tensor, sequence, batch=4 // data)
                path = torch_peer.job(folder, case)
                losses = torch_peer.our_losses(arguments.tool, path)
                lines = torch_peer.our_steady_steps(arguments.tool, path)[0]
                collectives = [found for found in map(torch_peer.our_collective, lines) if found]
                their_losses, theirs = torch_peer.run(torch_rank, case, weights[model], port, 1)[0]
                equal = sum(a == b for a, b in zip(collectives, theirs))
                difference = max(abs(a / b - 1) for a, b in zip(losses, their_losses))
                bad = difference > 1e-5 or equal != len(theirs) or equal != len(collectives)
                wrong += bad
                print("%-6s %4d %6d  %-8s  %11d  %5d  %12.1e  %s" % (model, data, tensor, "yes" if sequence else "no",
                                                                    len(theirs), equal, difference,
                                                                    "DIFFERS" if bad else ""), flush=True)
                if bad and arguments.show:
                    torch_peer.show_difference(losses, their_losses, collectives, theirs)
    import torch
    print("PyTorch %s, gloo" % torch.__version__)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
