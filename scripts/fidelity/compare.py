"""Compares what PyTorch did with what shardscope-train plans, column by column."""

import copy
import dataclasses
from collections.abc import Callable

import differences

# Of each collective; sequences are compared in the order of the host.
OF_COLLECTIVES = ("kind", "bytes", "dtype", "group", "unit", "phase")
# present: there are collectives and allocations on both sides. peak: of each step. categories: at the highest peak.
COLUMNS = ("present", *OF_COLLECTIVES, "peak", "categories")

# Ours are more than can be seen in storages: a batch and a loss are activations there.
_CATEGORIES = ("parameters", "unsharded_parameters", "gradients", "unsharded_gradients", "optimizer_state",
               "communication", "activations")


@dataclasses.dataclass
class Cell:
    state: str  # equal, explained, unexplained
    reason: str = ""  # the key of the difference that explains it
    where: str = ""  # the first difference
    theirs: str = ""
    ours: str = ""


def categories(at_peak):
    """The same categories on both sides."""
    out = {name: at_peak.get(name, 0) for name in _CATEGORIES}
    out["activations"] += at_peak.get("other", 0)
    return {name: size for name, size in out.items() if size}


def _line(collective):
    if collective is None:
        return "(no further collective)"
    return "%(phase)s: %(kind)s of %(unit)s, %(bytes)d bytes, %(dtype)s, %(group)d ranks" % collective


def _first_difference(theirs, ours, column):
    """(where, their line, our line), or None if the column is equal."""
    if column == "present":
        def count(log):
            return (sum(len(s["collectives"]) for s in log["steps"]), sum(s["allocations"] for s in log["steps"]))
        if min(count(theirs) + count(ours)) > 0:
            return None
        return ("", *("%d collectives, %d allocations" % count(log) for log in (theirs, ours)))
    if column == "categories":
        if (a := categories(theirs["at_peak"])) == (b := categories(ours["at_peak"])):
            return None
        differing = [n for n in _CATEGORIES if a.get(n, 0) != b.get(n, 0)]
        return ("at the peak", *(", ".join("%s %d" % (n, side.get(n, 0)) for n in differing) for side in (a, b)))
    for number, (a, b) in enumerate(zip(theirs["steps"], ours["steps"])):
        if column == "peak":
            if a["peak"] != b["peak"]:
                return ("step %d" % number, "%d bytes" % a["peak"], "%d bytes" % b["peak"])
            continue
        left, right = a["collectives"], b["collectives"]
        for place in range(max(len(left), len(right))):
            one = left[place] if place < len(left) else None
            other = right[place] if place < len(right) else None
            if one is None or other is None or one[column] != other[column]:
                return ("step %d, collective %d" % (number, place), _line(one), _line(other))
    return None


def compare(configuration, theirs, ours):
    """{column: Cell}"""
    cells = {}
    for column in COLUMNS:
        unseen = [d for d in differences.TABLE
                  if d.mend is differences.not_compared and column in d.columns and d.applies(configuration)]
        if unseen:
            cells[column] = Cell("explained", unseen[0].key)
            continue
        found = _first_difference(theirs, ours, column)
        if found is None:
            cells[column] = Cell("equal")
            continue
        cell = Cell("unexplained", "", *found)
        # What the differences say must be all that differs: they are mended one after the other until it is equal.
        mended, counterpart = copy.deepcopy(theirs), copy.deepcopy(ours)
        for difference in differences.TABLE:
            if column not in difference.columns or not difference.applies(configuration):
                continue
            difference.mend(configuration, mended, counterpart)
            if _first_difference(mended, counterpart, column) is None:
                cell.state, cell.reason = "explained", difference.key
                break
        cells[column] = cell
    return cells


def _other(value, choices):
    return choices[0] if value != choices[0] else choices[1]


_PLANTS: dict[str, Callable] = {
    "kind": lambda one: one.update(kind=_other(one["kind"], ("all_gather", "all_reduce"))),
    "bytes": lambda one: one.update(bytes=one["bytes"] + 4),
    "dtype": lambda one: one.update(dtype=_other(one["dtype"], ("fp32", "bf16"))),
    "group": lambda one: one.update(group=one["group"] + 1),
    "unit": lambda one: one.update(unit=one["unit"] + "'"),
    "phase": lambda one: one.update(phase=_other(one["phase"], ("forward", "backward"))),
}


def planted(log, column):
    """The log with an error in one column, which the comparison must find."""
    log = copy.deepcopy(log)
    last = log["steps"][-1]
    if column == "present":
        for step in log["steps"]:
            step["allocations"] = 0
    elif column == "peak":
        last["peak"] -= 1  # some differences excuse a higher peak, none a lower one
    elif column == "categories":
        log["at_peak"]["activations"] = log["at_peak"].get("activations", 0) - 1
    elif last["collectives"]:
        _PLANTS[column](last["collectives"][-1])
    return log
