#!/usr/bin/env python3
"""Lays PyTorch's tensor and sequence parallelism beside shardscope-train's; see tensor_parallel.sh."""

import argparse
import json
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile

STEPS = 4  # the last one's collectives are compared
CONTEXT = 16
MESHES = [("gpt", 1, 2), ("gpt", 1, 4), ("gpt", 2, 2), ("llama", 1, 2), ("llama", 2, 2)]  # model, data, tensor
JOB = """
[run]
steps = %(steps)d
ranks = %(ranks)d
[model]
type = "%(model)s"
layers = 2
heads = 4
%(kv)s
width = 32
context = 16
[data]
type = "text"
path = "%(text)s"
batch = %(batch)d
[parallel]
mode = "%(mode)s"
tensor = %(tensor)d
sequence = %(sequence)s
[fsdp]
layout = "fsdp2"
wrap = "module:%(block)s"
[optimizer]
type = "sgd"
lr = %(lr)s
"""


def job(folder, model, data, tensor, sequence, steps=STEPS, lr="0.1"):
    text = os.path.join(folder, "text")
    if not os.path.exists(text):
        # Every window of the text is the same, so the order of the samples does not matter.
        with open(text, "w") as file:
            file.write("shard the layers"[:CONTEXT] * 200)
    path = os.path.join(folder, "job.toml")
    with open(path, "w") as file:
        file.write(JOB % {"steps": steps, "ranks": data * tensor, "tensor": tensor, "batch": 4 // data,
                          "mode": "none" if data == 1 else "fsdp",
                          "block": "LlamaBlock" if model == "llama" else "Block", "model": model, "text": text, "lr": lr,
                          "kv": "kv_heads = 2" if model == "llama" else "",
                          "sequence": "true" if sequence else "false"})
    return path


