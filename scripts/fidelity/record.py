#!/usr/bin/env python3
"""Records what PyTorch does with a configuration on gloo, for the test that lays it beside our trainer's run.

    torchrun --nproc_per_node 2 scripts/fidelity/record.py FOLDER NAME REGEX     # FOLDER/NAME.rank*.json.gz

REGEX selects one configuration by its name. Four steps are trained, the last one recorded; modules are named as
torch.profiler names them.
"""

import contextlib
import gzip
import json
import os
import re
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile, record_function, schedule

import configurations
import models
import oracle

CLASSES = {"PositionEmbedding": "Embedding"}  # ours has one class for both


def _named(model):
    """Opens a range around each module's forward, numbered within its class in the order of the first calls."""
    numbers, counts, open_ranges = {}, {}, []

    def enter(module, _):
        kind = type(module).__name__
        kind = CLASSES.get(kind, kind)
        if module not in numbers:
            numbers[module] = counts[kind] = counts.get(kind, -1) + 1
        open_ranges.append(record_function("nn.Module: %s_%d" % (kind, numbers[module])))
        open_ranges[-1].__enter__()

    def leave(module, *_):
        open_ranges.pop().__exit__(None, None, None)

    for module in model.modules():
        module.register_forward_pre_hook(enter)
        module.register_forward_hook(leave)


def _step(c, model, optimizer):
    optimizer.zero_grad(set_to_none=True)
    for micro in range(c.accumulation):
        reduces = micro + 1 == c.accumulation or c.accumulation_sync
        if c.wrapper == "fsdp2":
            model.set_requires_gradient_sync(reduces)
        with contextlib.nullcontext() if reduces or c.wrapper == "fsdp2" else model.no_sync():
            source, target = models.batch(c)
            models.loss(c, model(source), target).backward()
    optimizer.step()


def main():
    if len(sys.argv) != 4 or "RANK" not in os.environ:
        sys.exit(__doc__)
    folder, name, regex = sys.argv[1:]
    chosen = [c for c in configurations.configurations() if re.search(regex, c.name)]
    if len(chosen) != 1:
        sys.exit("%s selects %d configurations, not one" % (regex, len(chosen)))
    c = chosen[0]
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo")
    if dist.get_world_size() != c.ranks:
        sys.exit("%s needs %d ranks" % (c.name, c.ranks))
    model = models.make(c)
    _named(model)
    if c.wrapper == "ddp":
        model = DistributedDataParallel(model, bucket_cap_mb=c.bucket_cap_mb, static_graph=c.static_graph,
                                        gradient_as_bucket_view=c.gradient_as_bucket_view)
    else:
        model = {"fsdp1": oracle.fsdp1, "fsdp2": oracle.fsdp2}[c.wrapper](c, model, None)
    optimizer = oracle.make_optimizer(c, model.parameters())
    path = os.path.join(folder, "%s.rank%d.json" % (name, dist.get_rank()))
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True,
                 schedule=schedule(wait=2, warmup=1, active=1, repeat=1),
                 on_trace_ready=lambda p: p.export_chrome_trace(path)) as profiler:
        for _ in range(4):
            _step(c, model, optimizer)
            profiler.step()
    with open(path) as file:
        trace = json.load(file)
    for event in trace["traceEvents"]:
        event.get("args", {}).pop("Ev Idx", None)
    with gzip.GzipFile(path + ".gz", "wb", mtime=0) as packed:
        packed.write(json.dumps(trace, separators=(",", ":")).encode())
    os.remove(path)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
