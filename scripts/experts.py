#!/usr/bin/env python3
"""Lays a mixture of experts in PyTorch beside shardscope-train's; see experts.sh."""

import argparse
import json
import os
import sys
import tempfile

from torch_peer import ours, saved_weights

STEPS, CONTEXT, BATCH, WIDTH, HEADS, LAYERS, EXPERTS = 5, 16, 4, 32, 4, 2, 6
CASES = [  # model, experts per token, capacity factor, balance loss
    ("gpt", 1, 0, 0), ("gpt", 2, 0, 0.1), ("gpt", 2, 0.8, 0.1), ("llama", 1, 0.5, 0.1), ("llama", 2, 0, 0),
    ("llama", 2, 0, 0.1), ("llama", 6, 0, 0.1)]
JOB = """
[run]
steps = %d
[model]
type = "%s"
layers = %d
heads = %d
width = %d
context = %d
experts = %d
experts_per_token = %d
capacity_factor = %s
balance_loss = %s
[data]
type = "text"
path = "%s"
batch = %d
[parallel]
mode = "none"
[optimizer]
type = "sgd"
lr = %s
"""


def run(tool, folder, case, steps, rate):
    """(losses, {path: weights after the steps})."""
    import torch

    text = os.path.join(folder, "text")
    with open(text, "w") as file:  # every window of it is the same, so the order of the samples does not matter
        file.write("shard the layers" * 200)
    path, saved = os.path.join(folder, "job.toml"), os.path.join(folder, "weights")
    with open(path, "w") as file:
        file.write(JOB % (steps, case[0], LAYERS, HEADS, WIDTH, CONTEXT, EXPERTS, *case[1:], text, BATCH, rate))
    output = ours(tool, path, "--checkpoint.save=" + saved, "--checkpoint.format=full", "--overwrite", "--format", "json")
    weights = {name: torch.frombuffer(bytearray(values), dtype=torch.float32).view(rows, width).squeeze(-1)
               for name, (rows, width, values) in saved_weights(saved).items()}
    return json.loads(output)["losses"], weights


def torch_loss(case, w):
    """The cross-entropy, and the balance losses of all blocks."""
    import torch
    import torch.nn.functional as F

    model, k, factor, balance = case
    head = WIDTH // HEADS

    def rotate(x):
        half = head // 2
        angle = torch.outer(torch.arange(CONTEXT, dtype=torch.float64),
                            10000.0 ** (-2 * torch.arange(half, dtype=torch.float64) / head))
        cos, sin = angle.cos().float(), angle.sin().float()
        a, b = x[..., :half], x[..., half:]
        return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)

    def linear(x, path):
        return F.linear(x, w[path + ".weight"], w.get(path + ".bias"))

    def norm(x, path):
        if model == "llama":
            return F.rms_norm(x, (WIDTH,), w[path + ".weight"], 1e-5)
        return F.layer_norm(x, (WIDTH,), w[path + ".weight"], w[path + ".bias"], 1e-5)

    def attention(x, path):
        q, k_, v = (y.view(BATCH, CONTEXT, HEADS, head).transpose(1, 2) for y in linear(x, path + ".qkv").chunk(3, -1))
        if model == "llama":
            q, k_ = rotate(q), rotate(k_)
        y = F.scaled_dot_product_attention(q, k_, v, is_causal=True)
        return linear(y.transpose(1, 2).reshape(BATCH, CONTEXT, WIDTH), path + ".projection")

    def expert(x, path, e):
        of = lambda name: w["%s.experts.%s.weight" % (path, name)].chunk(EXPERTS)[e]
        if model == "llama":
            return F.linear(F.silu(F.linear(x, of("w1"))) * F.linear(x, of("w3")), of("w2"))
        return F.linear(F.gelu(F.linear(x, of("expand")), approximate="tanh"), of("projection"))

    def mixture(x, path):
        rows = x.reshape(-1, WIDTH)
        p = linear(rows, path + ".router").softmax(-1)
        values, chosen = p.topk(k, -1)
        if k > 1:
            values = values / values.sum(-1, keepdim=True)
        y = torch.zeros_like(rows)
        limit = -(-factor * k * len(rows) // EXPERTS) if factor else len(rows)
        for e in range(EXPERTS):
            tokens, place = (chosen == e).nonzero(as_tuple=True)  # in the order of the tokens
            tokens, place = tokens[: int(limit)], place[: int(limit)]
            y = y.index_add(0, tokens, expert(rows[tokens], path, e) * values[tokens, place, None])
        share = torch.bincount(chosen.flatten(), minlength=EXPERTS) / chosen.numel()
        return y.view_as(x), balance * EXPERTS * (share * p.mean(0)).sum()

    window = torch.tensor(list(b"shard the layers" * 2))
    tokens, targets = (window[i : i + CONTEXT].repeat(BATCH, 1) for i in (0, 1))
    x = w["token_embedding.weight"][tokens]
    if model == "gpt":
        x = x + w["position_embedding.weight"]
    balances = 0
    for b in range(LAYERS):
        path = "blocks.%d." % b
        x = x + attention(norm(x, path + "norm_1"), path + "attention")
        y, loss = mixture(norm(x, path + "norm_2"), path + "feed_forward")
        x, balances = x + y, balances + loss
    logits = linear(norm(x, "norm"), "head")
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten()), balances


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    arguments = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    wrong = 0
    print("model  per token  capacity  balance  losses differ  gradients differ")
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            _, start = run(arguments.tool, folder, case, 1, "1e-30")
            losses, _ = run(arguments.tool, folder, case, STEPS, "0.1")
            _, moved = run(arguments.tool, folder, case, 1, "1000")  # so large that rounding the weights does not matter
            theirs, gradients = [], None
            weights = {path: value.clone().requires_grad_() for path, value in start.items()}
            for _ in range(STEPS):
                loss, balances = torch_loss(case, weights)
                (loss + balances).backward()
                theirs.append(loss.item())
                gradients = gradients or {path: value.grad.clone() for path, value in weights.items()}
                with torch.no_grad():
                    for value in weights.values():
                        value -= 0.1 * value.grad
                        value.grad = None
            loss_difference = max(abs(a / b - 1) for a, b in zip(losses, theirs))
            difference = max(((start[path] - moved[path]).double() / 1000 - gradient.double()).norm().item()
                             / gradient.double().norm().item() for path, gradient in gradients.items())
            bad = loss_difference > 1e-5 or difference > 1e-5
            wrong += bad
            print("%-5s  %9d  %8s  %7s  %13.1e  %16.1e  %s" % (*case, loss_difference, difference,
                                                              "DIFFERS" if bad else ""), flush=True)
    print("PyTorch " + torch.__version__)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
