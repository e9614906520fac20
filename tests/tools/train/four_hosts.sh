#!/usr/bin/env bash
# Makes hosts for a job of shardscope-train: network namespaces with different names, disks and clocks, joined by a
# bridge. mpirun starts the ranks on them.
#
#   four_hosts.sh SHARDSCOPE_TRAIN SHARDSCOPE_TRACE JOB.toml
#
# Under HYBRID_SHARD, parameters and gradients stay within a host and only all-reduces of shards go between hosts, with
# the bytes of the closed forms. Each host keeps the parts of its own ranks; after merging they are on one clock although
# the hosts' clocks are days apart. Exit status 77, with the reason: this machine cannot make such hosts.
set -euo pipefail

if [[ ${1-} != inside ]]; then
    skip() {
        echo "four_hosts: skipped: $*"
        exit 77
    }
    for tool in ip mpirun unshare; do
        command -v $tool > /dev/null || skip "$tool is not installed"
    done
    unshare --mount --net --pid --uts --time --monotonic 1 --fork true 2> /dev/null || skip "namespaces cannot be made"
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    # The namespaces end with their last process, which ends with this one.
    unshare --mount --net --pid --fork --kill-child --mount-proc bash "$0" inside "$work" "$@"
    exit
fi
work=$2 train=$(realpath "$3") trace=$(realpath "$4") job=$(realpath "$5")

# --- the hosts: node1 to node4, and this one, which starts the job -------------------------------------------------
subnet=10.77.0
mount -t tmpfs none /run  # only here
mkdir /run/netns "$work/disk"
ip link set lo up
if ! ip link add bridge0 type bridge; then
    echo "four_hosts: skipped: the kernel has no bridge"
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
    mkdir "$work/disk-node$i"
done

# Starts a process on a host for mpirun, as ssh would. Each host's time since boot differs from the others' by seconds
# (and is never negative: the kernel refuses that).
cat > "$work/enter" << 'END'
#!/usr/bin/env bash
host=$1
shift
read -r up _ < /proc/uptime
case $host in node1) boot=0 ;; node2) boot=1000000 ;; node3) boot=-$((${up%.*} / 2)) ;; *) boot=86400 ;; esac
exec ip netns exec "$host" unshare --mount --uts --time --monotonic $boot --fork --kill-child sh -c '
    hostname "$1"
    mount --bind "$2/disk-$1" "$2/disk"
    shift 2
    exec sh -c "$*"' sh "$host" "$(dirname "$0")" "$@"
END
chmod +x "$work/enter"

# Open MPI fails if two jobs of a host make their common folder at the same time: this one has its own.
mkdir "$work/mpi"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_orte_tmpdir_base=$work/mpi

