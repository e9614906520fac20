#!/usr/bin/env python3
"""The jobs of scripts/bench_lift_torch.sh and fake_memory.sh: four models under many configurations of FSDP and DDP on
gloo, one thread to a rank. Started by torchrun.

    torch_pairs.py measure MODEL ROUNDS OUT.json CONFIGURATION ...   all configurations stepped in turn, no profiler
    torch_pairs.py record MODEL FOLDER CONFIGURATION ...             a trace of each, FOLDER/CONFIGURATION/rank*.json
    torch_pairs.py train MODEL STEPS CONFIGURATION                   an ordinary loop, on the GPU where there is one
    torch_pairs.py count MODEL STEPS CONFIGURATION                   the same; prints the peak of its steps by storages

A configuration is a list of words joined by "+": fsdp1, fsdp2 or ddp; then block, root, linear (what FSDP wraps), keep
(SHARD_GRAD_OP), noprefetch, small (DDP's buckets of 1 MB), bf16, ckpt, batch2, accum2, one (rank 0 alone; the others
wait). All steps of a round begin together, so that their ratios do not depend on the load of the machine.
"""
import bisect
import functools
import gzip
import json
import os
import random
import re
import sys
import time
import traceback
import weakref

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.projection = nn.Linear(width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(x).chunk(3, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.projection(y.transpose(1, 2).reshape(b, t, c))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.feed_forward = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.norm_1(x))
        return x + self.feed_forward(self.norm_2(x))


class Gpt(nn.Module):
    def __init__(self, layers=4, width=256, heads=4, context=64, vocabulary=1024):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Norm(nn.Module):
    """RMSNorm written by hand, as in most published models."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class LlamaBlock(nn.Module):
    def __init__(self, width, heads, hidden):
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = Norm(width), Norm(width)
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.gate, self.up = (nn.Linear(width, hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        b, t, c = x.shape
        y = self.norm_1(x)
        q, k, v = (f(y).view(b, t, self.heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).reshape(b, t, c))
        y = self.norm_2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    def __init__(self, layers=3, width=320, heads=5, hidden=864, vocabulary=512):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(LlamaBlock(width, heads, hidden) for _ in range(layers))
        self.norm = Norm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.tokens(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        return F.relu(self.linear(x))


class Mlp(nn.Module):
    def __init__(self, layers=6, width=768):
        super().__init__()
        self.blocks = nn.ModuleList(Layer(width) for _ in range(layers))
        self.head = nn.Linear(width, 16)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


BLOCKS = {"gpt": Block, "llama": LlamaBlock, "mlp": Layer, "wide": Block}
BATCH = {"gpt": 4, "llama": 4, "mlp": 128, "wide": 6}
VOCABULARY = {"gpt": 1024, "llama": 512, "wide": 256}


def base_model(name):
    torch.manual_seed(0)
    wide = functools.partial(Gpt, layers=3, width=384, heads=6, vocabulary=VOCABULARY["wide"])
    return {"gpt": Gpt, "llama": Llama, "mlp": Mlp, "wide": wide}[name]()


def name_modules(model):
    """Ranges nn.Module: Class_n around the calls of all modules, for a trace without Python's frames."""
    counts = {}
    for module in model.modules():
        kind = type(module).__name__
        number = counts[kind] = counts.get(kind, -1) + 1
        label, open_ranges = f"nn.Module: {kind}_{number}", []

        def before(_, __, label=label, open_ranges=open_ranges):
            open_ranges.append(torch.profiler.record_function(label))
            open_ranges[-1].__enter__()

        def after(_, __, ___, open_ranges=open_ranges):
            open_ranges.pop().__exit__(None, None, None)

        module.register_forward_pre_hook(before, prepend=True)
        module.register_forward_hook(after)


class Job:
    """A model under a configuration, with its optimizer and data."""

    def __init__(self, name, configuration, group=None, named=False, device="cpu", **optimizer):
        words = configuration.split("+")
        self.kind, self.one = words[0], "one" in words
        self.accumulation = 2 if "accum2" in words else 1
        batch = BATCH[name] * (2 if "batch2" in words else 1)
        device = torch.device(device)
        model = base_model(name).to(device)
        block = BLOCKS[name]

        def checkpoint(model):
            from torch.distributed.algorithms._checkpoint import checkpoint_wrapper as wrapper

            wrapper.apply_activation_checkpointing(model, check_fn=lambda m: isinstance(m, block))

        if "ckpt" in words and self.kind != "fsdp1":  # FSDP1 is to be outside
            checkpoint(model)
        wrapped = {"block": (block,), "linear": (nn.Linear,)}.get(next((w for w in words if w in ("block", "linear")), ""), ())
        bf16, process_group = "bf16" in words, group
        if self.kind == "fsdp2":
            from torch.distributed.device_mesh import DeviceMesh
            from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

            more = {"reshard_after_forward": False} if "keep" in words else {}
            if bf16:
                more["mp_policy"] = MixedPrecisionPolicy(torch.bfloat16, torch.float32)
            more["mesh"] = DeviceMesh.from_group(process_group or dist.group.WORLD, device.type)
            for module in reversed(list(model.modules())):
                if isinstance(module, wrapped):
                    fully_shard(module, **more)
            fully_shard(model, **more)
        elif self.kind == "fsdp1":
            from torch.distributed.fsdp import BackwardPrefetch, FullyShardedDataParallel, MixedPrecision, ShardingStrategy
            from torch.distributed.fsdp.wrap import ModuleWrapPolicy

            model = FullyShardedDataParallel(
                model,
                process_group=process_group,
                auto_wrap_policy=ModuleWrapPolicy(set(wrapped)) if wrapped else None,
                sharding_strategy=ShardingStrategy.SHARD_GRAD_OP if "keep" in words else ShardingStrategy.FULL_SHARD,
                backward_prefetch=None if "noprefetch" in words else BackwardPrefetch.BACKWARD_PRE,
                mixed_precision=MixedPrecision(torch.bfloat16, torch.float32) if bf16 else None,
                device_id=device,
                use_orig_params=True,
            )
            if "ckpt" in words:
                checkpoint(model)
        else:
            model = nn.parallel.DistributedDataParallel(
                model, process_group=process_group, bucket_cap_mb=1 if "small" in words else None
            )
        if named:
            name_modules(model)
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, **optimizer)
        torch.manual_seed(1 + dist.get_rank())
        if name == "mlp":
            self.data = lambda: (torch.randn(batch, 768, device=device), torch.randn(batch, 16, device=device))
            self.loss = F.mse_loss
        else:
            tokens = functools.partial(torch.randint, 0, VOCABULARY[name], (batch, 64), device=device)
            self.data = lambda: (tokens(), tokens())
            self.loss = lambda logits, y: F.cross_entropy(logits.flatten(0, 1), y.flatten())
        self.x, self.y = self.data()

    def step(self):
        self.optimizer.zero_grad()
        for _ in range(self.accumulation):
            self.loss(self.model(self.x), self.y).backward()
        self.optimizer.step()


