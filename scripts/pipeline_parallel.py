#!/usr/bin/env python3
"""Lays PyTorch's pipelines beside shardscope-train's; see pipeline_parallel.sh."""

import argparse
import dataclasses
import itertools
import math
import os
import re
import sys
import tempfile

import torch_peer
from torch_peer import Case

# Our name: PyTorch's class; zb_h1 has none, and the runtime of the others runs its table.
CLASSES = {"gpipe": "ScheduleGPipe", "1f1b": "Schedule1F1B", "interleaved": "ScheduleInterleaved1F1B",
           "looped_bfs": "ScheduleLoopedBFS", "zb_h1": "_PipelineScheduleRuntime",
           "interleaved_zb": "ScheduleInterleavedZeroBubble", "zb_v": "ScheduleZBVZeroBubble",
           "dualpipe_v": "ScheduleDualPipeV"}
# Their loops have no table of messages: each receive is posted where it is needed. The others run a table.
LOOPS = ("gpipe", "1f1b")
V = ("zb_v", "dualpipe_v")


def by_table(case):
    """Whether PyTorch has no class for it: its runtime is given the table."""
    return case.schedule == "zb_h1"


def cases():
    for model in ("gpt", "llama"):
        for places, micro_batches in ((2, 4), (4, 8)):
            base = Case(model, layers=8, batch=2, places=places, micro_batches=micro_batches)
            for schedule in CLASSES:
                chunks = 1 if schedule in LOOPS + ("zb_h1",) else 2
                yield dataclasses.replace(base, schedule=schedule, chunks=chunks)
    for model in ("gpt", "llama"):
        base = Case(model, layers=8, batch=2, places=2, micro_batches=4)
        for schedule, chunks in (("1f1b", 1), ("interleaved", 2), ("zb_v", 2)):
            for data, tensor, sequence in ((1, 2, False), (1, 2, True), (2, 1, False)):
                yield dataclasses.replace(base, schedule=schedule, chunks=chunks, data=data, tensor=tensor, sequence=sequence)


