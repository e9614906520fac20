"""What PyTorch did, kept in a file: a line of JSON for each configuration, compressed; the first line is a header."""

import gzip
import json

import configurations

_FIELDS = ("phase", "kind", "unit", "bytes", "dtype", "group")
FORMAT = 1


def _packed(log):
    """A step that equals the one before it is null."""
    steps, before = [], None
    for step in log["steps"]:
        one = dict(step, collectives=[[c[f] for f in _FIELDS] for c in step["collectives"]])
        steps.append(None if one == before else one)
        before = one
    return {"steps": steps, "at_peak": log["at_peak"]}


def _unpacked(packed):
    steps = []
    for step in packed["steps"]:
        if step is not None:
            before = step
        steps.append(dict(before, collectives=[dict(zip(_FIELDS, c)) for c in before["collectives"]]))
    return {"steps": steps, "at_peak": packed["at_peak"]}


def write(path, version, pairs):
    """`pairs` of configuration and log; the same pairs give the same bytes."""
    lines = [{"format": FORMAT, "torch": version}]
    lines += [{"configuration": c.given(), **_packed(log)} for c, log in pairs]
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    with open(path, "wb") as file:
        file.write(gzip.compress(text.encode(), 9, mtime=0))


def read(path):
    """(PyTorch's version, [(configuration, log)])"""
    with gzip.open(path, "rt") as file:
        header = json.loads(next(file))
        if header.get("format") != FORMAT:
            raise SystemExit("%s: not a log of this script; write it again" % path)
        pairs = []
        for line in file:
            packed = json.loads(line)
            pairs.append((configurations.from_given(packed["configuration"]), _unpacked(packed)))
    return header["torch"], pairs