def ours(tool, *arguments):
    done = subprocess.run([tool, *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr.strip())
    return done.stdout


def our_weights(tool, folder, model):
    """{path: (rows, width, values)}: the initial values, of a step whose learning rate changes nothing."""
    saved = os.path.join(folder, "weights")
    ours(tool, job(folder, model, 1, 1, False, steps=1, lr="1e-30"), "--checkpoint.save=" + saved,
         "--checkpoint.format=full", "--overwrite")
    with open(os.path.join(saved, "latest")) as file:
        step = os.path.join(saved, file.read().strip())
    with open(os.path.join(step, "manifest.json")) as file:
        manifest = json.load(file)
    weights = {}
    for parameter in manifest["parameters"]:
        values = b""
        for piece in parameter["pieces"]:
            if piece["state"]:
                continue
            with open(os.path.join(step, piece["file"]), "rb") as file:
                file.seek(piece["offset"])
                values += file.read(4 * piece["elements"])
        weights[parameter["path"]] = (parameter["rows"], parameter["width"], values)
    return weights


_ROW = re.compile(r"\s(all_reduce|all_gather|reduce_scatter)\s+([\d,]+)\s.*\b(tensor|shard) group(.*)$")


def our_run(tool, folder, model, data, tensor, sequence):
    path = job(folder, model, data, tensor, sequence)
    losses = json.loads(ours(tool, path, "--format", "json"))["losses"]
    collectives, title = [], ""
    for line in ours(tool, path, "--dry-run").splitlines():
        if re.match(r"(Set-up|Step \d+|Steady step|Predicted)", line):
            title = line
        match = _ROW.search(line)
        if match and title.startswith("Steady step"):
            kind, size, group, rest = match.groups()
            kind += " max" if ", maximum" in rest else ""
            collectives.append((group, kind, int(size.replace(",", ""))))
    return losses, collectives


# --- PyTorch -----------------------------------------------------------------------------------------------

def torch_rank(rank, model, data, tensor, sequence, weights, results):
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(data * tensor), MASTER_ADDR="127.0.0.1",
                      MASTER_PORT=os.environ["TENSOR_PARALLEL_PORT"], OMP_NUM_THREADS="1")
    import torch
    import torch.distributed as dist
    import torch.nn.functional as F
    from torch import nn
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import Partial, Replicate, Shard, distribute_tensor
    from torch.distributed.tensor.parallel import (
        ColwiseParallel, PrepareModuleInput, RowwiseParallel, SequenceParallel, loss_parallel, parallelize_module)
    from torch.utils._python_dispatch import TorchDispatchMode

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    whole_mesh = init_device_mesh("cpu", (data, tensor), mesh_dim_names=("data", "tensor"))
    mesh, ranks, rank_there = whole_mesh["tensor"], tensor, rank % tensor
    functional, c10d = torch.ops._c10d_functional, torch.ops.c10d
    seen, recording = [], [False]

    class Recorder(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            from torch.distributed.tensor import DTensor
            if any(issubclass(t, DTensor) for t in types):
                return NotImplemented
            out = function(*args, **(kwargs or {}))
            if recording[0]:
                size = lambda t: t.numel() * t.element_size()
                if function in (functional.all_reduce.default, functional.all_reduce_.default):
                    seen.append(("tensor", "all_reduce" + (" max" if args[1] == "max" else ""), size(out)))
                elif function is functional.all_gather_into_tensor.default:
                    seen.append(("tensor", "all_gather", size(out)))
                elif function is functional.reduce_scatter_tensor.default:
                    seen.append(("tensor", "reduce_scatter", size(args[0])))
                elif function is c10d._allgather_base_.default:
                    seen.append(("shard", "all_gather", size(args[0])))
                elif function is c10d._reduce_scatter_base_.default:
                    seen.append(("shard", "reduce_scatter", size(args[1])))
            return out

    heads, width, context, batch, layers = 4, 32, CONTEXT, 4 // data, 2
    kv_heads = 2 if model == "llama" else heads
    head_width = width // heads

    def rotate(x):  # [b, heads, s, head width], as halves
        half = head_width // 2
        angle = torch.outer(torch.arange(context, dtype=torch.float64),
                            10000.0 ** (-2 * torch.arange(half, dtype=torch.float64) / head_width))
        cos, sin = angle.cos().float(), angle.sin().float()
        a, b = x[..., :half], x[..., half:]
        return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            bias = model == "gpt"
            self.q = nn.Linear(width, width, bias=bias)
            self.k = nn.Linear(width, kv_heads * head_width, bias=bias)
            self.v = nn.Linear(width, kv_heads * head_width, bias=bias)
            self.projection = nn.Linear(width, width, bias=bias)

        def forward(self, x):
            split = lambda y: y.view(batch, context, -1, head_width).transpose(1, 2)
            q, k, v = split(self.q(x)), split(self.k(x)), split(self.v(x))
            if model == "llama":
                q, k = rotate(q), rotate(k)
                k, v = (t.repeat_interleave(heads // kv_heads, 1) for t in (k, v))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.projection(y.transpose(1, 2).reshape(batch, context, -1))

    class FeedForward(nn.Module):
        def __init__(self):
            super().__init__()
            if model == "llama":
                hidden = weights["blocks.0.feed_forward.w1.weight"][0]
                self.w1, self.w3 = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False)
                self.w2 = nn.Linear(hidden, width, bias=False)
            else:
                self.expand, self.projection = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            if model == "llama":
                return self.w2(F.silu(self.w1(x)) * self.w3(x))
            return self.projection(F.gelu(self.expand(x), approximate="tanh"))

    norm = (lambda: nn.RMSNorm(width, eps=1e-5)) if model == "llama" else (lambda: nn.LayerNorm(width, eps=1e-5))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm_1, self.attention, self.norm_2, self.feed_forward = norm(), Attention(), norm(), FeedForward()

        def forward(self, x):
            x = x + self.attention(self.norm_1(x))
            return x + self.feed_forward(self.norm_2(x))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.token_embedding = nn.Embedding(256, width)
            if model == "gpt":
                self.position_embedding = nn.Embedding(context, width)
            self.blocks = nn.ModuleList(Block() for _ in range(layers))
            self.norm, self.head = norm(), nn.Linear(width, 256, bias=False)

        def forward(self, tokens):
            x = self.token_embedding(tokens)
            if model == "gpt":
                positions = self.position_embedding.weight
                if sequence:  # each rank adds the positions of its part of the sequence
                    part = context // ranks
                    positions = positions.to_local(grad_placements=[Partial()])
                    positions = positions[rank_there * part : (rank_there + 1) * part]
                x = x + positions
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x))

    net = Model()
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            match = re.match(r"(.*attention)\.([qkv])\.(weight|bias)$", name)
            rows, columns, values = weights["%s.qkv.%s" % match.group(1, 3) if match else name]
            whole = torch.frombuffer(bytearray(values), dtype=torch.float32).view(rows, columns)
            if match:
                keys = kv_heads * head_width
                first = {"q": 0, "k": width, "v": width + keys}[match.group(2)]
                whole = whole[first : first + (width if match.group(2) == "q" else keys)]
            parameter.copy_(whole.reshape(parameter.shape))

    rows_of = Shard(1) if sequence else Replicate()
    whole_input = lambda: PrepareModuleInput(input_layouts=(rows_of,), desired_input_layouts=(Replicate(),))
    parallelize_module(net, mesh, {
        "token_embedding": RowwiseParallel(input_layouts=Replicate(), output_layouts=rows_of),
        **({"norm": SequenceParallel(use_local_output=True)} if sequence else {}),
        "head": ColwiseParallel(input_layouts=rows_of, output_layouts=Shard(-1), use_local_output=False)})
    if sequence and model == "gpt":
        net.position_embedding.weight = nn.Parameter(
            distribute_tensor(net.position_embedding.weight.detach(), mesh, [Replicate()]))
    for block in net.blocks:
        ffn = ({"w1": ColwiseParallel(), "w3": ColwiseParallel(), "w2": RowwiseParallel(output_layouts=rows_of)}
               if model == "llama" else
               {"expand": ColwiseParallel(), "projection": RowwiseParallel(output_layouts=rows_of)})
        plan = {"attention": whole_input(), "attention.q": ColwiseParallel(), "attention.k": ColwiseParallel(),
                "attention.v": ColwiseParallel(), "attention.projection": RowwiseParallel(output_layouts=rows_of),
                "feed_forward": whole_input(), **{"feed_forward." + k: v for k, v in ffn.items()}}
        if sequence:
            plan |= {"norm_1": SequenceParallel(use_local_output=True), "norm_2": SequenceParallel(use_local_output=True)}
        parallelize_module(block, mesh, plan)
    if data > 1:
        for block in net.blocks:
            fully_shard(block, mesh=whole_mesh["data"])
        fully_shard(net, mesh=whole_mesh["data"])

    text = ("shard the layers"[:CONTEXT] * 2).encode()
    window = torch.tensor(list(text), dtype=torch.int64)
    tokens, targets = (window[i : i + context].repeat(batch, 1) for i in (0, 1))
    losses = []
    with Recorder():
        for step in range(STEPS):
            recording[0] = step == STEPS - 1
            for parameter in net.parameters():
                parameter.grad = None
            with loss_parallel():
                loss = F.cross_entropy(net(tokens).flatten(0, 1), targets.flatten())
                loss.backward()
            with torch.no_grad():
                for parameter in net.parameters():
                    gradient = parameter.grad
                    if hasattr(gradient, "redistribute"):  # sums what is partial
                        gradient = gradient.redistribute(placements=parameter.placements)
                    parameter -= 0.1 * gradient
            value = loss.full_tensor() if hasattr(loss, "full_tensor") else loss
            losses.append(value.item())
    if rank == 0:
        results.put((losses, seen, torch.__version__))
    dist.barrier()
    dist.destroy_process_group()


