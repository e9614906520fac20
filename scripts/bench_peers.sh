#!/usr/bin/env bash
# Prints what analyses of the same Kineto trace cost here and in the Python peers that are installed, each next to the
# verb here that does as much: the TensorBoard plugin computes all of its views (`report`), Holistic Trace Analysis the
# temporal breakdown (`temporal`); both load the trace, which is most of it (`summary` loads and prints one table).
#
#   scripts/bench_peers.sh TRACE [TIMES]     TRACE: Kineto JSON, plain or compressed; it is repeated TIMES times (10) into one
#                                            plain file, since peers are for large ones
#
# The peers: python3 -m pip install torch-tb-profiler HolisticTraceAnalysis (in any environment whose python3 is first
# on PATH). CPU time is the column to read.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

trace=${1:?say which trace; see the head of this script}
times=${2:-10}
scripts/build.sh release shardscope-trace >&2
bin=build/release/bin
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

file=$folder/rank0.pt.trace.json
python3 - "$trace" "$times" "$file" <<'PYTHON'
import gzip, json, re, sys
path, times, out = sys.argv[1], int(sys.argv[2]), sys.argv[3]
with (gzip.open if path.endswith(".gz") else open)(path, "rt") as f:
    trace = json.load(f)
events = [e for e in trace["traceEvents"] if e.get("name") != "Record Window End"]
starts = [e["ts"] for e in events if e.get("ph") == "X"]
length = max(e["ts"] + e.get("dur", 0) for e in events if e.get("ph") == "X") - min(starts) + 1000
steps = [int(e["name"].split("#")[1]) for e in events if e.get("name", "").startswith("ProfilerStep#")]
beyond = 10 * max(e["args"]["correlation"] for e in events if "correlation" in e.get("args", {}))
many = max(steps) - min(steps) + 1
again = []
for i in range(times):
    for e in events:
        if i and e.get("ph") == "M":
            continue
        e = dict(e)
        if "ts" in e:
            e["ts"] += i * length
        if e.get("name", "").startswith("ProfilerStep#"):
            e["name"] = "ProfilerStep#%d" % (int(e["name"].split("#")[1]) + i * many)
        if "args" in e:
            e["args"] = dict(e["args"])
            for key in ("correlation", "External id", "external id"):
                if key in e["args"]:
                    e["args"][key] += i * beyond
        if "id" in e and isinstance(e["id"], int):
            e["id"] += i * beyond
        again.append(e)
trace["traceEvents"] = again
with open(out, "w") as f:
    json.dump(trace, f)
print("%s, %d times: %d events, analyses of a whole trace" % (re.sub(".*/", "", path), times, len(again)))
PYTHON
printf '%-34s %9s %9s %14s\n' "" "CPU (s)" "wall (s)" "resident (MiB)"
measure() { # LABEL COMMAND ...
    local label=$1
    shift
    if ! /usr/bin/time -f '%U %S %e %M' -o "$folder/figures" "$@" >/dev/null 2>&1; then
        printf '%-34s %s\n' "$label" "failed on this file"
        return
    fi
    awk -v label="$label" -v ours="$ours" '{
        printf "%-34s %9.2f %9.2f %14.0f", label, $1 + $2, $3, $4 / 1024
        split(ours, first, " ")
        if (ours != "") printf "   %.0f x the time, %.0f x the memory", ($1 + $2) / first[1], $4 / 1024 / first[2]
        print ""
    }' "$folder/figures"
}
version_of() { python3 -c 'import sys; from importlib.metadata import version; print(version(sys.argv[1]))' "$1" 2>/dev/null; }
ours=
measure "shardscope-trace summary" "$bin/shardscope-trace" summary "$file"
measure "shardscope-trace report" "$bin/shardscope-trace" report "$file" -o "$folder/report.html"
ours=$(awk '{print $1 + $2, $4 / 1024}' "$folder/figures")
if version=$(version_of torch-tb-profiler); then
    mkdir "$folder/run"
    ln "$file" "$folder/run/worker0.1.pt.trace.json"
    measure "torch_tb_profiler $version" python3 -c '
import sys
from torch_tb_profiler.io import Cache
from torch_tb_profiler.profiler import RunLoader
RunLoader("run", sys.argv[1], Cache()).load()' "$folder/run"
else
    printf '%-34s %s\n' torch_tb_profiler "not installed"
fi
ours=
measure "shardscope-trace temporal" "$bin/shardscope-trace" temporal "$file"
ours=$(awk '{print $1 + $2, $4 / 1024}' "$folder/figures")
if version=$(version_of HolisticTraceAnalysis); then
    measure "HolisticTraceAnalysis $version" python3 -c '
import sys
from hta.trace_analysis import TraceAnalysis
TraceAnalysis(trace_files={0: sys.argv[1]}).get_temporal_breakdown(visualize=False)' "$file"
else
    printf '%-34s %s\n' HolisticTraceAnalysis "not installed"
fi
