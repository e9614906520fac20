#!/usr/bin/env python3
"""Lays PyTorch's communication hooks beside shardscope-train's; see comm_hooks.sh."""

import argparse
import json
import multiprocessing
import os
import sys
import tempfile

import our_random
from torch_peer import ours, saved_weights

SEED, RANKS, STEPS, START = 1, 2, 20, 2
CONTEXT, WIDTH, HEADS, LAYERS = 16, 32, 4, 2  # of the GPT
MODELS = {  # model: (samples of a rank, learning rate, job)
    "linear": (8, 0.1, 'type = "mlp"\nlayers = 1\nwidth = 64\n'),
    "gpt": (4, 0.005, 'type = "gpt"\nlayers = %d\nheads = %d\nwidth = %d\ncontext = %d\n' % (LAYERS, HEADS, WIDTH, CONTEXT)),
}
HOOKS = ["none", "bf16", "fp16", "powersgd:1", "powersgd:2", "powersgd:4", "topk:0.01", "topk:0.25"]
JOB = """
[run]
steps = %d
ranks = %d
seed = %d
[model]
%s
[data]
%s
batch = %d
[parallel]
mode = "ddp"
[optimizer]
type = "sgd"
lr = %g
"""


def text():
    """Windows that all differ."""
    return "".join("line %d of a text whose lines resemble each other, %d\n" % (i, i * i) for i in range(100)).encode()


def job(folder, model, steps, rate):
    batch, _, section = MODELS[model]
    path = os.path.join(folder, "text")
    with open(path, "wb") as file:
        file.write(text())
    name = os.path.join(folder, "job.toml")
    with open(name, "w", encoding="utf-8") as file:
        file.write(JOB % (steps, RANKS, SEED, section,
                          'type = "text"\npath = "%s"' % path if model == "gpt" else "", batch, rate))
    return name


def our_parameters(saved):
    """{path: values}, rows x width."""
    import torch
    return {path: torch.frombuffer(bytearray(values), dtype=torch.float32).view(rows, width)
            for path, (rows, width, values) in saved_weights(saved).items()}


def train(tool, folder, model, hook, steps=STEPS, rate=None):
    """As our_parameters, after the steps."""
    saved = os.path.join(folder, "saved")
    processes = ["--run.processes=%d" % RANKS, "--run.comm=tcp"] if rate is None else []
    compressed = ["--ddp.comm_hook=" + hook] if hook != "none" else []
    ours(tool, job(folder, model, steps, rate or MODELS[model][1]), *processes, *compressed,
         "--checkpoint.save=" + saved, "--checkpoint.format=full", "--overwrite")
    return our_parameters(saved)


def bytes_sent(tool, folder, model, hook):
    """[collectives, their bytes] of a steady step."""
    compressed = ["--ddp.comm_hook=" + hook] if hook != "none" else []
    plan = json.loads(ours(tool, job(folder, model, STEPS, 0.1), "--dry-run", "--format", "json", *compressed))
    kinds = plan["steady_step"]["collectives"].values()
    return [sum(kind["count"] for kind in kinds), sum(kind["bytes"] for kind in kinds)]


# --- PyTorch -----------------------------------------------------------------------------------------------