def torch_run(model, data, tensor, sequence, weights, port):
    os.environ["TENSOR_PARALLEL_PORT"] = str(port)
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    processes = [context.Process(target=torch_rank, args=(r, model, data, tensor, sequence, weights, results))
                 for r in range(data * tensor)]
    for process in processes:
        process.start()
    while results.empty():
        if any(process.exitcode not in (None, 0) for process in processes):
            sys.exit("PyTorch's run of %s on %d ranks failed" % (model, data * tensor))
        processes[0].join(0.2)
    result = results.get()
    for process in processes:
        process.join()
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    parser.add_argument("--show", action="store_true", help="print the collectives that differ")
    arguments = parser.parse_args()
    wrong, port = 0, 29700
    with tempfile.TemporaryDirectory() as folder:
        print("%-6s %4s %6s  %-8s  %11s  %5s  %12s" % ("model", "data", "tensor", "sequence", "collectives", "equal",
                                                      "loss differs"))
        weights = {model: our_weights(arguments.tool, folder, model) for model in ("gpt", "llama")}
        for model, data, tensor in MESHES:
            for sequence in (False, True):
                port += 1
                losses, collectives = our_run(arguments.tool, folder, model, data, tensor, sequence)
                their_losses, theirs, version = torch_run(model, data, tensor, sequence, weights[model], port)
                equal = sum(a == b for a, b in zip(collectives, theirs))
                difference = max(abs(a / b - 1) for a, b in zip(losses, their_losses))
                bad = difference > 1e-5 or equal != len(theirs) or equal != len(collectives)
                wrong += bad
                print("%-6s %4d %6d  %-8s  %11d  %5d  %12.1e  %s" % (model, data, tensor, "yes" if sequence else "no",
                                                                    len(theirs), equal, difference,
                                                                    "DIFFERS" if bad else ""), flush=True)
                if bad and arguments.show:
                    print("  losses", losses, their_losses)
                    for i in range(max(len(theirs), len(collectives))):
                        a = collectives[i] if i < len(collectives) else None
                        b = theirs[i] if i < len(theirs) else None
                        print("  %3d  %-34s %-34s %s" % (i, a, b, "" if a == b else "<<"))
    print("PyTorch %s, gloo" % version)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