def torch_rank(rank, case, weights, mesh):
    import torch
    import torch.nn.functional as F
    from contextlib import nullcontext
    from torch.distributed.pipelining import PipelineStage, schedules
    from torch.distributed.tensor.parallel import loss_parallel

    seen, recording = [], [False]
    recorder = torch_peer.Recorder(seen)
    ranks_of_place, count = case.data * case.tensor, case.places * case.chunks
    place = rank // ranks_of_place

    def note(what):
        if recording[0]:
            seen.append(what)

    def noted(stage, method, letter):
        original = getattr(stage, method)

        def wrapped(micro_batch, *args, **kwargs):
            split = method == "backward_one_chunk" and not kwargs.get("full_backward", True)
            note("%d%s%d" % (stage.stage_index, "I" if split else letter, micro_batch))
            return original(micro_batch, *args, **kwargs)
        setattr(stage, method, wrapped)

    post = schedules._batch_p2p

    def noted_post(operations, *args, **kwargs):
        for operation in operations:
            size = operation.tensor.numel() * operation.tensor.element_size()
            note(("send" if operation.op is torch.distributed.isend else "recv", operation.peer // ranks_of_place, size))
        return post(operations, *args, **kwargs)
    schedules._batch_p2p = noted_post

    stages = []
    for chunk in range(case.chunks):
        index = 2 * case.places - 1 - place if chunk == 1 and case.schedule in V else place + chunk * case.places
        each = case.layers // count
        net = torch_peer.build(case, weights, range(index * each, (index + 1) * each), rank % case.tensor)
        torch_peer.divide(case, net, mesh)
        stage = PipelineStage(net, index, count, torch.device("cpu"), group=mesh["pipeline"].get_group())
        for method, letter in (("forward_one_chunk", "F"), ("backward_one_chunk", "B"), ("backward_weight_one_chunk", "W")):
            noted(stage, method, letter)
        stages.append(stage)
    kind = getattr(schedules, CLASSES[case.schedule])
    loss_of = lambda output, target: F.cross_entropy(output.flatten(0, 1), target.flatten())
    run = kind(stages[0] if case.schedule in LOOPS else stages, case.micro_batches, loss_fn=loss_of)
    if by_table(case):
        run._load_csv(case.table, format="compute_only")

    tokens, targets = (part.repeat(case.micro_batches, 1) for part in torch_peer.samples(case))
    losses = []
    with recorder.mode:
        for step in range(torch_peer.STEPS):
            recording[0] = recorder.on = step == torch_peer.STEPS - 1
            for stage in stages:
                stage.submod.zero_grad()
            own = []
            with loss_parallel() if case.tensor > 1 else nullcontext():
                run.step(*((tokens,) if place == 0 else ()),
                         **({"target": targets, "losses": own} if any(stage.is_last for stage in stages) else {}))
            for stage in stages:
                torch_peer.descend(stage.submod.parameters())
            values = [loss.full_tensor() if hasattr(loss, "full_tensor") else loss for loss in own]
            losses.append(sum(value.item() for value in values) / max(1, len(values)))
    return (losses if own else None, seen) if rank % ranks_of_place == 0 else None


_ACTION = re.compile(r"PP:(\d+[FBIW]\d+)\s*$")
_MESSAGE = re.compile(r"\s(send|recv)\s+([\d,]+)\s.*\b(?:to|from) place (\d+)")


def our_sequence(lines):
    found = []
    for line in lines:
        if action := _ACTION.search(line):
            found.append(action.group(1))
        elif message := _MESSAGE.search(line):
            found.append((message.group(1), int(message.group(3)), int(message.group(2).replace(",", ""))))
        elif collective := torch_peer.our_collective(line):
            found.append(collective)
    return found


def actions(sequence):
    return [what for what in sequence if isinstance(what, str)]


def is_message(what):
    return what[0] in ("send", "recv")


def messages(sequence):
    return [what for what in sequence if is_message(what)]


def collectives(sequence):
    return [what for what in sequence if not isinstance(what, str) and not is_message(what)]


def by_channel(sequence):
    return sorted(messages(sequence), key=lambda what: what[:2])  # stable: each channel keeps its order


def show_differences(theirs, ours):
    for i, (a, b) in enumerate(itertools.zip_longest(theirs, ours)):
        print("    %3d  %-34s %-34s %s" % (i, a, b, "" if a == b else "<<"))


def compare(theirs, ours, show):
    """(column, what is compared, equal) of one place."""
    for column, of in (("actions", actions), ("messages", messages), ("collectives", collectives)):
        a, b = of(theirs), of(ours)
        equal = sum(x == y for x, y in zip(a, b)) if len(a) == len(b) else 0
        of_both = max(len(a), len(b))
        yield column, of_both, equal
        if of_both != equal and show:
            show_differences(a, b)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    parser.add_argument("--show", action="store_true", help="print what differs, PyTorch's left")
    parser.add_argument("--only", default="", help="a part of a case's line")
    arguments = parser.parse_args()
    line = "%-6s %6s %4s %6s  %-8s  %-14s %3s  %7s %5s  %8s %5s  %11s %5s  %12s  %s"
    print(line % ("model", "places", "data", "tensor", "sequence", "schedule", "m", "actions", "equal", "messages", "equal",
                  "collectives", "equal", "loss differs", ""))
    wrong, port = 0, 29800
    with tempfile.TemporaryDirectory() as folder:
        weights = {model: torch_peer.our_weights(arguments.tool, folder, model, 8) for model in ("gpt", "llama")}
        for case in cases():
            title = (case.model, case.places, case.data, case.tensor, "yes" if case.sequence else "no", case.schedule,
                     case.micro_batches)
            if arguments.only not in " ".join(map(str, title)):
                continue
            port += 1
            if by_table(case):
                case = dataclasses.replace(case, table=os.path.join(folder, "table.csv"))
                torch_peer.ours(arguments.tool, "schedule", case.schedule, "--pipeline=%d" % case.places,
                                "--micro-batches=%d" % case.micro_batches, "-o", case.table, "--overwrite")
            path = torch_peer.job(folder, case)
            losses = torch_peer.our_losses(arguments.tool, path)
            steps = torch_peer.our_steady_steps(arguments.tool, path)
            theirs = torch_peer.run(torch_rank, case, weights[case.model], port, case.places)
            counts = {"actions": [0, 0], "messages": [0, 0], "collectives": [0, 0]}
            unequal, difference = set(), math.inf
            for rank, (their_losses, seen) in sorted(theirs.items()):
                if their_losses:
                    difference = max(abs(a / b - 1) for a, b in zip(losses, their_losses))
                own = our_sequence(steps[rank])
                if case.schedule in LOOPS:
                    seen, own = (actions(s) + by_channel(s) + collectives(s) for s in (seen, own))
                elif [x for x in seen if isinstance(x, str) or is_message(x)] != \
                        [x for x in own if isinstance(x, str) or is_message(x)]:
                    unequal.add("the order of actions and messages")
                    if arguments.show:
                        show_differences(*([x for x in s if isinstance(x, str) or is_message(x)] for s in (seen, own)))
                for column, of, equal in compare(seen, own, arguments.show):
                    counts[column][0] += of
                    counts[column][1] += equal
                    if of != equal:
                        unequal.add(column)
            if difference > 1e-5:
                unequal.add("losses")
            wrong += bool(unequal)
            print(line % (*title, *counts["actions"], *counts["messages"], *counts["collectives"], "%.1e" % difference,
                          "DIFFERS: " + ", ".join(sorted(unequal)) if unequal else ""), flush=True)
    import torch
    print("PyTorch %s, gloo" % torch.__version__)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
