"""A GPT and a Llama in PyTorch that have shardscope-train's initial weights, its parallel layers, processes on gloo,
and a record of their collectives: shared by tensor_parallel.py, context_parallel.py and pipeline_parallel.py, and in
part by experts.py and fp16.py."""

import dataclasses
import itertools
import json
import multiprocessing
import os
import re
import subprocess
import sys

STEPS = 4  # the last one is compared
RATE = 0.1
CONTEXT, WIDTH, HEADS, KV_HEADS = 16, 32, 4, 2  # KV_HEADS: of the Llama
# Every window of the text is the same, so the order of the samples does not matter.
WINDOW = "shard the layers"
JOB = """
[run]
steps = %(steps)d
ranks = %(ranks)d
[model]
type = "%(model)s"
layers = %(layers)d
heads = %(heads)d
%(kv)s
width = %(width)d
context = %(context)d
[data]
type = "text"
path = "%(text)s"
batch = %(batch)d
[parallel]
mode = "%(mode)s"
tensor = %(tensor)d
sequence = %(sequence)s
context = %(context_ranks)d
%(exchange)s
%(pipeline)s
[train]
accumulation = %(micro_batches)d
[fsdp]
layout = "fsdp2"
wrap = "module:%(block)s"
[optimizer]
type = "sgd"
lr = %(rate)s
"""
PIPELINE = """pipeline = %(places)d
schedule = "%(schedule)s"
virtual_stages = %(chunks)d"""


@dataclasses.dataclass(frozen=True)
class Case:
    model: str
    data: int = 1  # ranks that read different samples, by FSDP
    tensor: int = 1
    sequence: bool = False
    context_ranks: int = 1
    exchange: str = ""  # of keys and values in the context group
    layers: int = 2
    batch: int = 4  # samples of a rank and micro-batch
    places: int = 1  # of the pipeline
    schedule: str = ""
    chunks: int = 1  # stages of a place
    micro_batches: int = 1
    table: str = ""  # a file with the schedule's actions, for PyTorch

    @property
    def ranks(self):
        return self.data * self.context_ranks * self.tensor * self.places

    @property
    def kv_heads(self):
        return KV_HEADS if self.model == "llama" else HEADS


def job(folder, case, steps=STEPS, rate=RATE):
    text = os.path.join(folder, "text")
    if not os.path.exists(text):
        with open(text, "w", encoding="utf-8") as file:
            file.write(WINDOW * 200)
    path = os.path.join(folder, "job.toml")
    values = dataclasses.asdict(case) | {
        "ranks": case.ranks, "text": text, "steps": steps, "rate": rate, "heads": HEADS, "width": WIDTH,
        "context": CONTEXT,
        "sequence": "true" if case.sequence else "false",
        "mode": "none" if case.data * case.context_ranks == 1 else "fsdp",
        "exchange": 'context_exchange = "%s"' % case.exchange if case.exchange else "",
        "block": "LlamaBlock" if case.model == "llama" else "Block",
        "kv": "kv_heads = %d" % KV_HEADS if case.model == "llama" else ""}
    values["pipeline"] = PIPELINE % values if case.places > 1 else ""
    with open(path, "w", encoding="utf-8") as file:
        file.write(JOB % values)
    return path


