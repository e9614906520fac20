"""The differences between PyTorch and shardscope-train that have a name; docs/fidelity.md explains them at length.

A difference excuses only its columns, only in the configurations that it applies to and, where it says how the two
sides differ (`mend`), only if nothing else differs. Differences that apply to the same configuration are mended
together.
"""

import dataclasses
from collections.abc import Callable

VERSION = "2.15.0"  # of PyTorch, whose behaviour the table describes

_COLLECTIVES = ("kind", "bytes", "dtype", "group", "unit", "phase")
_MEMORY = ("peak", "categories")


@dataclasses.dataclass(frozen=True)
class Difference:
    key: str
    reason: str
    columns: tuple
    applies: Callable  # (configuration) -> bool
    mend: Callable  # (configuration, PyTorch's log, our log): changes the logs in place until they should be equal


def not_compared(_, theirs, ours):
    for a, b in zip(theirs["steps"], ours["steps"]):
        b["peak"] = a["peak"]
    ours["at_peak"] = theirs["at_peak"]


def _without_losses(c, _, ours):
    losses = 8 * c.accumulation
    for step in ours["steps"]:
        step["peak"] -= losses
    ours["at_peak"]["other"] = ours["at_peak"].get("other", 0) - losses


def _higher(most):
    """PyTorch's peaks are higher by at most `most` bytes; what is at the peak may then be something else."""
    def mend(c, theirs, ours):
        limit = most(c, theirs)
        for a, b in zip(theirs["steps"], ours["steps"]):
            if 0 <= a["peak"] - b["peak"] <= limit:
                b["peak"] = a["peak"]
        if 0 <= sum(theirs["at_peak"].values()) - sum(ours["at_peak"].values()) <= limit:
            ours["at_peak"] = theirs["at_peak"]
    return mend


def _largest_unit(_, theirs):
    return max((one["bytes"] for step in theirs["steps"] for one in step["collectives"]), default=0)


def _aligned(c, theirs, ours):
    """Ours has padding: up to 15 bytes before each parameter."""
    for a, b in zip(theirs["steps"], ours["steps"]):
        for one, other in zip(a["collectives"], b["collectives"]):
            if 0 <= other["bytes"] - one["bytes"] <= 16 * 2 * c.layers:
                other["bytes"] = one["bytes"]
    limit = 16 * 2 * c.layers * 4
    for a, b in zip(theirs["steps"], ours["steps"]):
        if 0 <= b["peak"] - a["peak"] <= limit:
            b["peak"] = a["peak"]
    if 0 <= sum(ours["at_peak"].values()) - sum(theirs["at_peak"].values()) <= limit:
        ours["at_peak"] = theirs["at_peak"]


def _without_used_map(_, theirs, __):
    first = theirs["steps"][0]
    first["collectives"] = [one for one in first["collectives"] if one["dtype"] != "int32"]


def _arriving(_, theirs, ours):
    """Gradients that autograd hands on count as activations on PyTorch's side; the sum is the same."""
    names = ("activations", "other", "unsharded_gradients", "gradients")
    if all(sum(log["at_peak"].get(n, 0) for n in names) == sum(theirs["at_peak"].get(n, 0) for n in names)
           for log in (theirs, ours)):
        ours["at_peak"] = theirs["at_peak"]


TABLE = (
    Difference(
        "losses",
        "ours keeps the loss of each micro-batch, 8 bytes, on the device",
        _MEMORY,
        lambda c: c.accumulation > 1,
        _without_losses,
    ),
    Difference(
        "one-rank",
        "with one rank FullyShardedDataParallel switches to NO_SHARD; ours stays what the job says",
        (*_COLLECTIVES, *_MEMORY),
        lambda c: c.ranks == 1 and c.wrapper == "fsdp1" and c.strategy != "NO_SHARD",
        not_compared,
    ),
    Difference(
        "one-rank-fsdp2",
        "with one rank fully_shard runs no collective; ours runs those of one rank",
        ("present", *_COLLECTIVES, *_MEMORY),
        lambda c: c.ranks == 1 and c.wrapper == "fsdp2",
        not_compared,
    ),
    Difference(
        "offload-refused",
        "ours refuses cpu_offload with NO_SHARD, where PyTorch copies everything",
        ("runs",),
        lambda c: c.cpu_offload and c.strategy == "NO_SHARD",
        not_compared,
    ),
    Difference(
        "static-graph-first-sync",
        "PyTorch's reducer fails if a static graph's first backward is without synchronization; ours runs it",
        ("runs",),
        lambda c: c.wrapper == "ddp" and c.static_graph and not c.accumulation_sync,
        not_compared,
    ),
    Difference(
        "static-graph-used",
        "in the first backward of a static graph PyTorch's reducer sums which parameters were used (int32), which only its"
        " search for unused parameters reads; ours has no such search",
        _COLLECTIVES,
        lambda c: c.wrapper == "ddp" and c.static_graph,
        _without_used_map,
    ),
    Difference(
        "aligned-parameters",
        "without use_orig_params a parameter begins where the one before it ends; ours has the layout with use_orig_params,"
        " where it begins at a multiple of 16 bytes",
        ("bytes", *_MEMORY),
        lambda c: c.wrapper == "fsdp1" and not c.use_orig_params and c.width % 8 != 0,
        _aligned,
    ),
    Difference(
        "offload-memory",
        "PyTorch runs on the processor here, whose memory is both sides of cpu_offload: memory is not compared",
        _MEMORY,
        lambda c: c.cpu_offload,
        not_compared,
    ),
    Difference(
        "arriving-gradients",
        "a gradient that autograd has not accumulated yet, before it is added to the other one of a shared parameter or"
        " converted to reduce_dtype, is an activation for the script; the sum is the same",
        ("categories",),
        lambda c: c.tied or (c.wrapper == "fsdp2" and (c.param, c.reduce) == ("fp32", "bf16")),
        _arriving,
    ),
    Difference(
        "no-shard-accumulation",
        "under NO_SHARD PyTorch adds a micro-batch's gradient to the reduced one and reduces the sum; ours reduces first, with"
        " the bits of the other strategies",
        _MEMORY,
        lambda c: c.wrapper == "fsdp1" and c.strategy == "NO_SHARD" and c.param == "bf16"
        and c.accumulation > 1 and c.accumulation_sync,
        _higher(_largest_unit),
    ),
)