def build(model, weights):
    """The network, whose parameters have our names and, in two dimensions, our shapes."""
    import torch
    import torch.nn.functional as F

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.paths = list(weights)
            self.weights = torch.nn.ParameterList(
                torch.nn.Parameter((value.squeeze(1) if value.shape[1] == 1 else value).clone())
                for value in weights.values())

        def at(self, path):
            return self.weights[self.paths.index(path)] if path in self.paths else None

        def linear(self, x, path):
            return F.linear(x, self.at(path + ".weight"), self.at(path + ".bias"))

        def norm(self, x, path):
            return F.layer_norm(x, (WIDTH,), self.at(path + ".weight"), self.at(path + ".bias"), 1e-5)

        def forward(self, x):
            if model == "linear":
                return self.linear(x, "net.0")
            x = self.at("token_embedding.weight")[x] + self.at("position_embedding.weight")
            for b in range(LAYERS):
                path = "blocks.%d." % b
                split = lambda y: y.unflatten(-1, (HEADS, WIDTH // HEADS)).transpose(1, 2)
                q, k, v = (split(y) for y in self.linear(self.norm(x, path + "norm_1"), path + "attention.qkv").chunk(3, -1))
                y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
                x = x + self.linear(y.transpose(1, 2).flatten(2), path + "attention.projection")
                y = F.gelu(self.linear(self.norm(x, path + "norm_2"), path + "feed_forward.expand"), approximate="tanh")
                x = x + self.linear(y, path + "feed_forward.projection")
            return self.linear(self.norm(x, "norm"), "head")

    return Net()


def samples(model, step, rank):
    import torch
    batch = MODELS[model][0]
    places = range((step * RANKS + rank) * batch, (step * RANKS + rank + 1) * batch)
    if model == "linear":
        return [torch.from_numpy(part) for part in our_random.synthetic(SEED, 64, places)]
    tokens = torch.tensor(list(text()))
    windows = (len(tokens) - 1) // CONTEXT
    starts = [our_random.window_at(SEED, windows, place) * CONTEXT for place in places]
    return [torch.stack([tokens[s + shift : s + shift + CONTEXT] for s in starts]) for shift in (0, 1)]


def topk_hook(state, bucket):
    """Error feedback, the k largest numbers of the bucket, places and values gathered."""
    import torch
    import torch.distributed as dist
    step, state["step"] = state["step"], state["step"] + bucket.is_last()
    buffer = bucket.buffer()
    if step < START:
        dist.all_reduce(buffer)
        buffer.div_(RANKS)
    else:
        k = -int(-state["share"] * len(buffer) // 1)
        error = state["errors"].setdefault(bucket.index(), torch.zeros_like(buffer))
        error += buffer
        places = error.abs().topk(k).indices
        values = error[places]
        error[places] = 0
        all_places, all_values = ([torch.empty_like(own) for _ in range(RANKS)] for own in (places, values))
        dist.all_gather(all_places, places)
        dist.all_gather(all_values, values)
        buffer.zero_()
        for at, value in zip(all_places, all_values):
            buffer[at] += value / RANKS
    done = torch.futures.Future()
    done.set_result(buffer)
    return done


def hooked(net, hook):
    """DDP with the hook, whose first Q is ours."""
    import torch
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook as power
    ddp = torch.nn.parallel.DistributedDataParallel(net)
    kind, _, amount = hook.partition(":")
    if kind in ("bf16", "fp16"):
        ddp.register_comm_hook(None, getattr(default_hooks, kind + "_compress_hook"))
    elif kind == "topk":
        ddp.register_comm_hook({"share": float(amount), "errors": {}, "step": 0}, topk_hook)
    elif kind == "powersgd":
        path_of = {id(parameter): path for path, parameter in zip(net.paths, net.weights)}
        randn = torch.randn

        def with_our_q(state, bucket):
            rank = state.matrix_approximation_rank
            matrices = [p for p in bucket.parameters() if p.dim() == 2 and sum(p.shape) * rank * 2 < p.numel()]
            shapes = list(dict.fromkeys(p.shape for p in matrices))  # it draws shape by shape
            drawn = iter([(path_of[id(p)], p.shape[1]) for p in sorted(matrices, key=lambda p: shapes.index(p.shape))])

            def our_q(*shape, **_):
                path, columns = next(drawn)
                assert shape == (1, columns, rank), "PowerSGD compresses other matrices"
                q = our_random.normals(SEED, our_random.stream_of(path + " (PowerSGD)"), columns * rank)
                return torch.from_numpy(q).view(rank, columns).t().unsqueeze(0)

            torch.randn = our_q
            try:
                return power.powerSGD_hook(state, bucket)
            finally:
                torch.randn = randn

        state = power.PowerSGDState(None, matrix_approximation_rank=int(amount), start_powerSGD_iter=START)
        ddp.register_comm_hook(state, with_our_q)
    return ddp


def rank_of(rank, weights, model, hook):
    """What it sent in the last step, [collectives, bytes], and {path: values after the steps}."""
    import torch
    import torch.distributed as dist
    import torch.nn.functional as F
    sent = []
    for name in ("all_reduce", "all_gather"):
        def recorded(*args, original=getattr(dist, name), **keywords):
            parts = args[0] if isinstance(args[0], list) else [args[0]]
            # Our places are 32-bit numbers.
            size = sum(t.numel() * (4 if t.dtype == torch.int64 else t.element_size()) for t in parts)
            if size > 0:
                sent.append(size)
            return original(*args, **keywords)
        setattr(dist, name, recorded)
    net = build(model, weights)
    ddp = hooked(net, hook)
    optimizer = torch.optim.SGD(net.parameters(), lr=MODELS[model][1])
    for step in range(STEPS):
        sent.clear()
        x, y = samples(model, step, rank)
        output = ddp(x)
        loss = F.mse_loss(output, y) if model == "linear" else F.cross_entropy(output.flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return [len(sent), sum(sent)], {path: value.detach().reshape(weights[path].shape).clone().numpy()
                                    for path, value in zip(net.paths, net.weights)}


def _process(work, rank, weights, port, arguments, results):
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(RANKS), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    import torch
    import torch.distributed as dist
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    results.put((rank, work(rank, weights, *arguments)))
    dist.barrier()
    dist.destroy_process_group()


def in_ranks(work, weights, port, *arguments):
    """What work(rank, weights, *arguments) returns on rank 0 of processes on gloo."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch", "torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook"])
    results = context.Queue()
    processes = [context.Process(target=_process, args=(work, r, weights, port, arguments, results)) for r in range(RANKS)]
    for process in processes:
        process.start()
    found = {}
    while len(found) < RANKS:
        if not results.empty():
            rank, value = results.get()
            found[rank] = value
        elif any(process.exitcode not in (None, 0) for process in processes):
            for process in processes:
                process.terminate()
            sys.exit("PyTorch's run of %s failed" % (arguments or work.__module__,))
        else:
            processes[0].join(0.05)
    for process in processes:
        process.join()
    return found[0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    tool = parser.parse_args().tool
    import torch
    wrong = 0
    print("After %d steps of SGD on %d ranks, the first %d of them not compressed by PowerSGD and top-k" % (STEPS, RANKS, START))
    print("%-7s %-11s %17s  %17s  %16s  %17s" % ("", "", "largest difference", "largest change by", "collectives", "bytes"))
    print("%-7s %-11s %17s  %17s  %16s  %17s" % ("model", "hook", "of a parameter", "the hook", "ours, PyTorch's", "ours, PyTorch's"))
    with tempfile.TemporaryDirectory() as folder:
        for m, model in enumerate(MODELS):
            start = train(tool, folder, model, "none", steps=1, rate=1e-30)
            plain = train(tool, folder, model, "none")
            for h, hook in enumerate(HOOKS):
                values = train(tool, folder, model, hook)
                sent = bytes_sent(tool, folder, model, hook)
                their_sent, their_values = in_ranks(rank_of, start, 29800 + 20 * m + h, model, hook)
                apart = max((value - torch.from_numpy(their_values[path])).abs().max().item() for path, value in values.items())
                changed = max((value - plain[path]).abs().max().item() for path, value in values.items())
                if hook == "none":  # PyTorch's reducer sends without dist.all_reduce: nothing to compare
                    their_sent = ["-", "-"]
                bad = apart > 1e-5 or (hook != "none" and sent != their_sent)
                wrong += bad
                print("%-7s %-11s %17.1e  %17.1e  %7d %8s  %8d %8s  %s" % (
                    model, hook, apart, changed, sent[0], their_sent[0], sent[1], their_sent[1],
                    "DIFFERS" if bad else ""), flush=True)
    print("PyTorch %s, gloo" % torch.__version__)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