def ours(tool, *arguments):
    done = subprocess.run([tool, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr.strip())
    return done.stdout


def saved_weights(saved, state=""):
    """{path: (rows, width, values)} of the latest checkpoint in the folder, whose format is "full"; with `state`, of what the
    optimizer keeps."""
    with open(os.path.join(saved, "latest"), encoding="utf-8") as file:
        step = os.path.join(saved, file.read().strip())
    with open(os.path.join(step, "manifest.json"), encoding="utf-8") as file:
        manifest = json.load(file)
    weights = {}
    for parameter in manifest["parameters"]:
        values = b""
        for piece in parameter["pieces"]:
            if piece["state"] != state:
                continue
            with open(os.path.join(step, piece["file"]), "rb") as file:
                file.seek(piece["offset"])
                values += file.read(4 * piece["elements"])
        weights[parameter["path"]] = (parameter["rows"], parameter["width"], values)
    return weights


def our_weights(tool, folder, model, layers=2):
    """As saved_weights: the initial values, of a step whose learning rate changes nothing."""
    saved = os.path.join(folder, "weights")
    ours(tool, job(folder, Case(model, layers=layers), steps=1, rate=1e-30), "--checkpoint.save=" + saved,
         "--checkpoint.format=full", "--overwrite")
    return saved_weights(saved)


def our_losses(tool, path):
    return json.loads(ours(tool, path, "--format", "json"))["losses"]


def our_steady_steps(tool, path):
    """{first rank of a role: the lines of its steady step}, from --dry-run."""
    steps, rank, title = {}, 0, ""
    for line in ours(tool, path, "--dry-run").splitlines():
        role = re.match(r"Ranks? (\d+)", line)
        if role:
            rank = int(role.group(1))
        elif re.match(r"(Set-up|Step \d+|Steady step|Predicted)", line):
            title = line
        elif title.startswith("Steady step"):
            steps.setdefault(rank, []).append(line)
    return steps


_COLLECTIVE = re.compile(
    r"\s(all_reduce|all_gather|reduce_scatter|send)\s+([\d,]+)\s.*\b(tensor|context|shard) group(.*)$")


def our_collective(line):
    """(group, kind, bytes) if the line of a Plan is a collective of the step that PyTorch has, too."""
    match = _COLLECTIVE.search(line)
    if not match:
        return None
    kind, size, group, rest = match.groups()
    return group, kind + (" max" if ", maximum" in rest else ""), int(size.replace(",", ""))


# --- PyTorch -----------------------------------------------------------------------------------------------

class Recorder:
    """The collectives that PyTorch does while `on`: (group, kind, bytes) in `seen`. `group` is the one whose
    collectives are functional."""

    def __init__(self, seen, group="tensor"):
        import torch
        from torch.utils._python_dispatch import TorchDispatchMode

        functional, c10d = torch.ops._c10d_functional, torch.ops.c10d
        recorder, self.on = self, False

        class Mode(TorchDispatchMode):
            def __torch_dispatch__(self, function, types, args=(), kwargs=None):
                from torch.distributed.tensor import DTensor
                if any(issubclass(t, DTensor) for t in types):
                    return NotImplemented
                out = function(*args, **(kwargs or {}))
                if recorder.on:
                    size = lambda t: t.numel() * t.element_size()
                    if function in (functional.all_reduce.default, functional.all_reduce_.default):
                        seen.append((group, "all_reduce" + (" max" if args[1] == "max" else ""), size(out)))
                    elif function is functional.all_gather_into_tensor.default:
                        seen.append((group, "all_gather", size(out)))
                    elif function is functional.reduce_scatter_tensor.default:
                        seen.append((group, "reduce_scatter", size(args[0])))
                    elif function is functional.all_to_all_single.default:  # each rank's to the next
                        seen.append((group, "send", size(args[0])))
                    elif function is c10d._allgather_base_.default:
                        seen.append(("shard", "all_gather", size(args[0])))
                    elif function is c10d._reduce_scatter_base_.default:
                        seen.append(("shard", "reduce_scatter", size(args[1])))
                return out

        self.mode = Mode()


def show_difference(losses, their_losses, collectives, theirs):
    """Prints both lists of losses, and the collectives side by side, marked where they differ."""
    print("  losses", losses, their_losses)
    for i, (a, b) in enumerate(itertools.zip_longest(collectives, theirs)):
        print("  %3d  %-34s %-34s %s" % (i, a, b, "" if a == b else "<<"))


def causal_attention(q, k, v):
    import torch.nn.functional as F
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


def build(case, weights, blocks=None, tensor_place=0, attention=causal_attention):
    """The model, or a stage of it: these blocks, with the embeddings before the first and the head after the last."""
    import torch
    import torch.nn.functional as F
    from torch import nn
    from torch.distributed.tensor import Partial

    blocks = range(case.layers) if blocks is None else blocks
    is_first, is_last = blocks.start == 0, blocks.stop == case.layers
    head_width = WIDTH // HEADS
    llama = case.model == "llama"
    places = torch.arange(CONTEXT)  # of the tokens, of which context_parallel leaves the rank's

    def rotate(x):  # [b, heads, s, head width], as halves
        half = head_width // 2
        angle = torch.outer(places.double(),
                            10000.0 ** (-2 * torch.arange(half, dtype=torch.float64) / head_width))
        cos, sin = angle.cos().float(), angle.sin().float()
        a, b = x[..., :half], x[..., half:]
        return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.q = nn.Linear(WIDTH, WIDTH, bias=not llama)
            self.k = nn.Linear(WIDTH, case.kv_heads * head_width, bias=not llama)
            self.v = nn.Linear(WIDTH, case.kv_heads * head_width, bias=not llama)
            self.projection = nn.Linear(WIDTH, WIDTH, bias=not llama)

        def forward(self, x):
            split = lambda y: y.unflatten(-1, (-1, head_width)).transpose(1, 2)
            q, k, v = split(self.q(x)), split(self.k(x)), split(self.v(x))
            if llama:
                q, k = rotate(q), rotate(k)
            y = attention(q, k, v)
            return self.projection(y.transpose(1, 2).flatten(2))

    class FeedForward(nn.Module):
        def __init__(self):
            super().__init__()
            if llama:
                hidden = weights["blocks.0.feed_forward.w1.weight"][0]
                self.w1, self.w3 = nn.Linear(WIDTH, hidden, bias=False), nn.Linear(WIDTH, hidden, bias=False)
                self.w2 = nn.Linear(hidden, WIDTH, bias=False)
            else:
                self.expand, self.projection = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x):
            if llama:
                return self.w2(F.silu(self.w1(x)) * self.w3(x))
            return self.projection(F.gelu(self.expand(x), approximate="tanh"))

    norm = (lambda: nn.RMSNorm(WIDTH, eps=1e-5)) if llama else (lambda: nn.LayerNorm(WIDTH, eps=1e-5))

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
            if is_first:
                self.token_embedding = nn.Embedding(256, WIDTH)
                if not llama:
                    self.position_embedding = nn.Embedding(CONTEXT, WIDTH)
            self.blocks = nn.ModuleDict({str(i): Block() for i in blocks})
            if is_last:
                self.norm, self.head = norm(), nn.Linear(WIDTH, 256, bias=False)

        def embed(self, tokens):
            x = self.token_embedding(tokens)
            if llama:
                return x
            positions = self.position_embedding.weight
            if case.sequence:  # each rank adds the positions of its part of the sequence
                part = CONTEXT // case.tensor
                positions = positions.to_local(grad_placements=[Partial()])
                positions = positions[tensor_place * part : (tensor_place + 1) * part]
            return x + (positions if case.context_ranks == 1 else positions[places])

        def forward(self, x):
            if is_first:
                x = self.embed(x)
            for block in self.blocks.values():
                x = block(x)
            return self.head(self.norm(x)) if is_last else x

    net = Model()
    net.places = places
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            parameter.copy_(ours_of(case, weights, name).view_as(parameter))
    return net


