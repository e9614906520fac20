#!/usr/bin/env bash
# Attacks the tools with files, commands and signals that once did harm, and reports for each whether they held.
#
#   scripts/attack.sh [--quick] [BINARIES]      BINARIES: folder of the four tools (build/release/bin)
#
# Each attack is bounded in time and memory and makes its own input, in a folder that is removed at the end. Prints a
# line for each: held, fell (and why), or skipped (and what is missing). Exit status 1 if anything fell, 77 if the
# programs that make the input are missing. --quick skips attacks that take more than a few seconds. COMM=gloo or mpi
# attacks jobs of processes whose collectives are Gloo's or MPI's (run.comm).
set -uo pipefail
case ${COMM:-} in
    '' | gloo | mpi | tcp) ;;
    *) echo "attack.sh: COMM is gloo, mpi or tcp, not $COMM" >&2 && exit 2 ;;
esac
comm=(${COMM:+"--run.comm=$COMM"})
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2

quick=false
if [[ ${1:-} == --quick ]]; then
    quick=true
    shift
fi
bin=$(cd "${1:-build/release/bin}" 2>/dev/null && pwd) || {
    echo "attack.sh: there is no folder ${1:-build/release/bin}; build the tools first" >&2
    exit 2
}
trace=$bin/shardscope-trace train=$bin/shardscope-train view=$bin/shardscope-view record=$bin/shardscope-record
job=$PWD/samples/mlp.toml good=$PWD/samples/traces/mlp-root.sqlite
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 2
export TMPDIR=$folder/scratch
mkdir "$TMPDIR" "$folder/mpi"
export OMPI_MCA_orte_tmpdir_base=$folder/mpi OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

count_held=0 count_fell=0 count_left=0
held() {
    printf 'held      %s\n' "$1"
    count_held=$((count_held + 1))
}
fell() {
    printf 'fell      %s: %s\n' "$1" "$2"
    count_fell=$((count_fell + 1))
}
left_out() {
    printf 'skipped   %s: %s\n' "$1" "$2"
    count_left=$((count_left + 1))
}

# run SECONDS KILOBYTES COMMAND ...: bounded; its status in $status, its output in ./out and ./err.
run() {
    local seconds=$1 memory=$2
    shift 2
    (
        if ((memory > 0)); then ulimit -v "$memory"; fi
        ulimit -c 0
        exec timeout -k 5 "$seconds" "$@"
    ) >out 2>err </dev/null
    status=$?
}
# expect NAME STATUS PATTERN: checks the last run; STATUS is a case pattern, PATTERN an extended regex for its errors.
expect() {
    # shellcheck disable=SC2254
    case $status in
        $2) ;;
        *)
            fell "$1" "exit status $status: $(tail -c 200 err | tr '\n' ' ')"
            return 1
            ;;
    esac
    if [[ -n $3 ]] && ! grep -qE -e "$3" err; then
        fell "$1" "its error does not say \"$3\": $(tail -c 200 err | tr '\n' ' ')"
        return 1
    fi
    held "$1"
}
has() { command -v "$1" >/dev/null; }

# --- files that are read and written -----------------------------------------------------------------------
own_input() {
    local verb output before after
    cp "$good" in.sqlite
    ln -sf in.sqlite link.sqlite
    ln -f in.sqlite hard.sqlite
    before=$(cksum <in.sqlite)
    for output in in.sqlite ./in.sqlite link.sqlite hard.sqlite; do
        for verb in report "export --to chrome" import "slice --step 0"; do
            # shellcheck disable=SC2086
            run 30 0 "$trace" $verb in.sqlite -o "$output" --overwrite
            after=$(cksum <in.sqlite)
            if [[ $before != "$after" ]]; then
                fell "$verb over its own input as $output" "the input is another file now"
                cp "$good" in.sqlite
                continue
            fi
            expect "$verb over its own input as $output" "[12]" "both read and written"
        done
    done
}