# run_job NAME "HOST HOST" --KEY=VALUE...: runs two ranks on each of the hosts; the parts are copied to $work/NAME.
steps=6
run_job() {
    local name=$1 hosts
    hosts=${2// /:2,}:2
    shift 2
    mpirun --mca plm_rsh_agent "$work/enter" --mca plm_rsh_no_tree_spawn 1 --mca pml ob1 --mca btl tcp,self \
        --mca btl_tcp_if_include $subnet.0/24 --mca oob_tcp_if_include $subnet.0/24 --bind-to none --oversubscribe \
        --host "$hosts" "$train" "$job" --run.steps=$steps --run.timeout=100 --run.workers=1 --model.width=64 \
        --fsdp.sharding_strategy=HYBRID_SHARD --fsdp.shard_group=2 --run.trace_parts="$work/disk" \
        --trace "$work/disk/run.sqlite" "$@" > "$work/$name.out" 2> "$work/$name.err" || {
        echo "four_hosts: $name failed:"
        cat "$work/$name.err"
        exit 1
    }
    mkdir "$work/$name"
    mv "$work"/disk-node*/run.rank-*.sqlite "$work/$name"
}

failed=0
# expect WHAT ACTUAL EXPECTED
expect() {
    if [[ $2 == "$3" ]]; then
        echo "ok: $1"
    else
        printf 'four_hosts: %s:\n%s\ninstead of\n%s\n' "$1" "$2" "$3"
        failed=1
    fi
}
# ask NAME SQL: prints the rows, without the heading.
ask() { "$trace" query --format csv "$work/$1.sqlite" "$2" | tail -n +2 | tr -d '\r'; }

# check NAME "HOST HOST": checks the merged trace.
check() {
    local name=$1 names hosts
    read -ra names <<< "$2"
    hosts=${#names[@]}
    expect "$name: rank 0 says where the parts are" "$(grep -c 'each host has the parts of its own ranks' "$work/$name.err")" 1
    # Simulates different wall clocks, too: by 7 s from host to host.
    for ((rank = 2; rank < 2 * hosts; rank++)); do
        "$trace" query --write "$work/$name/run.rank-0000$rank.sqlite" \
            "UPDATE TARGET_INFO_SESSION_START_TIME SET utcEpochNs = utcEpochNs + $((rank / 2)) * 7000000000" > /dev/null
    done
    "$trace" merge "$work/$name"/run.rank-*.sqlite -o "$work/$name.sqlite" | tee "$work/$name.merge"
    expect "$name: each host has two ranks" \
        "$(ask "$name" "SELECT host, group_concat(rank, ' ') FROM (SELECT * FROM SHARD_RANKS ORDER BY rank) GROUP BY host ORDER BY host")" \
        "$(for ((i = 0; i < hosts; i++)); do echo "${names[i]},$((2 * i)) $((2 * i + 1))"; done)"

    # 8 layers of 64 x 64 with a bias, a unit each: 16640 bytes, of which each of 2 ranks has a shard of 8320; nothing is
    # padded. A step gathers each unit in the forward and again in the backward, and reduces its gradient: within the
    # host. The shards' gradients are summed over the hosts.
    expect "$name: collectives within hosts and between them" \
        "$(ask "$name" "
            WITH one AS (
                SELECT c.groupId, c.sequence, c.operation, c.bytes, count(*) AS ranks, count(DISTINCT r.host) AS hosts
                FROM SHARD_COLLECTIVES c JOIN SHARD_RANKS r USING (rank) GROUP BY c.groupId, c.sequence)
            SELECT e.name, hosts, ranks, count(*), sum(bytes)
            FROM one JOIN SHARD_ENUM_OPERATION e ON e.id = one.operation
            WHERE e.name IN ('all_gather', 'reduce_scatter', 'all_reduce') AND bytes > 8
            GROUP BY e.name, hosts, ranks ORDER BY e.name")" \
        "all_gather,1,2,$((hosts * steps * 16)),$((hosts * steps * 16 * 16640))
all_reduce,$hosts,$hosts,$((2 * steps * 8)),$((2 * steps * 8 * 8320))
reduce_scatter,1,2,$((hosts * steps * 8)),$((hosts * steps * 8 * 16640))"

    # No rank has a collective's result before all have begun it: on one clock, no end is before the last start.
    expect "$name: no collective ends before its last rank has begun it, by more than 1 ms" \
        "$(ask "$name" "
            SELECT count(*) FROM (
                SELECT max(k.start) - min(k.end) AS early
                FROM SHARD_COLLECTIVES c
                JOIN CUPTI_ACTIVITY_KIND_KERNEL k ON k.correlationId = c.correlationId AND k.deviceId =
                    (SELECT deviceId FROM SHARD_RANKS WHERE rank = c.rank)
                GROUP BY c.groupId, c.sequence)
            WHERE early > 1000000")" 0
    expect "$name: every host has measured its clock to within 5 ms" \
        "$(ask "$name" "SELECT count(DISTINCT r.host) FROM SHARD_CLOCKS c JOIN SHARD_RANKS r USING (rank) WHERE c.rank > 0 AND c.uncertainty BETWEEN 1 AND 5000000")" \
        "$hosts"
    # Half of the collectives end together but for the turns that processors give the ranks, some ms on a busy machine;
    # the hosts' clocks differ by far more.
    expect "$name: the clocks' residual is below 20 ms" \
        "$(ask "$name" "SELECT CAST(value AS REAL) < 20000 FROM SHARD_RUN WHERE key = 'merge.residual_us'")" 1
    "$trace" distributed "$work/$name.sqlite"
}

run_job four "node1 node2 node3 node4" --run.comm=mpi
check four "node1 node2 node3 node4"
run_job two "node2 node4" --run.comm=tcp
check two "node2 node4"

# --- a host that drops off the network, in a job that torchrun's variables start -----------------------------------
timeout=4
for rank in 0 1 2 3; do
    "$work/enter" node$((rank + 1)) RANK=$rank WORLD_SIZE=4 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MASTER_ADDR=$subnet.1 \
        MASTER_PORT=29500 "exec $train" "$job" --run.steps=100000000 --run.timeout=$timeout --run.workers=1 \
        --model.width=64 --run.trace_parts="$work/disk" --trace "$work/disk/run.sqlite" 2> "$work/cut-$rank.err" &
    process[rank]=$!
done
for ((tries = 0; tries < 600; tries++)); do
    grep -q 'step 1/' "$work/cut-0.err" && break
    sleep 0.1
done
sleep 2  # parts are committed once a second
ip link set port3 down
SECONDS=0
for rank in 0 1 2 3; do
    status=0
    wait "${process[rank]}" || status=$?
    expect "cut: rank $rank fails" $status 1
done
expect "cut: all ranks have ended within twice run.timeout and some seconds for their traces" $((SECONDS < 2 * timeout + 10)) 1
for rank in 0 1 3; do
    expect "cut: rank $rank names the rank that was cut off and what it waited in itself" \
        "$(grep -cE "rank 2 \(process [0-9]+ on host node3\) .*$timeout s.*; rank $rank waited in (all_gather|reduce_scatter) number [0-9]+ of communicator 0 \(step [0-9]+, unit [0-9]+ \"net" "$work/cut-$rank.err")" 1
done
mkdir "$work/cut"
mv "$work"/disk-node*/run.rank-*.sqlite* "$work/cut"
"$trace" merge "$work"/cut/run.rank-*.sqlite -o "$work/cut.sqlite"
"$trace" distributed "$work/cut.sqlite" | grep -A6 'the first to stop' > "$work/cut.stopped" || true
cat "$work/cut.stopped"
expect "cut: the merged trace says so" "$(head -1 "$work/cut.stopped" | cut -d: -f1)" "Rank 2 on node3 was the first to stop"
[[ $failed == 0 ]] || cat "$work"/cut-*.err
exit $failed