def measure(name, rounds, out, configurations):
    rank = dist.get_rank()
    alone = [dist.new_group([r]) for r in range(dist.get_world_size())][rank]
    jobs = []
    for configuration in configurations:
        one = "one" in configuration.split("+")
        jobs.append(Job(name, configuration, alone if one else None) if rank == 0 or not one else None)
    times = [[] for _ in jobs]
    order = list(range(len(jobs)))
    for number in range(rounds + 2):
        random.Random(number).shuffle(order)  # what a step leaves in caches and heaps meets each of the others
        for j in order:
            dist.barrier()
            start = time.perf_counter()
            if jobs[j]:
                jobs[j].step()
            if number >= 2:
                times[j].append(time.perf_counter() - start)
    both = [None] * dist.get_world_size()
    dist.all_gather_object(both, times)
    if rank == 0:
        # A step ends when its last rank does.
        ends = [[max(own[j][i] for own in both) for i in range(rounds)] for j in range(len(jobs))]
        with open(out, "w") as file:
            json.dump(dict(zip(configurations, ends)), file)


def split(trace, configurations, folder):
    """Writes the events of each configuration's steps into a trace of its own."""
    windows = []  # (start, end, configuration, number of the step)
    for event in trace["traceEvents"]:
        match = re.fullmatch(r"step (\d+) of (\d+)", event.get("name", "")) if event.get("ph") == "X" else None
        if match and event.get("cat") == "user_annotation":
            windows.append((event["ts"], event["ts"] + event["dur"], int(match[2]), int(match[1])))
            event["name"] = f"ProfilerStep#{match[1]}"
    windows.sort()
    starts = [window[0] for window in windows]
    events = [[] for _ in configurations]
    for event in trace["traceEvents"]:
        if event["ph"] == "M":
            for own in events:
                own.append(event)
            continue
        last = bisect.bisect_right(starts, event["ts"]) - 1
        if last >= 0 and event["ts"] <= windows[last][1]:
            events[windows[last][2]].append(event)
    for configuration, own in zip(configurations, events):
        to = os.path.join(folder, configuration)
        os.makedirs(to, exist_ok=True)
        with gzip.open(f"{to}/rank{dist.get_rank()}.pt.trace.json.gz", "wt") as file:
            json.dump({**trace, "traceEvents": own}, file)


