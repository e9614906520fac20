"""Compares shardscope-train's dry run with what PyTorch does; scripts/fidelity.sh starts it."""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import sys
import time

import compare
import configurations
import differences
import logs
import shardscope

HERE = pathlib.Path(__file__).resolve().parent
SHOWN = 40  # unexplained rows that are printed


def _arguments():
    parser = argparse.ArgumentParser(prog="scripts/fidelity.sh", description=__doc__)
    parser.add_argument("--tool", required=True, help="shardscope-train")
    parser.add_argument("--from-logs", nargs="*", metavar="FILE",
                        help="PyTorch's side from files (those of scripts/fidelity/logs) instead of a run of it")
    parser.add_argument("--write-logs", metavar="FOLDER", help="keep PyTorch's side, a file for each model")
    parser.add_argument("--only", metavar="REGEX", default="", help="configurations whose name contains this")
    parser.add_argument("--plant", choices=(*compare.COLUMNS, "all"), metavar="COLUMN",
                        help="an error in this column of PyTorch's side, which must be found; all: one after the other")
    parser.add_argument("--drawn", type=int, metavar="N",
                        help="compare the peaks of N random configurations of FSDP1 and FSDP2, to the byte")
    parser.add_argument("--seed", type=int, default=1, help="of --drawn (%(default)s)")
    parser.add_argument("--list", action="store_true", help="print the names of the configurations")
    parser.add_argument("--all-rows", action="store_true", help="print every unexplained row")
    return parser.parse_args()


def _from_logs(files):
    pairs = []
    for file in files or sorted((HERE / "logs").glob("*.jsonl.gz")):
        version, more = logs.read(file)
        if version != differences.VERSION:
            sys.exit("%s is of PyTorch %s, the table of differences of %s" % (file, version, differences.VERSION))
        pairs += more
    return pairs


def _from_pytorch(chosen):
    import oracle  # imports torch

    if oracle.VERSION != differences.VERSION:
        sys.exit("this is PyTorch %s, the table of differences is of %s" % (oracle.VERSION, differences.VERSION))
    pairs = []
    for number, configuration in enumerate(chosen):
        try:
            pairs.append((configuration, oracle.run(configuration)))
        except Exception as error:  # a configuration that PyTorch refuses is a row, not the end of the table
            pairs.append((configuration, {"failed": "%s: %s" % (type(error).__name__, str(error).split("\n")[0])}))
        if sys.stderr.isatty():
            print("\rPyTorch: %d of %d" % (number + 1, len(chosen)), end="", file=sys.stderr)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    return pairs


def _ours(tool, chosen):
    text = str(HERE.parents[1] / "README.md")

    def run(configuration):
        try:
            return shardscope.run(tool, configuration, text)
        except shardscope.Failed as error:
            return {"failed": str(error)}

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return list(pool.map(run, chosen))


def _compared(pairs, ours):
    """[(configuration, {column: Cell})]"""
    rows = []
    for (configuration, theirs), mine in zip(pairs, ours):
        if "failed" in theirs or "failed" in mine:
            cell = compare.Cell("unexplained", "", "", theirs.get("failed", "runs"), mine.get("failed", "runs"))
            for difference in differences.TABLE:
                if "runs" in difference.columns and difference.applies(configuration):
                    cell = compare.Cell("explained", difference.key)
            rows.append((configuration, {"runs": cell}))
        else:
            rows.append((configuration, compare.compare(configuration, theirs, mine)))
    return rows


def _table(rows):
    print("%-12s %8s %10s %12s" % ("column", "equal", "explained", "unexplained"))
    counts = collections.Counter((column, cell.state) for _, cells in rows for column, cell in cells.items())
    for column in ("runs", *compare.COLUMNS):
        states = [counts[column, state] for state in ("equal", "explained", "unexplained")]
        if any(states):
            print("%-12s %8d %10d %12d" % (column, *states))
    worst = collections.Counter(_worst(cells) for _, cells in rows)
    print("%-12s %8d %10d %12d" % ("together", worst["equal"], worst["explained"], worst["unexplained"]))
    print("\n%d configurations: a configuration is together what the worst of its columns is" % len(rows))
    reasons = collections.Counter()
    for _, cells in rows:
        reasons.update({cell.reason for cell in cells.values() if cell.reason})
    if reasons:
        print("\nexplained (PyTorch %s)" % differences.VERSION)
    for difference in differences.TABLE:
        if reasons[difference.key]:
            print("%6d  %s: %s" % (reasons[difference.key], difference.key, difference.reason))


def _worst(cells):
    states = {cell.state for cell in cells.values()}
    return next(state for state in ("unexplained", "explained", "equal") if state in states)


