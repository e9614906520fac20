#!/usr/bin/env python3
"""Lays texts of PyTorch beside those of shardscope-train --generate; see int8_generation.sh."""

import argparse
import json
import sys
import tempfile

import our_random
from comm_hooks import CONTEXT, SEED, build, job, our_parameters
from torch_peer import ours

STEPS, RATE = 300, 0.2
TOP, TEMPERATURE = 40, 0.8
PROMPTS = ["line 4 of a text", "resemble each other", "whose lines"]
KINDS = ["fp32", "int8"]


def drawn(logits, number):
    """The token that next_token.cpp draws."""
    uniform = our_random.uniform(SEED, our_random.stream_of("generate"), number)
    values, tokens = logits.double().topk(TOP)
    ends = ((values - values[0]) / TEMPERATURE).exp().cumsum(0)
    place = (ends <= uniform * ends[-1]).sum().item()
    return tokens[min(place, TOP - 1)].item()


def with_int8(net):
    """The network, whose linear layers have their weights in int8."""
    import torch
    quantized = {}
    for path, weight in zip(net.paths, net.weights):
        if not path.endswith(".weight") or weight.dim() < 2 or "embedding" in path:
            continue
        scales = weight.detach().abs().amax(1) / 127
        quantized[path[:-len(".weight")]] = (weight.detach() / scales[:, None]).round().to(torch.int8), scales

    def linear(x, path):
        weight, scales = quantized[path]
        y = torch._weight_int8pack_mm(x.flatten(0, -2), weight, scales).unflatten(0, x.shape[:-1])
        bias = net.at(path + ".bias")
        return y if bias is None else y + bias

    net.linear = linear
    return net


def continued(net, prompt, tokens):
    import torch
    text = list(prompt.encode())
    with torch.no_grad():
        for number in range(tokens):
            window = text[-CONTEXT:]
            padded = torch.tensor([window + [0] * (CONTEXT - len(window))])
            text.append(drawn(net(padded)[0, len(window) - 1], number))
    return bytes(text[len(prompt):]).decode(errors="replace")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    parser.add_argument("--tokens", type=int, default=600)
    options = parser.parse_args()
    import torch
    wrong = 0
    print("%-7s %-24s %6s  %s" % ("weights", "prompt", "tokens", "text"))
    with tempfile.TemporaryDirectory() as folder:
        saved = folder + "/saved"
        path = job(folder, "gpt", STEPS, RATE)
        ours(options.tool, path, "--checkpoint.save=" + saved, "--checkpoint.format=full")
        weights = our_parameters(saved)
        texts = {}
        for kind in KINDS:
            net = build("gpt", weights)
            net = with_int8(net) if kind == "int8" else net
            for prompt in PROMPTS:
                report = ours(options.tool, path, "--checkpoint.load=" + saved, "--generate", prompt, "--tokens",
                              str(options.tokens), "--weights", kind, "--format", "json")
                text = json.loads(report)["texts"][0]["continued"]
                same = text == continued(net, prompt, options.tokens)
                wrong += not same
                texts[kind, prompt] = text
                print("%-7s %-24s %6d  %s" % (kind, prompt, options.tokens, "the same" if same else "DIFFERS"), flush=True)
    changed = sum(texts["fp32", prompt] != texts["int8", prompt] for prompt in PROMPTS)
    print("%d of %d texts are others in int8 than in fp32" % (changed, len(PROMPTS)))
    print("PyTorch %s" % torch.__version__)
    sys.exit(1 if wrong or changed == 0 else 0)


if __name__ == "__main__":
    main()