# --- databases ---------------------------------------------------------------------------------------------
databases() {
    local endless="AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT x AS step, x AS start"
    endless+=", x AS rank, x AS start_ns, x AS duration_ns, x AS loss FROM c"
    cp "$good" e.sqlite
    sqlite3 e.sqlite "DROP TABLE SHARD_STEPS; CREATE VIEW SHARD_STEPS $endless"
    run 20 6000000 "$trace" export e.sqlite --to chrome -o e.json
    expect "export of a view in place of a table" 1 "is a view or virtual table"
    cp "$good" v.sqlite
    sqlite3 v.sqlite "DROP VIEW steps; CREATE VIEW steps $endless"
    run 30 6000000 "$trace" export v.sqlite --to csv -o csv
    expect "export of a view without an end" 0 ""
    cp "$good" w.sqlite
    run 20 0 "$trace" query w.sqlite --write "PRAGMA writable_schema=ON; UPDATE sqlite_master SET sql='x'"
    expect "query --write into the table of tables" "[12]" "sqlite_master"
    run 20 0 "$trace" info w.sqlite
    expect "the trace after that" 0 ""
    run 20 0 "$trace" query "$good" "SELECT fts3_tokenizer('simple')"
    expect "the address of a tokenizer" 2 "fts3_tokenizer"
    run 20 0 "$trace" query "$good" --time-limit 500ms \
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT count(*) FROM c"
    expect "a query without an end" 1 "time limit"
    run 20 0 "$trace" query --help
    if grep -A2 -e --time-limit out | grep -qF '(10s)'; then
        fell "the help of --time-limit" "it reads as though 10 s were the default"
    else
        expect "the help of --time-limit" 0 ""
    fi
    run 20 0 "$trace" query "$good" "ATTACH 'other.sqlite' AS o"
    expect "ATTACH in a query" 2 "not allowed"
    run 20 0 "$trace" info "$(printf 'no\033[31m\302\233.sqlite')"
    if LC_ALL=C grep -q $'\033\|\302\233' err; then
        fell "control characters in a file's name" "they are printed"
    else
        expect "control characters in a file's name" 2 "does not exist"
    fi
}
long_names() {
    cp "$good" n.sqlite
    sqlite3 n.sqlite "UPDATE StringIds SET value = hex(zeroblob(2500000)) WHERE id IN (SELECT id FROM StringIds WHERE
        length(value) > 3 LIMIT 2)"
    run 60 6000000 "$trace" export n.sqlite --to chrome -o n.json
    if (($(stat -c %s n.json 2>/dev/null || echo 0) > 1000000000)); then
        fell "export of two names of 5 MB" "it wrote more than 1 GB"
    else
        expect "export of two names of 5 MB" "[01]" ""
    fi
    rm -f n.json
}

