#!/usr/bin/env bash
# Compares what the counters of a recording sum to with what the kernel says of the same time, and prints what sampling
# costs.
#
#   scripts/counters.sh [SECONDS]      3 by default; as root also the network, in a network namespace of its own
#
# cores x seconds: process_cpu_cores against the program's own getrusage(); disk: process_written_bytes_per_second
# against its /proc/self/io; network: ethernet_sent_bytes_per_second against the interface's tx_bytes. Fails if one is
# off by more than 2 %.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seconds=${1:-3}
bin=${BIN:-build/release/bin} # BIN: programs that are built already
[[ -n ${BIN:-} ]] || scripts/build.sh release -DSHARDSCOPE_BUILD_TESTS=ON shardscope-record shardscope-train job_program >&2
# On a disk: files of a tmpfs are never written to one.
folder=$(mktemp -d -p "${TMPDIR:-/var/tmp}")
namespace=
# shellcheck disable=SC2317 # the trap calls it
finish() {
    rm -rf "$folder"
    [[ -z $namespace ]] || ip netns delete "$namespace"
}
trap finish EXIT
status=0

# Rates times the time since the sample before, from the first ('0': from the start of the trace).
sum_of() {
    sqlite3 "$1" "SELECT printf('%.6f', total(value * (time_ns - before)) / 1e9) FROM (SELECT value, time_ns,
        coalesce(lag(time_ns) OVER (ORDER BY time_ns), $3) AS before FROM counters WHERE name = '$2')"
}
compare() { # WHAT SUM SAID
    awk -v what="$1" -v sum="$2" -v said="$3" 'BEGIN {
        off = said == 0 ? (sum == 0 ? 0 : 100) : 100 * (sum - said) / said
        printf "%-34s %16.3f %16.3f %+8.2f %%\n", what, sum, said, off
        exit off < -2 || off > 2
    }' || status=1
}

printf '%-34s %16s %16s %10s\n' "" counters kernel difference
said=$("$bin/shardscope-record" -o "$folder/run.sqlite" --no-cuda --no-nccl -- \
    "$bin/job_program" uses $((seconds * 1000)) "$folder/file" 2>"$folder/log")
read -r used written <<<"$said"
compare "processor, core seconds" "$(sum_of "$folder/run.sqlite" process_cpu_cores 0)" "$used"
compare "written to disk, MB" "$(sum_of "$folder/run.sqlite" process_written_bytes_per_second 0 | awk '{ print $1 / 1e6 }')" \
    "$(awk -v b="$written" 'BEGIN { print b / 1e6 }')"

if ((EUID == 0)) && command -v ip >/dev/null && ip netns add "shardscope-$$" 2>/dev/null; then
    namespace=shardscope-$$
    ip link add "ss$$" type veth peer name sent netns "$namespace"
    ip addr add 10.213.0.1/30 dev "ss$$"
    ip link set "ss$$" up
    ip netns exec "$namespace" ip addr add 10.213.0.2/30 dev sent
    ip netns exec "$namespace" ip link set sent up
    # The traffic lies between two samples: the program waits before and after it.
    cat >"$folder/send.py" <<'PY'
import socket, sys, threading, time
listener = socket.create_server(("10.213.0.2", 0))
file = "/sys/class/net/sent/statistics/tx_bytes"
time.sleep(0.5)
before = int(open(file).read())
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end, block = time.monotonic() + float(sys.argv[1]), b"x" * 1400
while time.monotonic() < end:
    for _ in range(100):
        sender.sendto(block, ("10.213.0.1", 9))
    time.sleep(0.002)
time.sleep(0.3)
print(int(open(file).read()) - before)
PY
    sent=$(ip netns exec "$namespace" "$bin/shardscope-record" -o "$folder/net.sqlite" --no-cuda --no-nccl -- \
        python3 "$folder/send.py" "$seconds" 2>>"$folder/log")
    first=$(sqlite3 "$folder/net.sqlite" "SELECT min(time_ns) FROM counters WHERE name = 'ethernet_sent_bytes_per_second'")
    compare "sent by Ethernet, MB" "$(sum_of "$folder/net.sqlite" ethernet_sent_bytes_per_second "$first" | awk '{ print $1 / 1e6 }')" \
        "$(awk -v b="$sent" 'BEGIN { print b / 1e6 }')"
else
    echo "network: left out; it takes root, and the right to make a network namespace"
fi

# What sampling costs: processor time of the recorder, with and without counters, around a program that sleeps.
cost() {
    python3 - "$seconds" "$bin/shardscope-record" -o "$folder/cost$1.sqlite" --no-cuda --no-nccl "$1" -- sleep "$seconds" <<'PY'
import resource, subprocess, sys
subprocess.run(sys.argv[2:], stderr=subprocess.DEVNULL, check=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(f"{1000 * (used.ru_utime + used.ru_stime) / float(sys.argv[1]):.1f}", end="")
PY
}
# In the trainer: what the kernel says that its threads took (the first figure of schedstat, in nanoseconds).
cat >"$folder/job.toml" <<'TOML'
[run]
steps = 1000000
workers = 1
[model]
type = "mlp"
width = 512
layers = 4
[data]
batch = 64
TOML
thread_cost() {
    "$bin/shardscope-train" "$folder/job.toml" --trace "$folder/train.sqlite" >"$folder/train.log" 2>&1 &
    local job=$! thread=
    # shellcheck disable=SC2064 # this job, now
    trap "kill $job 2>/dev/null || true" EXIT
    for ((i = 0; i < 100; ++i)); do
        for file in "/proc/$job/task"/*/comm; do
            [[ $(cat "$file" 2>/dev/null) == counters ]] && thread=${file%/comm}
        done
        [[ -z $thread ]] || break
        kill -0 "$job" 2>/dev/null || { cat "$folder/train.log" >&2; exit 1; }
        sleep 0.05
    done
    [[ -n $thread ]] || { echo "counters.sh: shardscope-train has no thread that samples" >&2; exit 1; }
    sleep 0.5 # the first sample describes the host, once
    local begin end from to
    read -r from _ <"$thread/schedstat"
    begin=$(date +%s%N)
    sleep "$1"
    read -r to _ <"$thread/schedstat"
    end=$(date +%s%N)
    kill "$job"
    wait "$job" || true
    awk -v used=$((to - from)) -v time=$((end - begin)) 'BEGIN {
        printf "%.2f ms per second, %.2f %% of a core", 1000 * used / time, 100 * used / time }'
}
echo "processor time of the thread that samples in shardscope-train: $(thread_cost "$((seconds < 10 ? 10 : seconds))") (goal: at most 0.50 %)"
echo "processor time of shardscope-record: $(cost --counters) ms per second with counters, $(cost --no-counters) ms without"
exit $status