def ours_of(case, weights, name):
    """What build()'s parameter of this name is of what saved_weights() found."""
    import torch

    match = re.match(r"(.*attention)\.([qkv])\.(weight|bias)$", name)
    rows, columns, values = weights["%s.qkv.%s" % match.group(1, 3) if match else name]
    whole = torch.frombuffer(bytearray(values), dtype=torch.float32).view(rows, columns)
    if match:
        keys = case.kv_heads * WIDTH // HEADS
        first = {"q": 0, "k": WIDTH, "v": WIDTH + keys}[match.group(2)]
        whole = whole[first : first + (WIDTH if match.group(2) == "q" else keys)]
    return whole


def divide(case, net, mesh):
    """Tensor parallelism, and FSDP of what it leaves, for what build() has made."""
    from torch import nn
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    from torch.distributed.tensor.parallel import (
        ColwiseParallel, PrepareModuleInput, RowwiseParallel, SequenceParallel, parallelize_module)

    blocks = net.blocks.values()
    if case.tensor > 1:
        rows_of = Shard(1) if case.sequence else Replicate()
        whole_input = lambda: PrepareModuleInput(input_layouts=(rows_of,), desired_input_layouts=(Replicate(),))
        outer = {
            "token_embedding": RowwiseParallel(input_layouts=Replicate(), output_layouts=rows_of),
            **({"norm": SequenceParallel(use_local_output=True)} if case.sequence else {}),
            "head": ColwiseParallel(input_layouts=rows_of, output_layouts=Shard(-1), use_local_output=False)}
        parallelize_module(net, mesh["tensor"], {name: how for name, how in outer.items() if hasattr(net, name)})
        if case.sequence and hasattr(net, "position_embedding"):
            net.position_embedding.weight = nn.Parameter(
                distribute_tensor(net.position_embedding.weight.detach(), mesh["tensor"], [Replicate()]))
        for block in blocks:
            ffn = ({"w1": ColwiseParallel(), "w3": ColwiseParallel(), "w2": RowwiseParallel(output_layouts=rows_of)}
                   if case.model == "llama" else
                   {"expand": ColwiseParallel(), "projection": RowwiseParallel(output_layouts=rows_of)})
            plan = {"attention": whole_input(), "attention.q": ColwiseParallel(), "attention.k": ColwiseParallel(),
                    "attention.v": ColwiseParallel(), "attention.projection": RowwiseParallel(output_layouts=rows_of),
                    "feed_forward": whole_input(), **{"feed_forward." + k: v for k, v in ffn.items()}}
            if case.sequence:
                plan |= {"norm_1": SequenceParallel(use_local_output=True),
                         "norm_2": SequenceParallel(use_local_output=True)}
            parallelize_module(block, mesh["tensor"], plan)
    if case.data * case.context_ranks > 1:
        over = mesh["data", "context"]._flatten("data_context") if case.context_ranks > 1 else mesh["data"]
        # In a pipeline the schedule says when a stage is freed (as torchtitan does it).
        free = {"reshard_after_forward": False} if case.places > 1 else {}
        for block in blocks:
            fully_shard(block, mesh=over, **free)
        fully_shard(net, mesh=over, **free)


