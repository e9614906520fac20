#!/usr/bin/env python3
"""Lays the formulas of LARS, LAMB and NovoGrad beside shardscope-train's optimizers; see optimizers.sh."""

import argparse
import json
import os
import sys
import tempfile

from torch_peer import WINDOW, ours, saved_weights

STEPS, CONTEXT, BATCH, WIDTH, HEADS, LAYERS = 20, 16, 4, 32, 4, 2
DECAY = 0.01
CASES = [  # optimizer, learning rate, further keys
    ("lars", 2.0, {"momentum": 0.9, "trust_coefficient": 0.02}),
    ("lars", 2.0, {"momentum": 0.9, "trust_coefficient": 0.02, "nesterov": "true"}),
    ("lamb", 0.02, {"betas": "[0.9, 0.999]", "eps": 1e-6}),
    ("novograd", 0.01, {"betas": "[0.95, 0.98]", "eps": 1e-8}),
]
JOB = """
[run]
steps = %d
ranks = %d
[model]
type = "gpt"
layers = %d
heads = %d
width = %d
context = %d
[data]
type = "text"
path = "%s"
batch = %d
[parallel]
mode = "%s"
[fsdp]
wrap = "module:Block"
[optimizer]
type = "%s"
lr = %g
weight_decay = %g
"""


def train(tool, folder, case, ranks=1, steps=STEPS, rate=None):
    """(losses, {path: weights after the steps})."""
    import torch

    optimizer, own_rate, keys = case
    text = os.path.join(folder, "text")
    with open(text, "w", encoding="utf-8") as file:  # every window is the same: the samples' order does not matter
        file.write(WINDOW * 200)
    path, saved = os.path.join(folder, "job.toml"), os.path.join(folder, "weights")
    with open(path, "w", encoding="utf-8") as file:
        file.write(JOB % (steps, ranks, LAYERS, HEADS, WIDTH, CONTEXT, text, BATCH // ranks,
                          "none" if ranks == 1 else "fsdp", optimizer, rate or own_rate, DECAY))
        file.writelines("%s = %s\n" % item for item in keys.items())
    output = ours(tool, path, "--checkpoint.save=" + saved, "--checkpoint.format=full", "--overwrite", "--format", "json")
    weights = {name: torch.frombuffer(bytearray(values), dtype=torch.float32).view(rows, width).squeeze(-1).double()
               for name, (rows, width, values) in saved_weights(saved).items()}
    return json.loads(output)["losses"], weights


def loss_of(w):
    import torch
    import torch.nn.functional as F

    linear = lambda x, path: F.linear(x, w[path + ".weight"], w.get(path + ".bias"))
    norm = lambda x, path: F.layer_norm(x, (WIDTH,), w[path + ".weight"], w[path + ".bias"], 1e-5)
    window = torch.tensor(list((WINDOW * 2).encode()))
    tokens, targets = (window[i : i + CONTEXT].repeat(BATCH, 1) for i in (0, 1))
    x = w["token_embedding.weight"][tokens] + w["position_embedding.weight"]
    for b in range(LAYERS):
        path = "blocks.%d." % b
        split = lambda y: y.view(BATCH, CONTEXT, HEADS, WIDTH // HEADS).transpose(1, 2)
        q, k, v = (split(y) for y in linear(norm(x, path + "norm_1"), path + "attention.qkv").chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + linear(y.transpose(1, 2).reshape(BATCH, CONTEXT, WIDTH), path + "attention.projection")
        y = F.gelu(linear(norm(x, path + "norm_2"), path + "feed_forward.expand"), approximate="tanh")
        x = x + linear(y, path + "feed_forward.projection")
    return F.cross_entropy(linear(norm(x, "norm"), "head").flatten(0, 1), targets.flatten())


def is_adapted(path):
    """Biases and norm layers step without a ratio of norms, as in the papers' experiments."""
    return not path.endswith(".bias") and "norm" not in path


def lars(w, path, g, state, rate, keys, _):
    # You, Gitman, Ginsburg, arXiv 1708.03888, equation 6 and algorithm 1; momentum as torch.optim.SGD has it.
    local = keys["trust_coefficient"] * w.norm() / (g.norm() + DECAY * w.norm()) if is_adapted(path) else 1
    step = local * (g + DECAY * w)
    state["m"] = keys["momentum"] * state.get("m", 0) + step
    return w - rate * (step + keys["momentum"] * state["m"] if "nesterov" in keys else state["m"])


def lamb(w, path, g, state, rate, keys, t):
    # You et al., arXiv 1904.00962, algorithm 2, with the identity for phi.
    b1, b2 = json.loads(keys["betas"])
    state["m"] = b1 * state.get("m", 0) + (1 - b1) * g
    state["v"] = b2 * state.get("v", 0) + (1 - b2) * g * g
    r = state["m"] / (1 - b1**t) / ((state["v"] / (1 - b2**t)).sqrt() + keys["eps"])
    update = r + DECAY * w
    ratio = w.norm() / update.norm() if is_adapted(path) and w.norm() > 0 else 1
    return w - rate * ratio * update


def novograd(w, path, g, state, rate, keys, t):
    # Ginsburg et al., arXiv 1905.11286, algorithm 1.
    b1, b2 = json.loads(keys["betas"])
    square = g.norm() ** 2
    state["v"] = square if t == 1 else b2 * state["v"] + (1 - b2) * square
    normalized = g / (state["v"].sqrt() + keys["eps"]) + DECAY * w
    state["m"] = normalized if t == 1 else b1 * state["m"] + normalized
    return w - rate * state["m"]


def theirs(start, case):
    import torch

    optimizer, rate, keys = case
    weights, states, losses = start, {path: {} for path in start}, []
    for t in range(1, STEPS + 1):
        weights = {path: value.detach().requires_grad_() for path, value in weights.items()}
        loss = loss_of(weights)
        loss.backward()
        losses.append(loss.item())
        with torch.no_grad():
            weights = {path: globals()[optimizer](value, path, value.grad, states[path], rate, keys, t)
                       for path, value in weights.items()}
    return losses, weights


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    tool = parser.parse_args().tool
    import torch

    torch.set_num_threads(1)
    wrong = 0
    apart = lambda a, b: max(abs(x / y - 1) for x, y in zip(a, b))
    print("optimizer            first and last loss   losses differ  weights differ  four ranks from one")
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            _, start = train(tool, folder, ("sgd", 0, {}), steps=1, rate=1e-30)
            losses, weights = train(tool, folder, case)
            four, _ = train(tool, folder, case, ranks=4)
            their_losses, their_weights = theirs(start, case)
            difference = max(((weights[path] - value).norm() / value.norm()).item()
                             for path, value in their_weights.items())
            figures = apart(losses, their_losses), difference, apart(four, losses)
            bad = figures[0] > 1e-5 or figures[1] > 1e-4 or figures[2] > 1e-6
            wrong += bad
            name = case[0] + (" nesterov" if "nesterov" in case[2] else "")
            print("%-18s  %8.4f  %8.4f  %15.1e  %14.1e  %19.1e  %s" % (name, losses[0], losses[-1], *figures,
                                                                   "DIFFERS" if bad else ""), flush=True)
    print("PyTorch " + torch.__version__)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