def record(name, folder, configurations):
    """The configurations take their steps in turn, as they do when they are measured: a machine that others share is
    then as fast for one as for another."""
    from torch.profiler import ProfilerActivity, profile, record_function

    jobs = [Job(name, configuration, named=True) for configuration in configurations]
    for job in jobs:
        for _ in range(3):
            job.step()
    order = list(range(len(jobs)))
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True) as profiler:
        for number in range(13):
            random.Random(number).shuffle(order)
            for j in order:
                dist.barrier()
                with record_function(f"step {number} of {j}"):
                    jobs[j].step()
    whole = os.path.join(folder, f"rank{dist.get_rank()}.json")
    os.makedirs(folder, exist_ok=True)
    profiler.export_chrome_trace(whole)
    with open(whole) as file:
        split(json.load(file), configurations, folder)
    os.remove(whole)


def train(name, steps, configuration, begin=lambda step: None):
    """The loop of a tutorial, whose variables keep a step's batch, logits and loss until the next replaces them. The
    optimizer is the one that PyTorch takes on GPUs."""
    device = torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")
    job = Job(name, configuration, device=device, foreach=True)
    job.x = job.y = None
    for step in range(steps):
        begin(step)
        job.optimizer.zero_grad()
        for _ in range(job.accumulation):
            x, y = job.data()
            logits = job.model(x)
            loss = job.loss(logits, y)
            loss.backward()
        job.optimizer.step()


class Storages(TorchDispatchMode):
    """Counts the bytes of the storages that operations make, until their weak references die; without the copies that
    Gloo makes of what it reduces and scatters, which a GPU's library does not."""

    def __init__(self):
        super().__init__()
        self.live = self.peak = 0
        self._sizes = {}  # address of a StorageImpl -> (bytes, weak reference)
        resize, own = torch.UntypedStorage.resize_, self

        def resized(storage, size):
            resize(storage, size)
            own.see(storage)
            return storage

        torch.UntypedStorage.resize_ = resized

    def see(self, storage):
        place, now = storage._cdata, storage.nbytes()
        before = self._sizes[place][0] if place in self._sizes else 0
        if place not in self._sizes or before != now:
            self._sizes[place] = (now, weakref.ref(storage, lambda reference: self._end(place, reference)))
            self._count(now - before)

    def _end(self, place, reference):
        if place in self._sizes and self._sizes[place][1] is reference:
            self._count(-self._sizes.pop(place)[0])

    def _count(self, change):
        self.live += change
        self.peak = max(self.peak, self.live)

    def __torch_dispatch__(self, function, kinds, args=(), kwargs=None):
        if any(issubclass(kind, dist.tensor.DTensor) for kind in kinds):
            return NotImplemented  # its operations on local tensors come here, too
        out = function(*args, **(kwargs or {}))
        if any(frame.filename.endswith("distributed_c10d.py") for frame in traceback.extract_stack(limit=6)):
            return out
        for tensor in out if isinstance(out, (list, tuple)) else [out]:
            if isinstance(tensor, torch.Tensor):
                self.see(tensor.untyped_storage())
        return out


def count(name, steps, configuration):
    storages = Storages()

    def begin(step):
        if step == 1:  # the first step allocates the optimizer's state
            storages.peak = storages.live

    with storages:
        train(name, steps, configuration, begin)
    if dist.get_rank() == 0:
        print(storages.peak)


def main():
    if len(sys.argv) < 5 or sys.argv[1] not in ("measure", "record", "train", "count") or "RANK" not in os.environ:
        sys.exit(__doc__)
    torch.set_num_threads(1)
    dist.init_process_group("nccl" if sys.argv[1] == "train" and torch.cuda.is_available() else "gloo")
    if sys.argv[1] in ("train", "count"):
        (train if sys.argv[1] == "train" else count)(sys.argv[2], int(sys.argv[3]), sys.argv[4])
    elif sys.argv[1] == "measure":
        measure(sys.argv[2], int(sys.argv[3]), sys.argv[4], sys.argv[5:])
    else:
        record(sys.argv[2], sys.argv[3], sys.argv[4:])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
