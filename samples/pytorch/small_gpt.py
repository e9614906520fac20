"""A small GPT on random tokens, and the loop that trains it on one rank of several: what ddp.py, fsdp1.py and fsdp2.py
have in common. Ordinary PyTorch that knows nothing of Shardscope; on GPUs where there are some, else on the processor.
"""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn

LAYERS, WIDTH, HEADS, CONTEXT, VOCABULARY, BATCH = 4, 128, 4, 64, 256, 4
STEPS = int(os.environ.get("STEPS", "6"))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.projection = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.register_buffer("mask", torch.full((CONTEXT, CONTEXT), float("-inf")).triu(1))

    def forward(self, x):
        batch, context, _ = x.shape
        q, k, v = (part.view(batch, context, HEADS, -1).transpose(1, 2) for part in self.qkv(x).split(WIDTH, 2))
        if hasattr(nn.functional, "scaled_dot_product_attention"):
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:  # before PyTorch 2.0
            y = (q @ k.transpose(2, 3) * (WIDTH // HEADS) ** -0.5 + self.mask).softmax(3) @ v
        return self.projection(y.transpose(1, 2).reshape(batch, context, WIDTH))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.feed_forward = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        x = x + self.attention(self.norm_1(x))
        return x + self.feed_forward(self.norm_2(x))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def begin():
    """The process group of torchrun's environment; this rank's device."""
    if "RANK" not in os.environ:
        sys.exit("start it with torchrun: torchrun --nproc_per_node 2 " + os.path.basename(sys.argv[0]))
    torch.manual_seed(0)  # the same weights on every rank
    if not torch.cuda.is_available():
        torch.set_num_threads(1)
        dist.init_process_group("gloo")
        return torch.device("cpu")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl")
    return device


def train(model, device):
    """Some steps of AdamW; a line for each on rank 0."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    torch.manual_seed(1 + dist.get_rank())  # different tokens on each rank
    for step in range(STEPS):
        tokens = torch.randint(0, VOCABULARY, (BATCH, CONTEXT + 1)).to(device)
        optimizer.zero_grad()
        logits = model(tokens[:, :-1])
        loss = nn.functional.cross_entropy(logits.reshape(-1, VOCABULARY), tokens[:, 1:].reshape(-1))
        loss.backward()
        optimizer.step()
        if dist.get_rank() == 0:
            print("step {} loss {:.4f}".format(step, loss.item()), flush=True)
    dist.destroy_process_group()
