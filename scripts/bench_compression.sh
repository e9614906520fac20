#!/usr/bin/env bash
# Measures what compressed gradients save on a slow network: a GPT under DDP on two hosts (network namespaces) whose link is
# slowed down to 100 Mbit/s in each direction by tc, without a communication hook, with each of them, and with 1-bit Adam,
# beside what a simulation predicts from a cost model that is calibrated with the plain run alone, and which hook a plan
# with that model finds.
#
#   scripts/bench_compression.sh [MBIT]      takes some minutes; needs root and an otherwise idle machine
#
# Exits with 1 if a step with PowerSGD of rank 4 takes more than half of one without a hook (at 100 Mbit/s); with 77, and the
# reason, if this machine cannot make such hosts.
set -euo pipefail

if [[ ${1-} != inside ]]; then
    cd "$(dirname "${BASH_SOURCE[0]}")/.."
    skip() {
        echo "bench_compression: skipped: $*"
        exit 77
    }
    for tool in ip tc unshare; do
        command -v $tool >/dev/null || skip "$tool is not installed"
    done
    unshare --mount --net --pid --fork true 2>/dev/null || skip "namespaces cannot be made"
    bin=${BIN:-build/release/bin} # BIN: programs that are built already
    [[ -n ${BIN:-} ]] || scripts/build.sh release shardscope-train shardscope-trace >&2
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    # The namespaces end with their last process, which ends with this one.
    unshare --mount --net --pid --fork --kill-child --mount-proc \
        bash "scripts/${0##*/}" inside "$work" "$(realpath "$bin")" "${1:-100}"
    exit
fi
work=$2 train=$3/shardscope-train trace=$3/shardscope-trace mbit=$4

mount -t tmpfs none /run # only here
mkdir /run/netns
ip netns add node2
ip link add wire0 type veth peer name wire0 netns node2
ip addr add 10.78.0.1/24 dev wire0
ip -n node2 addr add 10.78.0.2/24 dev wire0
for on in "" "-n node2"; do
    # shellcheck disable=SC2086 # two words
    ip $on link set wire0 up && ip $on link set lo up && tc $on qdisc add dev wire0 root tbf rate "${mbit}mbit" burst 128kb latency 100ms
done

cat >"$work/gpt.toml" <<JOB
[model]
type = "gpt"
layers = 4
width = 256
heads = 4
context = 64
[data]
type = "text"
path = "/usr/share/common-licenses"
batch = 4
[parallel]
mode = "ddp"
[optimizer]
type = "adam"
lr = 1e-3
JOB

# run NAME KEY...: a rank on each host, started as torchrun would; the trace is $work/NAME.sqlite.
steps=12
run() {
    local name=$1 rank enter=() processes=()
    shift
    for rank in 0 1; do
        ((rank == 0)) || enter=(ip netns exec node2)
        RANK=$rank WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MASTER_ADDR=10.78.0.1 MASTER_PORT=29500 "${enter[@]}" \
            "$train" "$work/gpt.toml" --run.steps=$steps --run.comm=tcp --run.workers=1 --trace "$work/$name.sqlite" \
            --overwrite "$@" >"$work/$name-$rank.log" 2>&1 &
        processes+=($!)
    done
    for rank in 0 1; do
        wait "${processes[rank]}" || { tail -n 5 "$work/$name-$rank.log" >&2; exit 1; }
    done
}
# Milliseconds of the median step of rank 0 from step 5 on, with device work: from one step's start to the next one's.
step_of() {
    "$trace" query --format csv "$1" "SELECT (lead(start_ns) OVER (ORDER BY step) - start_ns) / 1e6 AS ms, step FROM steps
        WHERE rank = 0" | tr -d '\r' | awk -F, 'NR > 1 && $1 != "" && $2 >= 5 { print $1 }' |
        sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}
# Bytes that a rank sends in the last step, if a ring carries them.
sent_of() {
    "$trace" query --format csv "$1" "
        SELECT sum(c.bytes * CASE c.operation WHEN 'all_reduce' THEN 2.0 ELSE 1.0 END * (c.group_size - 1) / c.group_size)
        FROM collectives c JOIN calls k ON k.rank = c.rank AND k.correlation = c.correlation
        JOIN steps s ON s.rank = c.rank AND k.start_ns >= s.start_ns AND k.start_ns < s.end_ns
        WHERE c.rank = 0 AND s.step = $((steps - 2))" | tail -n 1 | tr -d '\r'
}
# Milliseconds of the last simulated step.
predicted() {
    "$train" "$work/gpt.toml" --run.steps=$steps --run.ranks=2 --run.device=sim --sim.cluster="$work/link.toml" --format json "$@" 2>/dev/null |
        sed -n 's/.*"last_step":{"us":\([0-9.e+]*\).*/\1/p' | awk '{ print $1 / 1000 }'
}

echo "A GPT of 4 layers of 256 features under DDP on 2 hosts, $mbit Mbit/s"
printf '%-12s  %17s  %12s  %10s  %17s\n' "" "bytes that a rank" "step (ms)" "of plain" "step (ms) by"
printf '%-12s  %17s  %12s  %10s  %17s\n' "compression" "sends in a step" "measured" "step" "the simulation"
plain=0 status=0
for kind in none bf16 fp16 topk:0.01 powersgd:1 powersgd:4 onebit_adam; do
    keys=(--ddp.comm_hook="$kind")
    [[ $kind != none ]] || keys=()
    [[ $kind != onebit_adam ]] || keys=(--optimizer.type=onebit_adam --optimizer.freeze_step=3)
    run run "${keys[@]}"
    if [[ $kind == none ]]; then
        "$train" calibrate "$work/run.sqlite" -o "$work/link.toml" >"$work/calibrate.log" 2>&1 || { cat "$work/calibrate.log" >&2; exit 1; }
    fi
    ms=$(step_of "$work/run.sqlite")
    [[ $kind != none ]] || plain=$ms
    share=$(awk -v a="$ms" -v b="$plain" 'BEGIN { print a / b }')
    printf '%-12s  %17.0f  %12.0f  %10.3f  %17.0f\n' "$kind" "$(sent_of "$work/run.sqlite")" "$ms" "$share" "$(predicted "${keys[@]}")"
    [[ $kind != powersgd:4 || $mbit != 100 ]] || awk -v s="$share" 'BEGIN { exit !(s <= 0.5) }' || status=1
done
echo
echo "What \`shardscope-train plan\` finds with that model, for 100 steps of DDP:"
"$train" plan "$work/gpt.toml" --run.steps=100 --run.ranks=2 --run.device=sim --sim.cluster="$work/link.toml" --parallel.mode=ddp \
    2>/dev/null | awk '/^Best/; /^row/ && !n { n = 1 } n && n++ <= 8'
((status == 0)) || echo "bench_compression: PowerSGD of rank 4 takes more than half of a plain step"
exit $status
