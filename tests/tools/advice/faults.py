#!/usr/bin/env python3
"""Makes runs with one injected fault each, and checks that advice names it first.

    faults.py --train shardscope-train --trace shardscope-trace --samples samples [--seed N]

Draws from the seed: what is trained, on which simulated cluster, by how many ranks, and how strong the fault is. A
time fault counts only where the simulation itself says that the run without it is healthy (the device computes for at
least 85 % of the step) and that the fault makes the step at least a tenth longer. What a simulation has no words for is
written by hand: memory snapshots (fragmentation, uneven ranks, out of memory) and a Kineto trace (pageable copies). Two
runs are of the cpu device: what they show does not depend on its speed.

Prints a table; exit status 1 where the true cause is first in less than 90 %, or a healthy run has a serious card.
"""
import argparse
import json
import pathlib
import pickle
import random
import re
import subprocess
import sys
import tempfile

WANTED_SHARE = 0.9
HEALTHY_RUNS = 10
HEALTHY_BUSY = 0.85  # of the step: the device computes
HEALTHY_SHOWN = 0.06  # of the step: communication that nothing hides
STRONG = 1.1  # times the healthy step
TRIES = 200


class Tools:
    def __init__(self, arguments, folder):
        self.train_path, self.trace_path = arguments.train, arguments.trace
        self.samples, self.folder = pathlib.Path(arguments.samples), folder
        self.count = 0

    def file(self, suffix):
        self.count += 1
        return str(self.folder / f"{self.count}{suffix}")

    def train(self, words, wanted=(0,)):
        done = subprocess.run([self.train_path, *words, "--format", "json"], capture_output=True, text=True, timeout=120)
        if done.returncode not in wanted:
            return None
        return json.loads(done.stdout) if done.stdout.startswith("{") else {}

    def trace(self, verb, files):
        done = subprocess.run([self.trace_path, verb, *files, "--format", "json"], capture_output=True, text=True,
                              timeout=120)
        if done.returncode != 0:
            raise RuntimeError(f"shardscope-trace {verb} {' '.join(files)}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def advice(self, files):
        """The cards; a straggler that is not the latest rank of `stragglers` is an error."""
        findings = self.trace("advice", files)["findings"]
        for card in findings:
            if card["id"] == "straggler":
                advised = next(figure["value"] for figure in card["figures"] if figure["name"] == "rank")
                latest = self.trace("stragglers", files)["ranks"][0]["rank"]
                if advised != latest:
                    raise RuntimeError(f"advice calls rank {advised} the straggler, stragglers rank {latest}")
        return findings

    def cluster(self, name, changes):
        """A copy of a shipped cluster's file with some figures changed: {("host", "launch"): f(old)}."""
        text, section, lines = (self.samples / "clusters" / f"{name}.toml").read_text(), "", []
        for line in text.splitlines():
            if match := re.match(r"\[(\w+)\]", line):
                section = match[1]
                lines.append(line)
                lines += [f"{key} = {change(0)!r}" for (s, key), change in changes.items()
                          if s == section and not re.search(rf"^{key}\s*=", text.split(f"[{section}]")[1].split("\n[")[0],
                                                            re.M)]
                continue
            if (match := re.match(r"(\w+)\s*=\s*([0-9.e+-]+)", line)) and (section, match[1]) in changes:
                line = f"{match[1]} = {changes[section, match[1]](float(match[2]))!r}"
            lines.append(line)
        path = self.file(".toml")
        pathlib.Path(path).write_text("\n".join(lines) + "\n")
        return path


# --- jobs --------------------------------------------------------------------------------------------------------

JOB = """
[run]
steps = 3
device = "sim"
[data]
type = "text"
workers = 2
[optimizer]
type = "adamw"
lr = 0.0003
"""


class Job:
    """A job as overrides, and a short description of it."""

    def __init__(self, **keys):
        self.keys = keys

    def but(self, **keys):
        return Job(**{**self.keys, **keys})

    def words(self):
        return [f"--{key.replace('__', '.')}={value}" for key, value in self.keys.items()]

    def size(self):
        k = self.keys
        cluster = pathlib.Path(str(k["sim__cluster"])).stem
        return (f"{k['model__type']} {k['model__layers']}x{k['model__width']}, batch {k['data__batch']}x"
                f"{k['model__context']}, {k['run__ranks']} ranks"
                + ("" if cluster.isdigit() else f" of {cluster}"))


def draw_job(rng, clusters=("h100_ib", "h200_nvlink", "a100"), ranks=(2, 4, 8), widths=(2048, 3072, 4096, 5120),
             batches=(1, 2, 4, 8), **keys):
    width = rng.choice(widths)
    count, kind = rng.choice(ranks), rng.choice(["gpt", "llama"])
    return Job(**{"model__type": kind, "model__width": width, "model__heads": width // 128,
                  "model__layers": rng.choice([4, 6, 8, 12]), "model__context": rng.choice([1024, 2048]),
                  "model__vocabulary": rng.choice([8192, 32000]), "data__batch": rng.choice(batches),
                  "run__ranks": count, "sim__trace_ranks": count, "sim__cluster": rng.choice(clusters),
                  "precision__param": "bf16", "parallel__mode": "fsdp",
                  "fsdp__wrap": "module:" + ("Block" if kind == "gpt" else "LlamaBlock"), **keys})


def busy(result):
    last = result["simulation"]["last_step"]
    return last["kernel_us"] / last["us"]


def healthy(result):
    last = result["simulation"]["last_step"]
    return busy(result) >= HEALTHY_BUSY and last["exposed_communication_us"] <= HEALTHY_SHOWN * last["us"]


# --- faults of simulated runs: (healthy job, job with the fault, strength in words) -----------------------------------

def slow_rank(rng, tools):
    job, factor = draw_job(rng), round(rng.uniform(1.25, 2.5), 2)
    return job, job.but(sim__slow_rank=f"{rng.randrange(job.keys['run__ranks'])}:{factor}"), f"{factor} times"


def slow_link(rng, tools):
    job, share = draw_job(rng, clusters=("h100_ib",), ranks=(16, 24)), round(rng.uniform(0.02, 0.3), 3)
    where = rng.choice(["inter", "inter@1", "inter@0"])
    return job, job.but(sim__slow_link=f"{where}:{share}"), f"{where} at {100 * share:.1f} %"


def slow_network(rng, tools):
    factor = round(rng.uniform(4, 20), 1)
    job = draw_job(rng, clusters=("h100_ib",), ranks=(16,))
    slow = tools.cluster("h100_ib", {("inter", "bandwidth"): lambda old: old / factor})
    return job, job.but(sim__cluster=slow), f"bandwidth / {factor}"


def no_prefetch(rng, tools):
    job = draw_job(rng, ranks=(4, 8, 16), clusters=("h100_ib", "a100"))
    return job, job.but(fsdp__backward_prefetch="NONE"), "off"


def root_wrap(rng, tools):
    job = draw_job(rng, ranks=(4, 8, 16), clusters=("h100_ib", "a100"))
    return job, job.but(fsdp__wrap="root"), "1 unit"


def fine_wrap(rng, tools):
    kinds = rng.choice(["Linear", "Linear,Embedding", "Linear,LayerNorm,RMSNorm"])
    job = draw_job(rng, ranks=(8, 16, 32, 64), clusters=("h100_ib", "a100", "v100_pcie"), widths=(512, 768, 1024, 2048))
    return job, job.but(fsdp__wrap=f"module:{kinds}"), kinds


def slow_host(rng, tools):
    job, factor = draw_job(rng), round(rng.uniform(4, 30), 1)
    slow = tools.cluster(job.keys["sim__cluster"],
                         {("host", "operation"): lambda old: old * factor, ("host", "launch"): lambda old: old * factor})
    return job, job.but(sim__cluster=slow), f"{factor} times"


def slow_loader(rng, tools):
    job, rate = draw_job(rng), round(10 ** rng.uniform(5, 6.5))
    slow = tools.cluster(job.keys["sim__cluster"], {("host", "batch_bandwidth"): lambda old: float(rate)})
    return job, job.but(sim__cluster=slow, data__workers=0), f"{rate / 1e6:.2f} MB/s"


def offload(rng, tools):
    job = draw_job(rng)
    return job, job.but(fsdp__cpu_offload="true"), "on"


def late_reduction(rng, tools):
    job = draw_job(rng, ranks=(4, 8, 16), clusters=("h100_ib", "a100"), parallel__mode="ddp", fsdp__wrap="root",
                   model__layers=rng.choice([4, 6]), precision__param="fp32", precision__tf32="true")
    return job, job.but(ddp__bucket_cap_mb=100000, ddp__first_bucket_mb=100000), "1 bucket"


def full_device(rng, tools):
    """The device's memory is the healthy run's reservation plus a few percent: no time is lost."""
    job = draw_job(rng)
    result = tools.train([str(tools.job), *job.words()])
    if result is None:
        return None
    spare = round(rng.uniform(1.005, 1.08), 3)
    reserved = max(rank["reserved_bytes"] for rank in result["ranks"])
    full = tools.cluster(job.keys["sim__cluster"], {("device", "memory"): lambda old: reserved * spare})
    return job, job.but(sim__cluster=full), f"{100 / spare:.0f} % held"


# --- faults that are written by hand: (files, size, strength) ---------------------------------------------------------

def snapshot(tools, live, segments, failed=0):
    """Blocks of (segment, offset, bytes) that are allocated in this order and never freed."""
    base = 1 << 40
    address = [base + i * (1 << 36) for i in range(len(segments))]
    trace = [{"action": "segment_alloc", "addr": address[i], "size": size, "stream": 0, "time_us": 10 + i, "frames": []}
             for i, size in enumerate(segments)]
    trace += [{"action": "alloc", "addr": address[s] + offset, "size": size, "stream": 0, "time_us": 1000 + i,
               "frames": []} for i, (s, offset, size) in enumerate(live)]
    if failed:
        trace.append({"action": "oom", "addr": 1 << 20, "size": failed, "stream": 0, "time_us": 5000 + len(live),
                      "frames": []})
    parts = []
    for i, total in enumerate(segments):
        blocks, end = [], 0
        for offset, size in sorted((o, b) for s, o, b in live if s == i):
            if offset > end:
                blocks.append({"address": address[i] + end, "size": offset - end, "requested_size": 0,
                               "state": "inactive", "frames": []})
            blocks.append({"address": address[i] + offset, "size": size, "requested_size": size,
                           "state": "active_allocated", "frames": []})
            end = offset + size
        if end < total:
            blocks.append({"address": address[i] + end, "size": total - end, "requested_size": 0, "state": "inactive",
                           "frames": []})
        used = sum(b["size"] for b in blocks if b["state"] == "active_allocated")
        parts.append({"device": 0, "address": address[i], "total_size": total, "allocated_size": used,
                      "active_size": used, "requested_size": used, "stream": 0, "segment_type": "large",
                      "segment_pool_id": (0, 0), "is_expandable": False, "frames": [], "blocks": blocks})
    path = tools.file(".pickle")
    with open(path, "wb") as out:
        pickle.dump({"segments": parts, "device_traces": [trace], "allocator_settings": {}}, out, protocol=2)
    return path


def fragmentation(rng, tools):
    segments, block, share = rng.randrange(20, 80), rng.choice([8, 16, 32]) << 20, rng.uniform(0.3, 0.7)
    live = [(s, 0, int(block * share) // 512 * 512) for s in range(segments)]
    return [snapshot(tools, live, [block] * segments)], f"{segments} segments of {block >> 20} MiB", f"{100 * (1 - share):.0f} % free"


def uneven_ranks(rng, tools):
    ranks, usual, factor = rng.choice([4, 8]), rng.choice([64, 256, 1024]) << 20, round(rng.uniform(1.4, 3), 2)
    fullest, files = rng.randrange(ranks), []
    for rank in range(ranks):
        size = int(usual * (factor if rank == fullest else 1)) // 512 * 512
        path = snapshot(tools, [(0, 0, size)], [size])
        named = pathlib.Path(path).with_name(f"{pathlib.Path(path).stem}_rank{rank}.pickle")
        pathlib.Path(path).rename(named)
        files.append(str(named))
    return files, f"{ranks} ranks of {usual >> 20} MiB", f"{factor} times"


def out_of_memory(rng, tools):
    segments, block = rng.randrange(4, 40), 256 << 20
    live = [(s, 0, block // 4 * 3) for s in range(segments)]
    failed = rng.choice([300, 500, 800]) << 20
    return [snapshot(tools, live, [block] * segments, failed)], f"{segments} segments", f"{failed >> 20} MiB asked for"


def limiter(rng, tools):
    """FSDP1's forwards: units of much compute before units of little, whose gathers the limiter keeps from running ahead.

    What happens is computed here: a gather starts when the host has launched it and the gather before it has ended; the
    limiter holds the host until the unit before the last has computed.
    """
    large, small = rng.randrange(4, 8), rng.randrange(6, 12)
    gather = rng.randrange(3000, 6000)
    compute = [gather * rng.uniform(2.2, 3)] * large + [gather * rng.uniform(0.2, 0.5)] * small
    launch = 20.0

    def schedule(limited, begin=0.0):
        units, host, wire, device, ends = [], begin, begin, begin, []
        for length in compute:
            called = host
            if limited and len(ends) >= 2:
                host = max(host, ends[-2])
            released = host
            start = max(host + launch, wire)
            wire = start + gather
            first = max(host + 2 * launch, device, wire)
            device = first + length
            ends.append(device)
            units.append((called, released, start, first, length))
            host += 3 * launch
        return units, max(host, device)

    trace, begin, correlation = Kineto(), 1000.0, 0
    for step in range(4):
        units, end = schedule(True, begin)
        for i, (called, released, start, first, length) in enumerate(units):
            after = released + 3 * launch
            trace.event("python_function", f"nn.Module: FullyShardedDataParallel_{i}", called, after - called, 9)
            trace.event("user_annotation", "FullyShardedDataParallel.forward", called + 0.1, after - called - 0.2, 9)
            trace.event("user_annotation", "FullyShardedDataParallel.rate_limiter", called + 1, released - called + 1, 9)
            trace.event("cuda_runtime", "cudaEventSynchronize", called + 1.2, released - called + 0.5, 9, correlation=0)
            for name, launched, begun, lasts, stream in (("ncclDevKernel_AllGather_RING_LL", released + 5, start, gather, 20),
                                                         ("gemm", released + launch, first, length, 7)):
                correlation += 1
                if stream == 7:
                    trace.event("cuda_runtime", "cudaStreamWaitEvent", launched - 3, 2, 9, correlation=0)
                    trace.event("cpu_op", "aten::mm", launched - 0.5, 8, 9)
                trace.event("cuda_runtime", "cudaLaunchKernel", launched, 5, 9, correlation=correlation)
                trace.event("kernel", name, begun, lasts, stream, correlation=correlation, device=0, stream=stream)
        trace.event("cuda_runtime", "cudaDeviceSynchronize", after, max(1.0, end - after), 9, correlation=0)
        trace.event("user_annotation", f"ProfilerStep#{step}", begin - 1, end + 2 - begin, 9)
        begin = end + 10
    slower = schedule(True)[1] / schedule(False)[1]
    return [trace.write(tools)], f"{large} large, {small} small units", f"on: {100 * (slower - 1):+.0f} %"


class Kineto:
    def __init__(self):
        self.events = []

    def event(self, category, name, start, length, tid, **arguments):
        pid = 0 if category in ("kernel", "gpu_memcpy") else 9
        self.events.append({"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": start, "dur": length,
                            "args": arguments})

    def write(self, tools):
        path = tools.file(".json")
        pathlib.Path(path).write_text(json.dumps({
            "schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "GPU", "totalGlobalMem": 80_000_000_000}],
            "traceEvents": self.events}))
        return path


def pageable_copies(rng, tools):
    """Each step copies its batch with a blocking cudaMemcpy from pageable memory, then computes."""
    compute, copy, kernels = rng.randrange(4000, 40000), rng.uniform(0.15, 0.8), rng.randrange(20, 60)
    trace, copy_us, now, correlation = Kineto(), compute * copy, 1000.0, 0
    event = trace.event
    for step in range(4):
        begin = now
        correlation += 1
        event("cuda_runtime", "cudaMemcpy", now, copy_us + 20, 9, correlation=correlation)
        event("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", now + 10, copy_us, 7, correlation=correlation, device=0,
              stream=7, bytes=int(copy_us * 3000))
        now += copy_us + 25
        device = now + 10
        for _ in range(kernels):
            correlation += 1
            event("cuda_runtime", "cudaLaunchKernel", now, 5, 9, correlation=correlation)
            event("kernel", "gemm", device, compute / kernels - 1, 7, correlation=correlation, device=0, stream=7)
            now, device = now + 6, device + compute / kernels
        event("cuda_runtime", "cudaDeviceSynchronize", now, max(1.0, device - now), 9, correlation=0)
        now = max(now, device) + 5
        event("user_annotation", f"ProfilerStep#{step}", begin, now - begin, 9)
        now += 2
    return [trace.write(tools)], f"{kernels} kernels in {compute / 1000:.0f} ms", f"{copy_us / 1000:.1f} ms"


# --- faults of the cpu device: configuration and memory, independent of the speed --------------------------------------

def loader_alone(rng, tools):
    """Tiny layers on a huge batch: making the batch takes most of the step on any machine."""
    path, batch = tools.file(".sqlite"), rng.choice([100_000, 150_000])
    words = [str(tools.samples / "mlp.toml"), "--run.steps=4", "--model.layers=2", "--model.width=2", "--run.ranks=1",
             f"--data.batch={batch}", "--trace", path]
    return ([path], f"mlp 2x2, batch {batch}, cpu", "no worker") if tools.train(words) is not None else None


def memory_limit(rng, tools):
    path = tools.file(".sqlite")
    words = [str(tools.samples / "mlp.toml"), "--run.steps=3", "--model.width=128", "--run.ranks=2",
             f"--run.memory_limit={rng.randrange(550, 700) * 1000}", "--trace", path]
    return ([path], "mlp 8x128, 2 ranks, cpu", "limit") if tools.train(words, wanted=(1,)) is not None else None


# (name, number of runs, ids of the true cause, function)
SIMULATED = [
    ("slow rank", 5, {"straggler"}, slow_rank),
    ("slow link", 3, {"slow-link"}, slow_link),
    ("slow network", 2, {"exposed-communication"}, slow_network),
    ("no prefetch", 3, {"prefetch-off"}, no_prefetch),
    ("root wrap", 3, {"wrap-too-coarse"}, root_wrap),
    ("too fine wrap", 2, {"wrap-too-fine"}, fine_wrap),
    ("host-bound", 3, {"host-bound"}, slow_host),
    ("data loader", 3, {"data-loader"}, slow_loader),
    ("offload", 3, {"copies-on-path"}, offload),
    ("exposed reduce", 2, {"late-reduction"}, late_reduction),
    ("full device", 1, {"memory-near-limit"}, full_device),
]
WRITTEN = [
    ("fragmentation", 1, {"fragmentation"}, fragmentation),
    ("uneven shards", 1, {"uneven-ranks"}, uneven_ranks),
    ("out of memory", 1, {"out-of-memory"}, out_of_memory),
    ("limiter", 2, {"limiter-stall"}, limiter),
    ("pageable copies", 2, {"copies-on-path"}, pageable_copies),
    ("data loader, measured", 1, {"data-loader"}, loader_alone),
    ("memory limit", 1, {"out-of-memory"}, memory_limit),
]


def simulated(rng, tools, fault):
    for _ in range(TRIES):
        drawn = fault(rng, tools)
        if drawn is None:
            continue
        job, bad, strength = drawn
        before, path = tools.train([str(tools.job), *job.words()]), tools.file(".sqlite")
        if before is None or not healthy(before):
            continue
        after = tools.train([str(tools.job), *bad.words()])
        if after is None:
            continue
        slower = after["simulation"]["last_step"]["us"] / before["simulation"]["last_step"]["us"]
        if slower < STRONG and fault is not full_device:
            continue
        if tools.train([str(tools.job), *bad.words(), "--trace", path]) is None:
            continue
        return [path], job.size(), f"{strength}: {100 * (slower - 1):+.0f} %"
    return None


def rank_of(findings, causes):
    for place, finding in enumerate(findings, 1):
        if finding["id"] in causes:
            return place
    return 0


def run(arguments, folder):
    tools = Tools(arguments, folder)
    tools.job = folder / "job.toml"
    tools.job.write_text(JOB)
    print(f"seed {arguments.seed}")
    print(f"{'fault':<21}{'size':<52}{'strength':<28}{'rank':>4}  first card")
    right = count = alarms = 0
    kinds = [(name, runs, causes, fault, True) for name, runs, causes, fault in SIMULATED]
    kinds += [(name, runs, causes, fault, False) for name, runs, causes, fault in WRITTEN]
    for name, runs, causes, fault, by_simulation in kinds:
        for i in range(runs):
            if arguments.only and arguments.only not in name:
                continue
            rng = random.Random(f"{arguments.seed} {name} {i}")
            drawn = simulated(rng, tools, fault) if by_simulation else fault(rng, tools)
            if drawn is None:
                print(f"{name}: no run of {TRIES} drawn is healthy without it and ill with it", file=sys.stderr)
                return 1
            files, size, strength = drawn
            findings = tools.advice(files)
            place, count = rank_of(findings, causes), count + 1
            right += place == 1
            first = f"{findings[0]['weight']}: {findings[0]['id']}" if findings else "none"
            print(f"{name:<21}{size:<52}{strength:<28}{place or '-':>4}  {first}", flush=True)
            if arguments.verbose or place != 1:
                for finding in findings:
                    print(f"    {finding['weight']} {finding['id']}: {finding['what']} [{finding['expected']}]")
    for i in range(0 if arguments.only else HEALTHY_RUNS):
        rng = random.Random(f"{arguments.seed} healthy {i}")
        for _ in range(TRIES):
            job = draw_job(rng, ranks=(2, 4, 8, 16) if i % 2 else (4, 8), clusters=("h100_ib", "a100"),
                           fsdp__sharding_strategy=rng.choice(["FULL_SHARD", "SHARD_GRAD_OP"]),
                           fsdp__layout=rng.choice(["fsdp1", "fsdp2", "lean"]))
            if job.keys["fsdp__layout"] == "fsdp2":
                job = job.but(fsdp__limit_all_gathers="false")
            path = tools.file(".sqlite")
            result = tools.train([str(tools.job), *job.words(), "--trace", path])
            if result is None or not healthy(result):
                continue
            held = max(rank["reserved_bytes"] for rank in result["ranks"])
            if held < 0.8 * 40e9:
                break
        else:
            print(f"none (healthy): no run of {TRIES} drawn is healthy", file=sys.stderr)
            return 1
        findings = tools.advice([path])
        serious = [finding["id"] for finding in findings if finding["weight"] == "serious"]
        alarms += bool(serious)
        first = f"{findings[0]['weight']}: {findings[0]['id']}" if findings else "none"
        print(f"{'none (healthy)':<21}{job.size():<52}{job.keys['fsdp__layout'] + ' ' + job.keys['fsdp__sharding_strategy']:<28}{'':>4}  {first}",
              flush=True)
        if arguments.verbose or serious:
            for finding in findings:
                print(f"    {finding['weight']} {finding['id']}: {finding['what']} [{finding['expected']}]")
    share = right / count if count else 0
    print(f"{right} of {count} true causes first ({100 * share:.0f} %), {alarms} false alarms")
    return 0 if share >= WANTED_SHARE and alarms == 0 else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", required=True, help="the program shardscope-train")
    parser.add_argument("--trace", required=True, help="the program shardscope-trace")
    parser.add_argument("--samples", required=True, help="the folder samples")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="faults with this in their name")
    parser.add_argument("--verbose", action="store_true", help="all cards of each run")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return run(arguments, pathlib.Path(folder))


if __name__ == "__main__":
    sys.exit(main())
