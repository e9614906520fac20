"""A model with the shapes of Llama 2 7B (6,738,415,616 parameters), under fully_shard with bf16 parameters.

    torchrun --nproc_per_node 8 llama_7b.py                                          # 8 GPUs
    python3 -m shardscope_torch --fake 7b.json.gz --ranks 8 llama_7b.py              # none

Needs PyTorch 2.6. $BATCH (1) and $CONTEXT (4096) are sequences per GPU and tokens in each; with $CHECKPOINT=1 blocks are
computed again in the backward.
"""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import apply_activation_checkpointing
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn import functional as F

LAYERS, WIDTH, HEADS, HIDDEN, VOCABULARY = 32, 4096, 32, 11008, 32000
BATCH, CONTEXT = int(os.environ.get("BATCH", "1")), int(os.environ.get("CONTEXT", "4096"))
STEPS = int(os.environ.get("STEPS", "5"))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))

    def forward(self, x, cosine, sine):
        batch, context, _ = x.shape
        q, k, v = (f(x).view(batch, context, HEADS, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        q, k = rotated(q, cosine, sine), rotated(k, cosine, sine)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o(y.transpose(1, 2).reshape(batch, context, WIDTH))


def rotated(x, cosine, sine):
    first, second = x.chunk(2, dim=-1)
    return x * cosine + torch.cat((-second, first), dim=-1) * sine


class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.up = (nn.Linear(WIDTH, HIDDEN, bias=False) for _ in range(2))
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.feed_forward = Attention(), FeedForward()
        self.norm_1, self.norm_2 = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)

    def forward(self, x, cosine, sine):
        x = x + self.attention(self.norm_1(x), cosine, sine)
        return x + self.feed_forward(self.norm_2(x))


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = nn.RMSNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens):
        x = self.tokens(tokens)
        half = WIDTH // HEADS // 2
        frequency = 10000 ** (-torch.arange(half, device=x.device) / half)
        angle = torch.outer(torch.arange(x.shape[1], device=x.device), frequency).repeat(1, 2)
        cosine, sine = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        for block in self.blocks:
            x = block(x, cosine, sine)
        return self.head(self.norm(x))


def main():
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl")
    with torch.device("meta"):  # each rank allocates only its part
        model = Llama()
    if os.environ.get("CHECKPOINT") == "1":
        apply_activation_checkpointing(model, check_fn=lambda module: isinstance(module, Block))
    mesh = init_device_mesh("cuda", (dist.get_world_size(),))
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for block in model.blocks:  # inside checkpoints, if there are any
        fully_shard(block, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    model.to_empty(device=device)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.02)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step in range(STEPS):
        tokens = torch.randint(0, VOCABULARY, (BATCH, CONTEXT + 1), device=device)
        optimizer.zero_grad()
        logits = model(tokens[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
    if dist.get_rank() == 0:
        print("peak allocated: {:.1f} GiB".format(torch.cuda.max_memory_allocated() / 2**30))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
