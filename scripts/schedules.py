"""Compares the pipeline schedules of shardscope-train with PyTorch's, action by action (scripts/schedules.sh).

PyTorch's schedule classes build their tables without a process group: a stage is only asked for its place. Each case is
(schedule, p ranks, m micro-batches, v stages per rank); a case that one of the two refuses must be refused by the other.
"""

import argparse
import collections
import contextlib
import io
import logging
import os
import re
import subprocess
import sys

import torch
from torch.distributed.pipelining import schedules

# Our name -> PyTorch's class, and the numbers of stages per rank that it is asked for.
CLASSES = {
    "gpipe": (schedules.ScheduleGPipe, (1,)),
    "1f1b": (schedules.Schedule1F1B, (1,)),
    "interleaved": (schedules.ScheduleInterleaved1F1B, (2, 3, 4)),
    "looped_bfs": (schedules.ScheduleLoopedBFS, (2, 3, 4)),
    "interleaved_zb": (schedules.ScheduleInterleavedZeroBubble, (2, 3, 4)),
    "zb_v": (schedules.ScheduleZBVZeroBubble, (2,)),
    "dualpipe_v": (schedules.ScheduleDualPipeV, (2,)),
}
RANKS = (2, 3, 4, 5, 6, 8)
MICRO_BATCHES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16, 24)
# The cases that the tests keep (--write).
KEPT = [("gpipe", 4, 8, 1), ("1f1b", 2, 3, 1), ("1f1b", 4, 8, 1), ("interleaved", 2, 4, 2), ("interleaved", 3, 2, 2),
        ("interleaved", 4, 8, 2), ("interleaved", 4, 10, 3), ("looped_bfs", 3, 4, 2), ("looped_bfs", 2, 5, 4),
        ("interleaved_zb", 2, 4, 2), ("interleaved_zb", 4, 8, 2), ("interleaved_zb", 3, 2, 3), ("zb_v", 2, 2, 2),
        ("zb_v", 4, 8, 2), ("zb_v", 3, 1, 2), ("dualpipe_v", 2, 4, 2), ("dualpipe_v", 3, 7, 2), ("dualpipe_v", 4, 8, 2)]
KEPT_LOWERED = [("interleaved", 2, 4, 2), ("looped_bfs", 2, 3, 4), ("interleaved_zb", 2, 4, 2), ("zb_v", 2, 4, 2),
                ("zb_v", 4, 4, 2), ("dualpipe_v", 2, 4, 2)]


class Stage:
    """All that a schedule asks of a stage while it is made."""

    def __init__(self, p, v):
        self.group_rank, self.group_size, self.num_stages, self.submod = 0, p, p * v, None
        self.is_first = self.is_last = False


def number_forwards(row):
    """PyTorch 2.15's table of 1F1B counts the last rank's forwards from 1; its runtime does not read that table."""
    forwards = 0
    for i, action in enumerate(row):
        if re.fullmatch(r"\d+F\d+", action):
            row[i] = action[: action.index("F") + 1] + str(forwards)
            forwards += 1
    return row


def pytorch_table(name, p, m, v, lowered):
    """Rank -> its actions. Raises what PyTorch raises if it refuses the case."""
    kind, _ = CLASSES[name]
    with contextlib.redirect_stdout(io.StringIO()):
        made = kind(Stage(p, v) if v == 1 else [Stage(p, v) for _ in range(v)], m)
        order = made.pipeline_order
        if lowered:
            made._prepare_schedule_with_comms(order)
            order = made.pipeline_order_with_comms
    rows = [[str(action) for action in order[rank] if action is not None] for rank in range(p)]
    if v == 1:  # tables of one stage per rank end with the reduction of the gradients
        rows = [[action for action in row if not action.endswith("REDUCE_GRAD")] for row in rows]
    return [number_forwards(row) for row in rows] if name == "1f1b" else rows


def our_table(tool, name, p, m, v, lowered):
    command = [tool, "schedule", name, f"--pipeline={p}", f"--micro-batches={m}", f"--chunks={v}", "--format=csv"]
    done = subprocess.run(command + ["--comms"] * lowered, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return None
    return [line.split(",") for line in done.stdout.splitlines()]


def difference(theirs, ours):
    """Where the tables first differ, as a sentence; empty if they are equal."""
    if theirs == ours:
        return ""
    if theirs is None or ours is None:
        return f"refused by {'PyTorch' if theirs is None else 'shardscope-train'} only"
    for rank, (a, b) in enumerate(zip(theirs, ours)):
        for at, (x, y) in enumerate(zip(a + [""], b + [""])):
            if x != y:
                return f"rank {rank}, action {at}: PyTorch {x or 'ends'}, shardscope-train {y or 'ends'}"
    return f"{len(theirs)} and {len(ours)} ranks"


def write(path):
    with open(path, "w", encoding="utf-8") as file:
        file.write("schedule,p,m,v,lowered,rank,actions\n")
        for cases, lowered in ((KEPT, False), (KEPT_LOWERED, True)):
            for name, p, m, v in cases:
                for rank, row in enumerate(pytorch_table(name, p, m, v, lowered)):
                    file.write(f"{name},{p},{m},{v},{int(lowered)},{rank},{' '.join(row)}\n")


def main():
    ask = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ask.add_argument("--tool", required=True, help="shardscope-train")
    ask.add_argument("--write", metavar="FILE", help="only write PyTorch's tables of the cases that the tests keep")
    options = ask.parse_args()
    logging.disable(logging.WARNING)
    if options.write:
        write(options.write)
        return 0

    counts = collections.defaultdict(collections.Counter)
    for name, (_, chunks) in CLASSES.items():
        for lowered in (False, True)[: 1 if chunks == (1,) else 2]:
            for p, m, v in [(p, m, v) for p in RANKS for m in MICRO_BATCHES for v in chunks]:
                try:
                    theirs = pytorch_table(name, p, m, v, lowered)
                except (ValueError, AssertionError, RuntimeError):
                    theirs = None
                ours = our_table(options.tool, name, p, m, v, lowered)
                unequal = difference(theirs, ours)
                if unequal:
                    print(f"{name}, p {p}, m {m}, v {v}{', lowered' * lowered}: {unequal}")
                    counts[name, lowered]["unequal"] += 1
                else:
                    counts[name, lowered]["refused" if theirs is None else "equal"] += 1

    total = collections.Counter()
    print(f"PyTorch {torch.__version__}: {'schedule':<24}{'compared':>9}{'equal':>7}{'unequal':>9}{'refused by both':>17}")
    for (name, lowered), count in counts.items():
        compared = count["equal"] + count["unequal"]
        title = name + (", lowered" if lowered else "")
        print(f"{'':>{len(torch.__version__) + 10}}{title:<24}{compared:>9}{count['equal']:>7}{count['unequal']:>9}{count['refused']:>17}")
        total += collections.Counter({("lowered" if lowered else "tables", key): n for key, n in count.items()})
    for what in ("tables", "lowered"):
        equal, unequal = total[what, "equal"], total[what, "unequal"]
        print(f"{what}: {equal + unequal} compared, {equal} equal, {unequal} unequal, {total[what, 'refused']} refused by both")
    return 1 if total["tables", "unequal"] + total["lowered", "unequal"] else 0


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
