"""What shardscope-train plans for a configuration: the collectives and allocations of its dry run."""

import json
import re
import subprocess
import tempfile

STEPS = 3  # compared: the first step, the second, and the third, which is steady on both sides

_ROW = re.compile(r"^ *(\d+)  (.{9})  (.{13})  (.{64})  (.{13})  (.{14})  (.*)$")


class Failed(Exception):
    """The tool refuses the job."""


def _number(text):
    """None where the column is empty."""
    text = text.strip().replace(",", "")
    return int(text) if text else None


def _sections(text):
    """(title, rows) of the plans that the dry run prints; a row is (phase, operation, bytes, allocated, unit, what)."""
    title, rows = "", []
    for line in text.splitlines():
        match = _ROW.match(line)
        if match:
            _, phase, _, operation, size, allocated, rest = match.groups()
            # The unit is padded to 12 characters, more if it is longer.
            unit, what = ("", rest[12:]) if not rest[:12].strip() else (re.split(" {2,}", rest, maxsplit=1) + [""])[:2]
            rows.append((phase.strip(), operation.strip(), _number(size), _number(allocated), unit, what.strip()))
        elif re.match(r"(Set-up|Step \d+|Steady step)", line):
            if title:
                yield title, rows
            title, rows = line, []
        elif line.startswith("Predicted peak"):
            break
    yield title, rows


def _collective(configuration, row):
    phase, operation, size, _, unit, what = row
    group = re.search(r"(world|shard|replicate) group", what).group(1)
    dtype = next((name for name in ("bf16", "fp64", "int32") if what.endswith(", " + name)), "fp32")
    sizes = {
        "world": configuration.ranks,
        "shard": configuration.shards,
        "replicate": configuration.ranks // configuration.shards,
    }
    unit = unit.replace("bucket of the first step", "bucket 0")
    return {"kind": operation, "bytes": size, "dtype": dtype, "group": sizes[group], "unit": unit, "phase": phase}


def _step(configuration, rows, live):
    collectives, peak = [], live
    allocations = 0
    for row in rows:
        operation = row[1]
        if operation in ("all_gather", "reduce_scatter", "all_reduce", "broadcast"):
            collectives.append(_collective(configuration, row))
        elif operation in ("allocate", "free") and row[3] is not None:  # device memory
            allocations += operation == "allocate"
            peak = max(peak, row[3])
            live = row[3]
    return {"collectives": collectives, "peak": peak, "allocations": allocations}, live


def run(tool, configuration, text_path):
    """{"steps": [...], "at_peak": {category: bytes}}; a step has its collectives, its peak and its allocations."""
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as job:
        job.write(configuration.job(text_path))
        job.flush()

        def dry_run(*options):
            done = subprocess.run([tool, job.name, "--dry-run", *options], capture_output=True, text=True)
            if done.returncode != 0:
                raise Failed(done.stderr.strip().replace(job.name, "JOB"))
            return done.stdout

        summary = json.loads(dry_run("--format", "json"))
        sections = list(_sections(dry_run()))
    live, plans = 0, []
    for title, rows in sections:
        step, live = _step(configuration, rows, live)
        if not title.startswith("Set-up"):
            plans.append(step)
    steps = [dict(plans[min(i, len(plans) - 1)]) for i in range(STEPS)]
    for step, peak in zip(steps, summary["step_peaks"]):
        step["peak"] = peak
    return {"steps": steps, "at_peak": summary["at_peak"], "where": summary["where"]}