# --- pickles, packed files, JSON ---------------------------------------------------------------------------
made_files() {
    python3 - <<'END'
import gzip, pickle
event = {'action': 'alloc', 'addr': 1000, 'size': 512, 'stream': 0, 'time_us': 1, 'frames': []}
row = [event] * 20000
pickle.dump({'segments': [], 'device_traces': [row] * 400}, open('shared.pickle', 'wb'))
row = [event] * 200000
pickle.dump({'segments': [], 'device_traces': [row] * 400}, open('large.pickle', 'wb'))
class Run:
    def __reduce__(self): return (__import__('os').system, ('touch was_run',))
pickle.dump({'segments': [], 'device_traces': [[Run()]]}, open('run.pickle', 'wb'))
with gzip.open('bomb.sqlite.gz', 'wb', 1) as file:
    file.write(b'SQLite format 3\0')
    for _ in range(512): file.write(bytes(1 << 20))
open('deep.toml', 'w').write('[' + '.'.join(['a'] * 200000) + ']\nx = 1\n')
open('deeper.toml', 'w').write('.'.join(['a'] * 200000) + ' = 1\n')
open('nested.json', 'w').write('{"traceEvents":' + '[' * 1000000)
END
    run 20 2000000 "$trace" memory shared.pickle
    expect "a pickle whose devices share their rows" 1 "share one list of blocks"
    run 20 2000000 "$trace" memory large.pickle
    expect "the same of 401 KB and 80 million rows" 1 "share one list of blocks"
    run 20 2000000 "$trace" memory run.pickle
    if [[ -e was_run ]]; then
        fell "a pickle that would run a command" "it has run"
    else
        expect "a pickle that would run a command" 1 "would import"
    fi
    run 20 2000000 "$trace" info bomb.sqlite.gz
    expect "a packed file that only begins like a database" 1 "begins like an SQLite file but is not one"
    if [[ -z $(ls -A "$TMPDIR") ]]; then
        held "what is left in TMPDIR"
    else
        fell "what is left in TMPDIR" "$(ls "$TMPDIR")"
    fi
    run 20 2000000 "$trace" info nested.json
    expect "JSON that nests a million times" 1 ""
    local verb
    for file in deep.toml deeper.toml; do
        for verb in "" sweep plan; do
            # shellcheck disable=SC2086
            run 20 0 "$train" $verb "$file" --dry-run
            [[ $verb == plan ]] && run 20 0 "$train" plan "$file"
            expect "${verb:-train} of a key of 200,000 parts in $file" 2 "a key of more than"
        done
        run 20 0 "$train" "$job" --run.device=sim --sim.cluster="$file"
        expect "sim.cluster of a key of 200,000 parts in $file" 2 "a key of more than"
    done
}
many_keys() {
    python3 -c "print('{' + ','.join(['\"traceEvents\":[{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"dur\":1,\"pid\":1,\"tid\":1}]'] * 60000) + '}')" >keys.json
    run 30 4000000 "$trace" info keys.json
    expect "60,000 lists of events in one file" "[01]" ""
}

# --- little memory -----------------------------------------------------------------------------------------
little_memory() {
    local kilobytes
    for kilobytes in 100000 200000 300000 500000; do
        run 60 "$kilobytes" "$train" "$job" --run.steps=30 --trace u.sqlite --overwrite
        expect "train in $kilobytes kB of address space" "[012]" ""
    done
    run 60 1000000 "$train" "$job" --dry-run --train.accumulation=4096 --model.layers=1024
    expect "a plan that does not fit into 1 GB" 1 "not enough memory|more than .* operations"
}