def _unexplained(rows, most):
    # Of a configuration whose collectives differ, the first column says it.
    shown = 0
    for configuration, cells in rows:
        bad = [(column, cell) for column, cell in cells.items() if cell.state == "unexplained"]
        if not bad:
            continue
        shown += 1
        if shown > most:
            continue
        print("\n%s\n  differs in %s" % (configuration.name, ", ".join(column for column, _ in bad)))
        lines = []
        for column, cell in bad:
            line = "  %s\n    PyTorch %s\n    ours    %s" % (cell.where or column, cell.theirs, cell.ours)
            if line not in lines:
                lines.append(line)
        print("\n".join(lines))
    if shown > most:
        print("\n... and %d more (--all-rows)" % (shown - most))


def _plant(pairs, ours, rows, column):
    """Whether the error in the column is found in every configuration in which it was equal."""
    errors = [(c, log if "failed" in log else compare.planted(log, column)) for c, log in pairs]
    found = expected = 0
    for (_, log), (_, error), (_, before), (_, after) in zip(pairs, errors, rows, _compared(errors, ours)):
        if error != log and column in before and before[column].state == "equal":
            expected += 1
            found += after[column].state == "unexplained"
    print("%-12s planted in %d configurations, found in %d" % (column, expected, found))
    return expected > 0 and found == expected


# Peaks of one configuration may differ by this much.
MOST_OFF = 0.01
EQUAL_SHARE = 0.95


def _peaks(pairs, ours, seed):
    """Prints how many peaks are equal to the byte, and those that are not; whether they are good enough."""
    left_out = [(c, log["failed"]) for (c, theirs), mine in zip(pairs, ours) for log in (theirs, mine) if "failed" in log]
    both = [(c, a, b) for (c, a), b in zip(pairs, ours) if "failed" not in a and "failed" not in b]
    summed_first = next(d for d in differences.TABLE if d.key == "no-shard-accumulation")
    left_out += [(c, summed_first.key + ": " + summed_first.reason) for c, _, _ in both if summed_first.applies(c)]
    both = [row for row in both if not summed_first.applies(row[0])]
    off = []
    for c, theirs, mine in both:
        # Ours keeps the loss of each micro-batch on the device (differences.py, "losses").
        losses = 8 * c.accumulation if c.accumulation > 1 else 0
        one, other = (max(step["peak"] for step in log["steps"]) for log in (theirs, mine))
        if one != other - losses:
            off.append(((other - losses) / one - 1, c, one, other - losses))
    off.sort(key=lambda row: -abs(row[0]))
    equal = len(both) - len(off)
    print("%d of %d peaks are equal to the byte (%.1f %%), seed %d; the losses of micro-batches, 8 bytes each, aside"
          % (equal, len(both), 100 * equal / len(both), seed))
    for part, c, one, other in off:
        print("  %+8.3f %%  PyTorch %10d bytes, ours %10d bytes  %s" % (100 * part, one, other, c.name))
    for c, reason in left_out:
        print("  not compared: %s: %s" % (c.name, reason))
    return equal >= EQUAL_SHARE * len(both) and all(abs(row[0]) <= MOST_OFF for row in off)


def main():
    options = _arguments()
    all_of_them = configurations.drawn(options.drawn, options.seed) if options.drawn else configurations.configurations()
    chosen = [c for c in all_of_them if re.search(options.only, c.name)]
    if options.list:
        print("\n".join(c.name for c in chosen))
        return 0
    begin = time.monotonic()
    if options.from_logs is not None:
        pairs = [(c, log) for c, log in _from_logs(options.from_logs) if re.search(options.only, c.name)]
    else:
        pairs = _from_pytorch(chosen)
    after_pytorch = time.monotonic()
    if not pairs:
        sys.exit("no configuration is chosen")
    if options.write_logs:
        folder = pathlib.Path(options.write_logs)
        folder.mkdir(parents=True, exist_ok=True)
        for model in configurations.MODELS:
            of_model = [(c, log) for c, log in pairs if c.model == model and "failed" not in log]
            logs.write(folder / (model + ".jsonl.gz"), differences.VERSION, of_model)
    ours = _ours(options.tool, [c for c, _ in pairs])
    if options.drawn:
        return 0 if _peaks(pairs, ours, options.seed) else 1
    rows = _compared(pairs, ours)
    if options.plant:
        columns = compare.COLUMNS if options.plant == "all" else (options.plant,)
        return 0 if all([_plant(pairs, ours, rows, column) for column in columns]) else 1
    _table(rows)
    _unexplained(rows, len(rows) if options.all_rows else SHOWN)
    print("\n%.0f s of PyTorch, %.0f s of shardscope-train" % (after_pytorch - begin, time.monotonic() - after_pytorch))
    return 1 if any(_worst(cells) == "unexplained" for _, cells in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
