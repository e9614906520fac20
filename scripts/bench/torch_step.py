#!/usr/bin/env python3
"""A training step of PyTorch that scripts/bench_trainer.sh compares with ours: the same model, batch and threads.

    torch_step.py gpt STEPS           one process, one thread; prints CPU milliseconds of a step
    torch_step.py gpt-fused STEPS     the same with PyTorch's fused attention
    torch_step.py resnet50 STEPS      the same of a ResNet-50, 16 images of 224 pixels, in channels_last
    torch_step.py mlp STEPS           DistributedDataParallel over gloo, two processes of one thread each; wall
                                      milliseconds of a step, the fastest of groups of five
    torch_step.py gpt-ddp STEPS       the same of a GPT of 4 blocks of width 256
    torch_step.py version             "PyTorch 2.9.0 (MKL, oneDNN)": the release and what multiplies its matrices

fp32 throughout.
"""
import math
import os
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # spinning threads would slow each other down

import torch
from torch import nn


ONE_PROCESS = ("gpt", "gpt-fused", "resnet50")


class Attention(nn.Module):
    def __init__(self, width, heads, context, fused):
        super().__init__()
        self.heads, self.fused = heads, fused
        self.qkv = nn.Linear(width, 3 * width)
        self.projection = nn.Linear(width, width)
        self.register_buffer("mask", torch.triu(torch.full((context, context), -math.inf), 1))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(x).chunk(3, dim=2))
        if self.fused:
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = q @ k.transpose(2, 3) * (1.0 / math.sqrt(c // self.heads)) + self.mask
            y = scores.softmax(3) @ v
        return self.projection(y.transpose(1, 2).reshape(b, t, c))


class Block(nn.Module):
    def __init__(self, width, heads, context, fused):
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, context, fused)
        self.feed_forward = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x):
        x = x + self.attention(self.norm_1(x))
        return x + self.feed_forward(self.norm_2(x))


class Gpt(nn.Module):
    def __init__(self, layers=6, width=384, heads=6, context=256, vocabulary=256, fused=False):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(0.02 * torch.randn(context, width))
        self.blocks = nn.Sequential(*(Block(width, heads, context, fused) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        return self.head(self.norm(self.blocks(self.tokens(tokens) + self.positions)))


def one_process(what, steps):
    """Prints the CPU milliseconds of a step, without the first two."""
    torch.set_num_threads(1)
    if what == "resnet50":
        sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
        from images import network

        model = network(50, 64, 1000).to(memory_format=torch.channels_last)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        images = torch.randn(16, 3, 224, 224).contiguous(memory_format=torch.channels_last)
        labels = torch.randint(0, 1000, (16,))
        loss_of = lambda: nn.functional.cross_entropy(model(images), labels)
    else:
        model = Gpt(fused=what == "gpt-fused")
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        tokens = torch.randint(0, 256, (8, 257))
        loss_of = lambda: nn.functional.cross_entropy(
            model(tokens[:, :-1]).reshape(-1, 256), tokens[:, 1:].reshape(-1)
        )
    start = 0.0
    for step in range(steps + 2):
        if step == 2:
            start = time.process_time()
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of()
        loss.backward()
        optimizer.step()
        loss.item()
    print(f"{1e3 * (time.process_time() - start) / steps:.3f}")


def ddp_rank(rank, what, steps, port):
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=2)
    if what == "mlp":
        layers = []
        for i in range(8):
            layers += [nn.ReLU()] * (i > 0) + [nn.Linear(1024, 1024)]
        model = DistributedDataParallel(nn.Sequential(*layers))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        x, target = torch.randn(128, 1024), torch.randn(128, 1024)
        loss_of = lambda: nn.functional.mse_loss(model(x), target)
    else:
        model = DistributedDataParallel(Gpt(layers=4, width=256, heads=4, context=128))
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        tokens = torch.randint(0, 256, (8, 129))
        loss_of = lambda: nn.functional.cross_entropy(
            model(tokens[:, :-1]).reshape(-1, 256), tokens[:, 1:].reshape(-1)
        )
    fastest, start = math.inf, 0.0
    for step in range(steps + 2):
        if step >= 2 and (step - 2) % 5 == 0:
            start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of()
        loss.backward()
        optimizer.step()
        loss.item()
        if step >= 2 and (step - 2) % 5 == 4:
            fastest = min(fastest, (time.perf_counter() - start) / 5)
    if rank == 0:
        print(f"{1e3 * fastest:.3f}", flush=True)
    dist.destroy_process_group()


def ddp(what, steps):
    import torch.multiprocessing as processes

    processes.spawn(ddp_rank, args=(what, steps, 20000 + os.getpid() % 20000), nprocs=2)


def version():
    parts = [
        name
        for name, there in [
            ("MKL", torch.backends.mkl.is_available()),
            ("oneDNN", torch.backends.mkldnn.is_available()),
            ("OpenBLAS", "BLAS_INFO=open" in torch.__config__.show()),
        ]
        if there
    ]
    print(f"PyTorch {torch.__version__} ({', '.join(parts) or 'no BLAS'})")


if __name__ == "__main__":
    if sys.argv[1:] == ["version"]:
        version()
        sys.exit()
    if len(sys.argv) != 3 or sys.argv[1] not in (*ONE_PROCESS, "mlp", "gpt-ddp") or not sys.argv[2].isdigit():
        sys.exit("usage: torch_step.py gpt|gpt-fused|resnet50|mlp|gpt-ddp STEPS, or version")
    if sys.argv[1] in ONE_PROCESS:
        one_process(sys.argv[1], int(sys.argv[2]))
    else:
        ddp(sys.argv[1].removesuffix("-ddp"), int(sys.argv[2]))
