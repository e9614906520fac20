#!/usr/bin/env bash
# Watches a job of 8 processes on four hosts (network namespaces with different names, joined by a bridge) from a fifth,
# stops one process, and says after how long the watcher names it.
#
#   watch_hosts.sh SHARDSCOPE_TRAIN SHARDSCOPE_TRACE JOB.toml [SECONDS]
#
# With SECONDS, naming it later than that is a failure. The status is served over TCP, with a token. Exit status 77, with
# the reason: this machine cannot make such hosts.
set -euo pipefail

if [[ ${1-} != inside ]]; then
    skip() {
        echo "watch_hosts: skipped: $*"
        exit 77
    }
    for tool in ip unshare; do
        command -v $tool > /dev/null || skip "$tool is not installed"
    done
    unshare --mount --net --pid --uts --fork true 2> /dev/null || skip "namespaces cannot be made"
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    # The namespaces end with their last process, which ends with this one.
    unshare --mount --net --pid --fork --kill-child --mount-proc bash "$0" inside "$work" "$@"
    exit
fi
work=$2 train=$(realpath "$3") trace=$(realpath "$4") job=$(realpath "$5") limit=${6-}

# --- the hosts: node1 to node4, and this one, which watches --------------------------------------------------------
subnet=10.78.0
mount -t tmpfs none /run  # only here
mkdir /run/netns
ip link set lo up
if ! ip link add bridge0 type bridge; then
    echo "watch_hosts: skipped: the kernel has no bridge"
    exit 77
fi
ip addr add $subnet.254/24 dev bridge0
ip link set bridge0 up
for i in 1 2 3 4; do
    ip netns add node$i
    ip link add port$i type veth peer name eth0 netns node$i
    ip link set port$i master bridge0 up
    ip -n node$i addr add $subnet.$i/24 dev eth0
    ip -n node$i link set eth0 up
    ip -n node$i link set lo up
done

(umask 077 && head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n' > "$work/token")
export SHARDSCOPE_STATUS_TOKEN_FILE=$work/token

# --- the job: two ranks on each host -------------------------------------------------------------------------------
for rank in 0 1 2 3 4 5 6 7; do
    # shellcheck disable=SC2016
    RANK=$rank WORLD_SIZE=8 LOCAL_RANK=$((rank % 2)) LOCAL_WORLD_SIZE=2 MASTER_ADDR=$subnet.1 MASTER_PORT=29500 \
        ip netns exec node$((rank / 2 + 1)) unshare --uts sh -c 'hostname "$1"; shift; exec "$@"' sh node$((rank / 2 + 1)) \
        "$train" "$job" --run.steps=100000000 --run.timeout=60 --run.workers=1 --model.width=64 --fsdp.wrap=module:Linear \
        --status $subnet.1:29600 > /dev/null 2> "$work/rank$rank.err" &
    process[rank]=$!
done
failed() {
    echo "watch_hosts: $*"
    cat "$work"/rank*.err "$work"/watch.err 2> /dev/null || true
    exit 1
}
# await FILE PATTERN: waits until a line of the file matches; prints it.
await() {
    for ((tries = 0; tries < 1200; tries++)); do
        grep -m1 -E "$2" "$1" 2> /dev/null && return
        sleep 0.05
    done
    return 1
}

await "$work/rank0.err" 'step 1/' > /dev/null || failed "the job does not train"
"$trace" watch --format json $subnet.1:29600 2> "$work/watch.err" |
    while read -r line; do echo "$EPOCHREALTIME $line"; done > "$work/lines" &
await "$work/lines" '"state":"running"' > /dev/null || failed "nothing is to be seen at $subnet.1:29600"
[[ $(await "$work/lines" '"state":"running"' | grep -o '"host":"node[1-4]"' | sort -u | wc -l) == 4 ]] ||
    failed "not all hosts are to be seen"

# Strangers learn nothing.
SHARDSCOPE_STATUS_TOKEN_FILE='' SHARDSCOPE_STATUS_TOKEN=0123456789abcdef "$trace" watch --once $subnet.1:29600 \
    > "$work/stranger" 2>&1 && failed "a wrong token is accepted"
grep -q 'the token is wrong' "$work/stranger" || failed "a wrong token is not refused: $(cat "$work/stranger")"

# --- one process is stopped ------------------------------------------------------------------------------------------
kill -STOP "${process[5]}"
stopped=$EPOCHREALTIME
named=$(await "$work/lines" '"reason":"rank 5 has not (entered|finished) [a-z_]+ [0-9]+ of group 0 for') ||
    failed "the stopped rank is not named: $(tail -1 "$work/lines")"
grep -o '"reason":"[^"]*"' <<< "$named"
seconds=$(awk -v a="$stopped" -v b="${named%% *}" 'BEGIN { printf "%.2f", b - a }')
echo "rank 5 was stopped, and named after $seconds s"
[[ -z $limit ]] || awk -v s="$seconds" -v l="$limit" 'BEGIN { exit !(s <= l) }' || failed "that is later than $limit s"
"$trace" watch --once $subnet.1:29600

# --- and goes on -------------------------------------------------------------------------------------------------------
kill -CONT "${process[5]}"
lines=$(wc -l < "$work/lines")
for ((tries = 0; tries < 600; tries++)); do
    tail -n +$((lines + 1)) "$work/lines" | grep -q '"state":"running"' && break
    sleep 0.1
done
((tries < 600)) || failed "the run does not go on, or is not said to"
echo "ok: it goes on"
kill -TERM "${process[0]}"
await "$work/lines" '"state":"stopped"' > /dev/null || failed "the end of the run is not said"
echo "ok: its end is said"