# --- the viewer --------------------------------------------------------------------------------------------
many_files() {
    if [[ ! -x $view ]]; then
        left_out "many files in the viewer" "there is no shardscope-view"
        return
    fi
    mkdir many
    local i
    for i in $(seq 80); do ln -s "$good" "many/t$i.sqlite"; done
    for panel in compare runs; do
        run 120 0 "$view" --no-state --screenshot m.png --panel "$panel" many/*.sqlite
        expect "80 files in the $panel panel" 0 ""
    done
}

# --- processes ---------------------------------------------------------------------------------------------
# Starts the launcher in the background; after the first step $parent is its process id, $ranks those of its ranks.
launch() {
    rm -f launcher.err
    "$train" "$job" --run.steps=10000000 --run.processes=3 --run.workers=1 --model.width=64 "${comm[@]}" "$@" \
        >launcher.out 2>launcher.err </dev/null &
    parent=$!
    disown $parent
    local i
    for ((i = 0; i < 600; i++)); do
        grep -qs "step 1/" launcher.err && break
        sleep 0.1
    done
    ranks=$(cat "/proc/$parent/task/$parent/children" 2>/dev/null)
}
# ended NAME SECONDS: checks that the launcher and its ranks end in that time.
ended() {
    local i process alive
    for ((i = 0; i < $2 * 10; i++)); do
        alive=""
        for process in $parent $ranks; do
            # A process that has ended but was not waited for has no memory.
            if grep -q VmSize "/proc/$process/status" 2>/dev/null; then alive+=" $process"; fi
        done
        [[ -z $alive ]] && break
        sleep 0.1
    done
    # shellcheck disable=SC2086
    kill -9 "$parent" $ranks 2>/dev/null
    if [[ -n $alive ]]; then fell "$1" "still there:$alive"; else held "$1"; fi
}
stopped_ranks() {
    local which
    for which in 1 3; do
        launch --run.timeout=4
        kill -STOP "$(cut -d' ' -f$which <<<"$ranks")"
        ended "rank $((which - 1)) of 3 is stopped" 60
    done
    launch --run.timeout=600
    kill -STOP "$(cut -d' ' -f2 <<<"$ranks")"
    kill "$parent"
    sleep 1
    kill "$parent"
    ended "a stopped rank, and SIGTERM twice to the launcher" 20
    launch
    kill -9 "$parent"
    ended "the launcher is killed" 30
}
# rank R PORT ...: starts one of two ranks, as torchrun would.
rank() {
    local number=$1 port=$2
    shift 2
    RANK=$number WORLD_SIZE=2 LOCAL_RANK=$number LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
        SHARDSCOPE_JOB_TOKEN=SUPERSECRETTOKEN \
        timeout 60 "$train" "$job" --run.steps=4 --run.timeout=20 "${comm[@]}" "$@"
}
different_jobs() {
    if [[ ${COMM:-} == mpi ]] && ! command -v mpirun >/dev/null; then
        left_out "ranks with different jobs" "there is no mpirun"
        return
    fi
    local port=$((20000 + RANDOM % 10000)) key
    for key in --optimizer.lr=0.5 --run.seed=99 --optimizer.weight_decay=0.5; do
        port=$((port + 10))
        if [[ ${COMM:-} == mpi ]]; then
            local four_steps=("$train" "$job" --run.steps=4 --run.timeout=20 --run.comm=mpi)
            timeout 60 mpirun --oversubscribe -n 1 "${four_steps[@]}" : -n 1 "${four_steps[@]}" "$key" >out 2>err
        else
            rank 0 $port >out 2>err &
            rank 1 $port "$key" >/dev/null 2>&1
            wait $!
        fi
        status=$?
        expect "a rank with $key" 2 "give all ranks the same job"
    done
    if [[ ${COMM:-} == mpi ]]; then
        left_out "somebody else listens where rank 0 should" "MPI connects its processes itself"
        return
    fi
    port=$((port + 10))
    python3 - $port >heard <<'END' &
import socket, sys
server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
server.bind(('127.0.0.1', int(sys.argv[1]))); server.listen(8); server.settimeout(8)
try:
    for _ in range(4):
        visitor, _ = server.accept(); visitor.settimeout(1)
        try:
            sys.stdout.buffer.write(visitor.recv(4096))
            visitor.sendall(b'ShdWorld\x02\x00' + (16).to_bytes(6, 'little') + bytes(16))
            sys.stdout.buffer.write(visitor.recv(4096))
        except OSError: pass
        visitor.close()
except OSError: pass
END
    sleep 0.5
    rank 1 $port --run.timeout=5 >out 2>err
    status=$?
    wait
    if grep -q SUPERSECRET heard; then
        fell "another process listens on rank 0's port" "it received the job's token"
    elif [[ ! -s heard ]]; then
        fell "somebody else listens where rank 0 should" "nobody came"
    else
        expect "somebody else listens where rank 0 should" 1 "did not find rank 0"
    fi
}
kills() {
    local i delay failed="" old
    for i in $(seq 12); do
        delay=$(printf '0.%03d' $((i * i * 5)))
        (
            timeout -s KILL "$delay" "$train" "$job" --run.steps=100000 --trace k.sqlite --overwrite
            true
        ) >/dev/null 2>&1
        [[ -e k.sqlite ]] || continue
        [[ $(sqlite3 k.sqlite 'PRAGMA integrity_check' 2>&1) == ok ]] || failed+=" after $delay s"
    done
    if [[ -n $failed ]]; then fell "12 kills of a run" "the trace is damaged$failed"; else held "12 kills of a run"; fi
    : >k.sqlite.shardscope-new-4194305
    touch -d '1 hour ago' k.sqlite.shardscope-new-4194305
    run 60 0 "$train" "$job" --run.steps=2 --trace k.sqlite --overwrite
    old=$(ls k.sqlite.shardscope-new-4194305 2>/dev/null)
    if [[ -n $old ]]; then fell "what a killed run left" "$old"; else held "what a killed run left"; fi
}
# The files next to a trace that a killed run left: its journal may be damaged or unreadable.
journals() {
    rm -f j.sqlite*
    (
        timeout -s KILL 1.5 "$train" "$job" --run.steps=100000 --trace j.sqlite --overwrite
        true
    ) >/dev/null 2>&1
    if [[ ! -s j.sqlite-wal ]]; then
        left_out "the journal of a killed run" "the run left none"
        return
    fi
    mkdir garbage unreadable
    cp j.sqlite* garbage
    cp j.sqlite* unreadable
    head -c 100000 /dev/urandom >garbage/j.sqlite-wal
    run 20 0 "$trace" info garbage/j.sqlite
    expect "a journal of random bytes" "[01]" "journal|-wal"
    if ! has setpriv || ((EUID != 0)); then
        left_out "a journal that may not be read" "it takes root and setpriv"
        return
    fi
    chmod 755 "$folder" unreadable
    chmod 644 unreadable/*
    chmod 0 unreadable/j.sqlite-wal
    run 20 0 setpriv --reuid=65534 --regid=65534 --clear-groups env TMPDIR=/tmp "$trace" info unreadable/j.sqlite
    expect "a journal that may not be read" "[12]" "j.sqlite-wal"
}
# Somebody empties a file of a live trace. Only -shm, which SQLite maps, may end the run (docs/recording.md).
emptied_files() {
    local suffix
    for suffix in "" -wal; do
        rm -f live.sqlite*
        timeout 120 "$train" "$job" --run.steps=800 --trace live.sqlite --overwrite >out 2>err </dev/null &
        sleep 1.5
        truncate -s 0 "live.sqlite$suffix"
        wait $!
        status=$?
        expect "a live trace whose file live.sqlite$suffix is emptied" "[01]" ""
    done
}
small_disks() {
    mkdir disk
    if ! mount -t tmpfs -o size=4m tmpfs disk 2>/dev/null; then
        left_out "a disk of 4 MB" "it takes the right to mount one"
        return
    fi
    trap 'umount "$folder/disk" 2>/dev/null; rm -rf "$folder"' EXIT
    timeout 120 "$train" "$job" --run.steps=60000 --trace disk/full.sqlite >out 2>err </dev/null &
    local training=$! i told=""
    for ((i = 0; i < 1000; i++)); do
        kill -0 $training 2>/dev/null || break
        if grep -qi "full" err; then
            told=yes
            kill $training
            break
        fi
        sleep 0.1
    done
    wait $training
    if [[ -n $told ]]; then
        held "a full disk is reported when it happens"
    else
        fell "a full disk is reported when it happens" "$(tail -c 200 err | tr '\n' ' ')"
    fi
    rm -f disk/*
    if [[ -x $record ]]; then
        run 120 0 "$record" -o disk/last.sqlite --keep-last 60 -- \
            sh -c "'$train' '$job' --run.steps=600; exit 3"
        if (($(sqlite3 disk/last.sqlite "SELECT count(*) FROM NVTX_EVENTS" 2>/dev/null || echo 0) > 0)); then
            expect "--keep-last on a disk of 4 MB" 3 ""
        else
            fell "--keep-last on a disk of 4 MB" "no event was written: $(tail -c 200 err | tr '\n' ' ')"
        fi
    fi
    umount disk
}
# Bytes that are decompressed into a folder: a kill must not leave them there.
killed_unpacking() {
    sqlite3 big.sqlite "CREATE TABLE t(x); WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c LIMIT 300)
        INSERT INTO t SELECT zeroblob(1000000) FROM c"
    gzip -1 big.sqlite
    (
        timeout -s KILL 0.7 "$trace" info big.sqlite.gz
        true
    ) >/dev/null 2>&1
    find "$TMPDIR" -exec touch -d '1 hour ago' {} +  # a recent one may belong to another process
    run 60 0 "$trace" info big.sqlite.gz
    if [[ -z $(ls -A "$TMPDIR") ]]; then
        held "what a killed command had unpacked"
    else
        fell "what a killed command had unpacked" "$(du -sh "$TMPDIR" | tr '\n\t' '  ')"
    fi
    rm -rf big.sqlite.gz "${TMPDIR:?}"/*
}
record_bounds() {
    if [[ ! -x $record ]]; then
        left_out "the recorder" "there is no shardscope-record"
        return
    fi
    (umask 000 && exec timeout 60 "$train" "$job" --run.steps=2 --checkpoint.save=save >/dev/null 2>&1)
    if [[ -n $(find save -perm /002 2>/dev/null) ]]; then
        fell "umask 000 and a checkpoint" "others may write it"
    else
        held "umask 000 and a checkpoint"
    fi
    run 30 0 "$record" -o r.sqlite -- true
    expect "a program that records nothing" 0 ""
    run 60 0 "$record" -o r2.sqlite -- "$train" "$job" --run.steps=10
    run 60 0 "$trace" check r2.sqlite
    expect "a recorded trainer whose ranks are threads" 0 ""
    local size
    for size in 1 3; do
        run 60 0 "$record" -o "r$size.sqlite" --overwrite --max-size "${size}M" -- "$train" "$job" --run.steps=400
        expect "--max-size ${size}M" 0 "--max-size"
        if (($(stat -c %s "r$size.sqlite") > size << 20)); then
            fell "a file of --max-size ${size}M" "it has $(stat -c %s "r$size.sqlite") bytes"
        else
            held "a file of --max-size ${size}M"
        fi
    done
}

# --- how the tools are linked ------------------------------------------------------------------------------
hardening() {
    local tool flags symbols
    for tool in "$train" "$trace" "$record" "$view"; do
        [[ -x $tool ]] || continue
        flags=$(readelf -dlW "$tool" 2>/dev/null)
        symbols=$(readelf -W --dyn-syms "$tool" 2>/dev/null)
        if ! grep -q 'GNU_RELRO' <<<"$flags"; then
            fell "${tool##*/} is linked hard" "it has no RELRO"
        elif ! grep -qE 'BIND_NOW|FLAGS_1.* NOW' <<<"$flags"; then
            fell "${tool##*/} is linked hard" "it has no BIND_NOW"
        elif ! grep -q 'FLAGS_1.*PIE' <<<"$flags"; then
            fell "${tool##*/} is linked hard" "it is not position-independent"
        elif grep 'GNU_STACK' <<<"$flags" | grep -q 'RWE'; then
            fell "${tool##*/} is linked hard" "its stack is executable"
        elif ! grep -q __stack_chk_fail <<<"$symbols"; then
            fell "${tool##*/} is linked hard" "it is compiled without stack protection"
        elif ! grep -qE '__[a-z]+_chk@' <<<"$symbols"; then
            fell "${tool##*/} is linked hard" "it is compiled without fortified calls"
        else
            held "${tool##*/} is linked hard"
        fi
    done
}

if ! has sqlite3 || ! has python3; then
    echo "attack.sh: sqlite3 and python3 are needed to make the files; scripts/packages.sh test installs the first" >&2
    exit 77
fi
own_input
databases
made_files
hardening
if ! $quick; then
    long_names
    many_keys
    little_memory
    many_files
    stopped_ranks
    different_jobs
    kills
    journals
    emptied_files
    killed_unpacking
    record_bounds
    small_disks
fi
echo "$count_held held, $count_fell fell, $count_left skipped"
((count_fell == 0))