def samples(case):
    """The tokens and targets of a micro-batch."""
    import torch
    window = torch.tensor(list((WINDOW * 2).encode()), dtype=torch.int64)
    return (window[i : i + CONTEXT].repeat(case.batch, 1) for i in (0, 1))


def descend(parameters):
    """SGD."""
    import torch
    with torch.no_grad():
        for parameter in parameters:
            gradient = parameter.grad
            if hasattr(gradient, "redistribute"):  # sums what is partial
                gradient = gradient.redistribute(placements=parameter.placements)
            parameter -= RATE * gradient


def _rank(rank, work, case, weights, port, results):
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(case.ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
                      OMP_NUM_THREADS="1")
    import torch
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (case.places, case.data, case.context_ranks, case.tensor),
                            mesh_dim_names=("pipeline", "data", "context", "tensor"))
    found = work(rank, case, weights, mesh)
    if found is not None:
        results.put((rank, found))
    dist.barrier()
    dist.destroy_process_group()


def run(work, case, weights, port, results_of):
    """work(rank, case, weights, mesh) between processes: {rank: what it returns}, of `results_of` ranks that return
    something."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch", "torch.distributed.fsdp", "torch.distributed.tensor.parallel",
                                    "torch.distributed.pipelining"])
    results = context.Queue()
    processes = [context.Process(target=_rank, args=(r, work, case, weights, port, results)) for r in range(case.ranks)]
    for process in processes:
        process.start()
    found = {}
    while len(found) < results_of:
        if not results.empty():
            rank, value = results.get()
            found[rank] = value
        elif any(process.exitcode not in (None, 0) for process in processes):
            for process in processes:
                process.terminate()
            sys.exit("PyTorch's run of %s failed" % case)
        else:
            processes[0].join(0.1)
    for process in processes:
        process.join()
    return found
