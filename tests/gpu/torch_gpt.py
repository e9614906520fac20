"""The GPT of gpt2.toml in PyTorch, which speed.sh compares with ours: eager, scaled_dot_product_attention,
fused AdamW. Prints tokens per second without the first steps.

    torch_gpt.py [--steps N] [--batch N] [--layers N] [--width N] [--context N] [--vocabulary N] [--device cuda|cpu]

As ours in mixed precision: weights and activations in bf16, the optimizer's weights and state in fp32, which are
copied to bf16 after each step; the loss in fp32. Needs PyTorch 2.1 or later.
"""
import argparse
import sys
import time

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.projection = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, context, width = x.shape
        q, k, v = (
            part.view(batch, context, self.heads, -1).transpose(1, 2)
            for part in self.qkv(self.norm_1(x)).split(width, dim=2)
        )
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.projection(y.transpose(1, 2).reshape(batch, context, width))
        return x + self.down(functional.gelu(self.up(self.norm_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, layers, width, heads, context, vocabulary):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(0.02 * torch.randn(context, width))
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        nn.init.normal_(self.tokens.weight, std=0.02)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions
        for block in self.blocks:
            x = block(x)
        return functional.linear(self.norm(x), self.tokens.weight)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("steps", 40), ("batch", 8), ("layers", 12), ("width", 768), ("context", 1024)):
        parser.add_argument("--" + name, type=int, default=default)
    parser.add_argument("--vocabulary", type=int, default=50257)
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    if not hasattr(torch, "_foreach_copy_"):
        sys.exit("torch_gpt.py: PyTorch 2.1 or later is needed, this is " + torch.__version__)

    torch.manual_seed(1)
    on_gpu = options.device == "cuda"
    heads = max(options.width // 64, 1)
    model = Gpt(options.layers, options.width, heads, options.context, options.vocabulary)
    model = model.to(options.device, torch.bfloat16)
    computed = list(model.parameters())
    kept = [parameter.detach().float() for parameter in computed]
    for parameter in kept:
        parameter.grad = torch.zeros_like(parameter)
    optimizer = torch.optim.AdamW(kept, lr=3e-4, weight_decay=0.01, **({"fused": True} if on_gpu else {}))
    tokens = torch.randint(0, options.vocabulary, (options.steps, options.batch, options.context + 1))
    if on_gpu:
        tokens = tokens.pin_memory()

    warm = min(5, options.steps - 1)
    start = 0.0
    for step in range(options.steps):
        if step == warm:
            if on_gpu:
                torch.cuda.synchronize()
            start = time.perf_counter()
        batch = tokens[step].to(options.device, non_blocking=True)
        for parameter in computed:
            parameter.grad = None
        logits = model(batch[:, :-1]).float()
        loss = functional.cross_entropy(logits.view(-1, options.vocabulary), batch[:, 1:].reshape(-1))
        loss.backward()
        torch._foreach_copy_([parameter.grad for parameter in kept], [parameter.grad for parameter in computed])
        optimizer.step()
        with torch.no_grad():
            torch._foreach_copy_(computed, kept)
    if on_gpu:
        torch.cuda.synchronize()
    seconds = time.perf_counter() - start
    print("loss {:.4f}, PyTorch {}".format(loss.item(), torch.__version__), file=sys.stderr)
    print("{:.0f}".format((options.steps - warm) * options.batch * options.context / seconds))


if __name__ == "__main__":
    main()
