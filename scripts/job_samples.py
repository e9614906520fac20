#!/usr/bin/env python3
"""Adds samples of played devices to a trace, for the pages that show them: see job_page.sh.

    scripts/job_samples.py TRACE.sqlite [--hosts N] [--gpus N] [--seconds S] [--period S] [--host NAME]

Each host has GPUs, of which the last does nothing and the second is throttled, an InfiniBand adapter and cores; the
ranks of the trace are on the first GPUs of the first host. Their times begin with the trace's and last S seconds."""

import argparse
import math
import sqlite3


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trace")
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--gpus", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--period", type=float, default=0.5)
    parser.add_argument("--host", default="", help="added to the last host's name")
    arguments = parser.parse_args()
    database = sqlite3.connect(arguments.trace)
    ranks = [row[0] for row in database.execute("SELECT rank FROM SHARD_RANKS ORDER BY rank")]
    next_id = database.execute("SELECT MAX(id) FROM StringIds").fetchone()[0] + 1
    ids = {}

    def text(value):
        nonlocal next_id
        if value not in ids:
            found = database.execute("SELECT id FROM StringIds WHERE value = ?", (value,)).fetchone()
            if found is None:
                database.execute("INSERT INTO StringIds(id, value) VALUES (?, ?)", (next_id, value))
                found = (next_id,)
                next_id += 1
            ids[value] = found[0]
        return ids[value]

    times = [i * arguments.period for i in range(int(arguments.seconds / arguments.period) + 1)]

    def counter(name, rank, host, device, value):
        database.executemany(
            "INSERT INTO SHARD_COUNTERS(time, rank, nameId, value, hostId, device) VALUES (?, ?, ?, ?, ?, ?)",
            ((int(t * 1e9), rank, text(name), value(t), text(host) if host else None, device) for t in times
             if not 0.62 < t / arguments.seconds < 0.66))

    database.execute("UPDATE SHARD_RANKS SET host = 'node-1'")
    for key, value in {"sampler.period_ns": int(arguments.period * 1e9), "run.device": "cuda",
                       "command": "torchrun --nproc-per-node 4 train.py --model 1b", "tool": "shardscope-record"}.items():
        database.execute("REPLACE INTO SHARD_RUN VALUES (?, ?)", (key, str(value)))
    for h in range(arguments.hosts):
        host = f"node-{h + 1}" + (arguments.host if h == arguments.hosts - 1 else "")
        for key, value in {"cpus": 64, "memory_bytes": 512 << 30}.items():
            database.execute("REPLACE INTO SHARD_RUN VALUES (?, ?)", (f"host.{host}.{key}", str(value)))
        for gpu in range(arguments.gpus):
            rank = ranks[gpu] if h == 0 and gpu < len(ranks) else -1
            prefix = "gpu_" if rank >= 0 else f"gpu{gpu}_"
            idle = gpu == arguments.gpus - 1
            start = 0.05 * arguments.seconds

            def busy(t, gpu=gpu, h=h, idle=idle, start=start):
                if idle or t < start or (h * arguments.gpus + gpu) % 7 == 5 and t > 0.8 * arguments.seconds:
                    return 0.0
                return max(0.0, min(100.0, 78 + 14 * math.sin(t / 11 + gpu) - 60 * (int(t) % 97 < 4) - 10 * h))

            def throttled(t, gpu=gpu):
                return 4 if gpu == 1 and 0.3 < t / arguments.seconds < 0.55 else 1

            database.execute("INSERT OR REPLACE INTO SHARD_DEVICES(host, kind, number, name, bus, numa, memory, powerLimit, visible)"
                             " VALUES (?, 'gpu', ?, 'NVIDIA H100 80GB HBM3', ?, ?, ?, 700, 1)",
                             (host, gpu, f"0000:{17 + gpu}:00.0", gpu // 2, 80 << 30))
            counter(prefix + "utilization_percent", rank, host, gpu, busy)
            counter(prefix + "power_watts", rank, host, gpu, lambda t, busy=busy: 72 + 5.6 * busy(t))
            counter(prefix + "memory_used_bytes", rank, host, gpu, lambda t, idle=idle: 500e6 if idle else 61e9)
            counter(prefix + "throttle_reasons_bits", rank, host, gpu, throttled)
            counter(prefix + "sm_clock_mhz", rank, host, gpu, lambda t, throttled=throttled: 1290 if throttled(t) == 4 else 1980)
            counter(prefix + "temperature_celsius", rank, host, gpu, lambda t, busy=busy: 34 + 0.35 * busy(t))
            counter(prefix + "nvlink_sent_bytes_per_second", rank, host, gpu, lambda t, busy=busy: 1.4e9 * busy(t))
        counter("host_cpu_cores", -1, host, None, lambda t: 9 + 2 * math.sin(t / 7))
        counter("host_memory_available_bytes", -1, host, None, lambda t: 300e9)
        database.execute("INSERT OR REPLACE INTO SHARD_DEVICES(host, kind, number, name, bandwidth, visible)"
                         " VALUES (?, 'infiniband', 0, 'mlx5_0', 50e9, 1)", (host,))
        for direction in ("sent", "received"):
            counter(f"infiniband_{direction}_bytes_per_second", -1, host, 0, lambda t: 21e9 + 9e9 * math.sin(t / 5))
    for rank in ranks:
        counter("process_cpu_cores", rank, None, None, lambda t, rank=rank: 1.6 + 0.2 * rank)
        counter("process_resident_bytes", rank, None, None, lambda t, rank=rank: 11e9 + 1e9 * rank)
    database.commit()


if __name__ == "__main__":
    main()
