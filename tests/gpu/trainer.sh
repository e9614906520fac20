#!/usr/bin/env bash
# The trainer's part of run.sh: compares jobs on a GPU with the same jobs on the processor. Several ranks share one
# GPU, through the local process group; if there are several, also with a process for each, through NCCL.
#
#   tests/gpu/trainer.sh [--dry-run] [FOLDER]
# shellcheck disable=SC1091,SC2154  # lib.sh and what it sets
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
start "$@"
[[ -x $bin/shardscope-train ]] || not_run "no shardscope-train in $bin"
samples=$tree/samples
grid=$here/grid.toml
# All ranks share one GPU on every machine, except the ranks that have a GPU each.
cards=${CUDA_VISIBLE_DEVICES:-$($dry || nvidia-smi --query-gpu=index --format=csv,noheader | paste -sd,)}
number_of_cards=$(awk -F, '{ print NF }' <<<"$cards")
export CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES:-0}
CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES%%,*}

# --- running jobs ------------------------------------------------------------------------------------------

text=$work/text.txt # nothing of the machine's is needed
awk 'BEGIN { srand(7); for (i = 0; i < 20000; ++i) printf "%c", i % 61 == 60 ? 10 : 97 + int(26 * rand() * rand()) }' \
    >"$text"

train() { # NAME JOB KEY ...: its result is in $work/NAME.json, what it said in $work/NAME.err
    local name=$1
    shift
    timeout 150 "$bin/shardscope-train" "$@" --format json >"$work/$name.json" 2>"$work/$name.err"
}
losses() { sed -n 's/.*"losses":\[\([^]]*\)\].*/\1/p' "$work/$1.json"; }
peaks() { grep -o '"peak_bytes":[0-9]*' "$work/$1.json" | cut -d: -f2 | paste -sd,; }

parity() { # WHAT TOLERANCE JOB KEY ...: losses near, memory equal
    local what=$1 tolerance=$2
    shift 2
    if ! train host "$@" --run.device=cpu; then
        failed "$what" "on the processor: $(tail -n 1 "$work/host.err")"
    elif ! train card "$@" --run.device="$device"; then
        failed "$what" "$(tail -n 1 "$work/card.err")"
    elif [[ $(peaks host) != "$(peaks card)" ]]; then
        failed "$what" "peak bytes by rank $(peaks host) on the processor, $(peaks card) on the device"
    else
        near "$what" "$tolerance" "$(losses host)" "$(losses card)"
    fi
}

# --- kernels, one by one -----------------------------------------------------------------------------------

section "kernels beside the processor's"
tests=$bin/test_cuda_kernels_gpu
if [[ ! -x $tests ]]; then
    left_out "kernels" "no test_cuda_kernels_gpu in $bin (it is built where nvcc is)"
elif $dry; then
    compare "tests there are" "$("$tests" --gtest_list_tests | grep -c '^  ')" ">" 50
else
    timeout 200 "$tests" --gtest_brief=1 >"$work/kernels.out" 2>&1
    status=$?
    grep -E 'Failure|FAILED' -A 3 "$work/kernels.out" | head -n 40
    check "exit status" 0 "$status"
    check "skipped" 0 "$(sed -n 's/^\[  SKIPPED \] \([0-9]*\) test.*/\1/p' "$work/kernels.out" | grep . || echo 0)"
    compare "passed" "$(sed -n 's/^\[  PASSED  \] \([0-9]*\) test.*/\1/p' "$work/kernels.out")" ">" 50
fi

# --- losses and memory -------------------------------------------------------------------------------------

section "losses within 2e-5 of the processor's in fp32 and 2e-2 in bf16, peak memory equal: samples"
# 1e-4 if a learning rate of 1 amplifies rounding.
parity "mlp.toml" 1e-4 "$samples/mlp.toml" --run.steps=4
parity "ddp.toml" 1e-4 "$samples/ddp.toml" --run.steps=4
parity "gpt.toml" 2e-5 "$samples/gpt.toml" --run.steps=4 --model.attention=fused --data.path="$text"
parity "mlp.toml, ReLU in the product" 1e-4 "$samples/mlp.toml" --run.steps=4 --model.fused_activation=true
parity "gpt.toml, GELU in the product" 2e-5 "$samples/gpt.toml" --run.steps=4 --model.attention=fused --data.path="$text" \
    --model.fused_activation=true
parity "gpt.toml, GELU in the product, bf16" 2e-2 "$samples/gpt.toml" --run.steps=4 --model.attention=fused \
    --data.path="$text" --model.fused_activation=true --precision.param=bf16
parity "talk.toml" 2e-5 "$samples/talk/talk.toml" --run.steps=2 --model.width=256 --data.batch=128
parity "gpt.toml, the optimizer in files" 2e-5 "$samples/gpt.toml" --run.steps=4 --model.attention=fused --data.path="$text" \
    --memory.offload=optimizer --memory.nvme="$work"
parity "gpt.toml, shards in files" 2e-5 "$samples/gpt.toml" --run.steps=4 --model.attention=fused --data.path="$text" \
    --fsdp.cpu_offload=true --memory.nvme="$work"

parity "gpt.toml, 4 experts" 2e-5 "$samples/gpt.toml" --run.steps=4 --model.attention=fused --data.path="$text" \
    --model.experts=4 --model.experts_per_token=2 --model.balance_loss=0.01
parity "gpt.toml as a llama, 4 experts with a capacity" 2e-5 "$samples/gpt.toml" --run.steps=4 --model.type=llama \
    --fsdp.wrap=module:LlamaBlock --model.attention=fused --data.path="$text" --model.experts=4 --model.capacity_factor=1.25

parity "gpt.toml, 4 experts that pairs of ranks divide" 2e-5 "$samples/gpt.toml" --run.steps=4 --model.attention=fused \
    --data.path="$text" --model.experts=4 --model.experts_per_token=2 --model.balance_loss=0.01 --parallel.expert=2

# Batch norms of few pixels amplify rounding, so that training parts what is alike: a resnet50's steps are too small to
# change it, a resnet18's are small. So the losses check forwards, and the gradients of a first step are compared
# themselves, of SGD's momentum, which begins as the gradient. A ReLU of a number near 0 may go the other way, which moves
# all gradients by about a hundredth.
section "networks for images: losses within 1e-4 of the processor's (a resnet18's 2e-3), gradients within 3e-2, peak memory equal"
momenta() { # NAME: of the run's checkpoint, a line for each piece: offset, elements, PARAMETER
    awk 'function of(piece, key) { sub(".*\"" key "\":\"?", "", piece); sub(/[",}].*/, "", piece); return piece }
        { for (i = split($0, pieces, "{"); i > 0; --i) if (pieces[i] ~ /"state":"momentum_buffer"/)
              print of(pieces[i], "offset"), of(pieces[i], "elements"), of($0, "path") }' \
        "$work/$1.saved/step-1/manifest.json" | sort -n
}
numbers() { od -A n -v -t f4 -w4 "$work/$1.saved/step-1/full.bin"; } # NAME: of the run's checkpoint
gradients() { # WHAT TOLERANCE JOB KEY ...: the largest difference from the processor's, of the largest of the parameter
    local what=$1 tolerance=$2 name worst keys=(--run.steps=1 --optimizer.momentum=0.9 --checkpoint.format=full)
    shift 2
    for name in host card; do
        rm -rf "$work/$name.saved"
        if ! train $name "$@" "${keys[@]}" --checkpoint.save="$work/$name.saved" \
            --run.device="$([[ $name == host ]] && echo cpu || echo "$device")"; then
            failed "$what" "on the ${name/host/processor}: $(tail -n 1 "$work/$name.err")"
            return
        fi
        momenta $name >"$work/$name.momenta"
    done
    if [[ ! -s $work/host.momenta ]] || ! cmp -s "$work/host.momenta" "$work/card.momenta"; then
        failed "$what" "the checkpoints have no gradients, or not the same parameters'"
        return
    fi
    worst=$(paste <(numbers host) <(numbers card) | awk '
        NR == FNR { begin[++n] = $1 / 4 + 1; end[n] = $1 / 4 + $2; path[n] = $3; next }
        FNR == 1 { p = 1 }
        p <= n && FNR >= begin[p] {
            if ($1 !~ /[0-9]/ || $2 !~ /[0-9]/) { print "inf " path[p]; wrong = 1; exit }
            size = $1 < 0 ? -$1 : $1; difference = $1 < $2 ? $2 - $1 : $1 - $2
            if (size > largest) largest = size
            if (difference > most) most = difference
            if (FNR < end[p] || path[p] == path[p + 1] && p++) next
            if (most > 0) most = largest > 0 ? most / largest : 1
            if (most >= worst) { worst = most; where = path[p] }
            ++p; most = largest = 0
        }
        END { if (!wrong) { if (p > n) printf "%.2g %s\n", worst, where; else print "inf " path[p] } }' "$work/host.momenta" -)
    compare "$what, ${worst#* }" "${worst% *}" "<=" "$tolerance"
}
images() { # WHAT TOLERANCE KEY ...
    local what=$1 tolerance=$2
    shift 2
    parity "$what" "$tolerance" "$here/images.toml" "$@"
    gradients "$what: gradients" 3e-2 "$here/images.toml" "$@"
}
images "resnet18" 2e-3 --model.width=16 --optimizer.lr=0.001
images "resnet18, FSDP, synced batch norms" 2e-3 --model.width=18 --optimizer.lr=0.001 \
    --parallel.mode=fsdp --fsdp.wrap=module:BasicBlock --parallel.sync_batch_norm=true
images "resnet50" 1e-4 --model.name=resnet50 --model.width=16 --optimizer.lr=1e-9
images "vgg11" 1e-4 --model.name=vgg11 --model.width=8 --model.dropout=0.5 --optimizer.lr=0.01
images "vit_b_16" 1e-4 --model.name=vit_b_16 --model.width=64 --model.heads=4 --model.layers=2 --optimizer.lr=0.01

section "the same: strategy, wrap, offload, ranks; every third in bf16, every second checkpointed"
number=0
for strategy in FULL_SHARD SHARD_GRAD_OP NO_SHARD HYBRID_SHARD ddp; do
    for wrap in root module:Block; do
        for offload in false true optimizer; do
            for ranks in 1 2 4 8; do
                keys=(--run.ranks="$ranks" --data.path="$text")
                if [[ $strategy == ddp ]]; then
                    [[ $wrap == root && $offload != true ]] || continue
                    keys+=(--parallel.mode=ddp)
                else
                    keys+=(--fsdp.sharding_strategy="$strategy" --fsdp.wrap="$wrap")
                fi
                if [[ $offload == true ]]; then keys+=(--fsdp.cpu_offload=true); fi
                if [[ $offload == optimizer ]]; then keys+=(--memory.offload=optimizer); fi
                if [[ $strategy == NO_SHARD && $offload != false ]]; then continue; fi # nothing to offload
                if [[ $strategy == HYBRID_SHARD ]]; then
                    ((ranks >= 4)) || continue
                    keys+=(--fsdp.shard_group=2)
                fi
                number=$((number + 1))
                what="$strategy, $wrap, offload $offload, ranks $ranks" tolerance=2e-5
                if ((number % 3 == 0)) && [[ $strategy != ddp ]]; then
                    keys+=(--precision.param=bf16)
                    what+=", bf16" tolerance=2e-2
                fi
                if ((number % 2 == 0)); then
                    keys+=(--memory.activation_checkpointing=module:Block)
                    what+=", checkpointing"
                fi
                if ((number % 5 == 0)); then
                    keys+=(--model.attention=plain)
                    what+=", plain attention"
                fi
                # A dry run executes one of seven, and checks whether the others could run.
                if $dry && ((number % 7 != 1)); then
                    "$bin/shardscope-train" "$grid" "${keys[@]}" --dry-run >/dev/null 2>"$work/err" ||
                        failed "$what" "$(tail -n 1 "$work/err")"
                    continue
                fi
                parity "$what" $tolerance "$grid" "${keys[@]}"
            done
        done
    done
done

# --- a process for each rank -------------------------------------------------------------------------------

section "ranks with a GPU each: processes and threads, by NCCL, beside the processor"
apart() { # WHAT RANKS JOB KEY ...: losses near, memory equal; a dry run's processes are on the processor
    local what="$1, $2 processes" ranks=$2
    shift 2
    if ! $dry && ((number_of_cards < ranks)); then
        left_out "$what" "$number_of_cards GPU, $ranks needed"
        return 1
    fi
    late "$what" && return 1
    if ! train host "$@" --run.ranks="$ranks" --run.device=cpu; then
        failed "$what" "on the processor: $(tail -n 1 "$work/host.err")"
    elif ! CUDA_VISIBLE_DEVICES=$cards train card "$@" --run.processes="$ranks" --run.device="$device" \
        --run.timeout=60; then
        failed "$what" "$(tail -n 1 "$work/card.err")"
    elif [[ $(peaks host) != "$(peaks card)" ]]; then
        failed "$what" "peak bytes by rank $(peaks host) by threads, $(peaks card) by processes"
    else
        near "$what" 2e-5 "$(losses host)" "$(losses card)"
    fi
}
keys=(--data.path="$text")
if apart "FULL_SHARD" 2 "$grid" "${keys[@]}"; then
    apart "DDP" 2 "$grid" "${keys[@]}" --parallel.mode=ddp
    apart "a tensor group that shares keys and values" 2 "$grid" "${keys[@]}" --model.type=llama --model.kv_heads=1 \
        --fsdp.wrap=module:LlamaBlock --parallel.tensor=2
    apart "experts, divided" 2 "$grid" "${keys[@]}" --model.experts=4 --model.experts_per_token=2 --parallel.expert=2
    apart "HYBRID_SHARD, 2 x 2" 4 "$grid" "${keys[@]}" --fsdp.sharding_strategy=HYBRID_SHARD --fsdp.shard_group=2
    would "FULL_SHARD, 2 threads with NCCL" || {
        CUDA_VISIBLE_DEVICES=$cards train threads "$grid" "${keys[@]}" --run.ranks=2 --run.device=cuda --run.comm=nccl
        check "FULL_SHARD, 2 threads with NCCL: exit status" 0 $?
        train host "$grid" "${keys[@]}" --run.ranks=2 --run.device=cpu
        near "its losses" 2e-5 "$(losses host)" "$(losses threads)"
    }
    # The second rank is killed during the run: the first reports it and ends.
    (CUDA_VISIBLE_DEVICES=$cards train killed "$grid" "${keys[@]}" --run.processes=2 --run.steps=1000000 \
        --run.device="$device" --run.timeout=20) &
    waiting=$!
    second=""
    for ((i = 0; i < 300 && ${#second} == 0; ++i)); do
        sleep 0.1
        grep -q "step" "$work/killed.err" 2>/dev/null || continue
        for process in /proc/[0-9]*; do
            grep -qaF -- "--data.path=$text" "$process/cmdline" 2>/dev/null || continue
            grep -qazx 'SHARDSCOPE_RANK=1' "$process/environ" 2>/dev/null && second=${process#/proc/}
        done
    done
    [[ -n $second ]] && kill -KILL "$second"
    wait "$waiting"
    check "a process that is killed ends the job: exit status" 1 $?
    # Noticed by its process or by its closed connection, whichever comes first.
    named=$(grep -oE "rank 1 \(process $second on host [^)]*\) (has ended|is lost in )" "$work/killed.err" | head -n 1)
    if [[ -n $named ]]; then
        passed "it is named" "$named"
    else
        failed "it is named" "$(tail -n 1 "$work/killed.err")"
    fi
fi

# --- CUPTI's records ---------------------------------------------------------------------------------------

section "a trace of the device beside the processor's"
host=$work/host.sqlite trace=$work/card.sqlite
keys=(--run.ranks=2 --fsdp.cpu_offload=true --data.path="$text")
train host "$grid" "${keys[@]}" --run.device=cpu --trace "$host"
check "traced on the processor" 0 $?
train card "$grid" "${keys[@]}" --run.device="$device" --trace "$trace"
check "traced on the device" 0 $?
check "warnings of the trainer" 0 "$(grep -c 'warning:' "$work/card.err")"
$dry || check "the GPU's name" "$(nvidia-smi --id="$CUDA_VISIBLE_DEVICES" --query-gpu=name --format=csv,noheader)" \
    "$(value "$trace" "SELECT name FROM TARGET_INFO_GPU LIMIT 1")"
check "lost events" 0 "$(value "$trace" "SELECT dropped FROM SHARD_STATE")"
check "warnings" 0 "$(value "$trace" "SELECT count(*) FROM DIAGNOSTIC_EVENT WHERE severity >= 2")"
work_of="SELECT correlationId, deviceId, streamId, start, \"end\" FROM CUPTI_ACTIVITY_KIND_KERNEL
    UNION ALL SELECT correlationId, deviceId, streamId, start, \"end\" FROM CUPTI_ACTIVITY_KIND_MEMCPY
    UNION ALL SELECT correlationId, deviceId, streamId, start, \"end\" FROM CUPTI_ACTIVITY_KIND_MEMSET"
# A barrier of ranks that share a GPU launches nothing on it.
check "launches without work on the device" 0 "$(value "$trace" "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME r
    JOIN StringIds s ON s.id = r.nameId WHERE s.value LIKE 'cudaLaunchKernel%'
    AND r.correlationId NOT IN (SELECT correlationId FROM ($work_of))
    AND r.correlationId NOT IN (SELECT correlation FROM collectives WHERE operation = 'barrier')")"
check "work on the device without its launch" 0 "$(value "$trace" "SELECT count(*) FROM ($work_of) WHERE correlationId
    NOT IN (SELECT correlationId FROM CUPTI_ACTIVITY_KIND_RUNTIME WHERE correlationId NOT NULL)")"
check "kernels that are there twice" 0 "$(value "$trace" "SELECT count(*) FROM (SELECT 1 FROM CUPTI_ACTIVITY_KIND_KERNEL
    GROUP BY deviceId, streamId, start, \"end\", shortName HAVING count(*) > 1)")"
check "work before its launch" 0 "$(value "$trace" "SELECT count(*) FROM ($work_of) w
    JOIN CUPTI_ACTIVITY_KIND_RUNTIME r USING (correlationId) WHERE w.start < r.start")"
# The next step ends the work that a step leaves on the device: the copy of its loss to the host.
check "work outside the step that launched it and the next" 0 "$(value "$trace" "SELECT count(*) FROM ($work_of) w
    JOIN CUPTI_ACTIVITY_KIND_RUNTIME r USING (correlationId) JOIN SHARD_RANKS k ON k.deviceId = w.deviceId
    JOIN SHARD_STEPS s ON s.rank = k.rank AND r.start >= s.start AND r.start < s.\"end\"
    LEFT JOIN SHARD_STEPS n ON n.rank = s.rank AND n.step = s.step + 1
    WHERE w.start < s.start OR w.\"end\" > n.\"end\"")"
check "work on a stream whose work overlaps" 0 "$(value "$trace" "SELECT count(*) FROM (SELECT start, lag(\"end\") OVER
    (PARTITION BY deviceId, streamId ORDER BY start) AS before FROM ($work_of)) WHERE start < before")"
compare "kernels of a module's forward and backward" \
    "$(value "$trace" "SELECT count(DISTINCT name) FROM kernels WHERE NOT communication")" ">" 5
copies="SELECT copyKind, count(*), sum(bytes) FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE copyKind IN (1, 2) GROUP BY 1 ORDER BY 1"
check "copies to and from the host: kind, count, bytes" "$(list "$host" "$copies")" "$(list "$trace" "$copies")"
collectives="SELECT rank, operation, group_size, count(*), sum(bytes) FROM collectives GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
check "collectives: rank, operation, ranks, count, bytes" "$(list "$host" "$collectives")" "$(list "$trace" "$collectives")"
check "collectives without a time" 0 \
    "$(value "$trace" "SELECT count(*) FROM collectives WHERE start_ns IS NULL AND operation <> 'barrier'")"
modules="SELECT rank, path, calls FROM modules ORDER BY 1, 2"
check "modules and their calls are the processor's" yes \
    "$([[ $(list "$host" "$modules") == "$(list "$trace" "$modules")" ]] && echo yes || echo no)"

section "memory: peak = prediction = the processor's, and what the device says"
check "peak bytes by rank" "$(peaks host)" "$(peaks card)"
check "peak - prediction, largest of any step" 0 "$("$bin/shardscope-trace" query "$trace" memory_against_prediction \
    --format csv | tr -d '\r' | awk -F, 'NR > 1 && NF { d = $5 < 0 ? -$5 : $5; if (d > most) most = d; n = 1 }
    END { print n ? most + 0 : "no row" }')"
said=$(value "$trace" "SELECT s.value || ' ' || CAST(max(c.value) AS INTEGER) FROM SHARD_COUNTERS c JOIN StringIds s
    ON s.id = c.nameId WHERE s.value LIKE '%gpu_memory%' OR s.value LIKE '%device_bytes%'")
if [[ $said =~ ^[a-z_]+\ [0-9]+$ ]]; then
    compare "$said, of which ours are reserved" "${said##* }" ">=" \
        "$(value "$trace" "SELECT CAST(max(c.value) AS INTEGER) FROM SHARD_COUNTERS c JOIN StringIds s ON s.id = c.nameId
            WHERE s.value = 'reserved_bytes'")"
else
    left_out "bytes that the device says are in use" "no counter of them in the trace"
fi

section "every query and every verb on that trace"
for query in "$samples"/queries/*.sql; do
    name=$(basename "$query" .sql)
    [[ $name != staleness ]] || continue # of parameter servers, which no GPU has
    "$bin/shardscope-trace" query "$trace" "$name" --format csv >"$work/out" 2>"$work/err"
    status=$?
    compare "query $name: rows" "$([[ $status == 0 ]] && tail -n +2 "$work/out" | grep -c .)" ">" 0
done
for verb in info summary modules units memory operators kernels collectives overlap temporal idle critical-path stragglers \
    distributed advice steps check; do
    "$bin/shardscope-trace" $verb "$trace" >"$work/out" 2>"$work/err"
    status=$?
    check "verb $verb" 0 "$status$([[ $status == 0 ]] || tail -n 1 "$work/err")"
done

# --- impossible jobs are refused --------------------------------------------------------------------------

section "sentences"
would "two ranks on one card with NCCL" || {
    train refused "$grid" --run.ranks=2 --run.device=cuda --run.comm=nccl --data.path="$text"
    check "two ranks on one card with NCCL: exit status" 1 $?
    says "it names the local process group" "$work/refused.err" 'ranks 0 and 1 share GPU 0' 'run.comm = "local"'
    train refused "$grid" --run.processes=2 --run.device=cuda --data.path="$text"
    check "two processes on one card: exit status" 1 $?
    says "it names both ranks" "$work/refused.err" 'ranks 0 and 1 share GPU 0 of host' 'run.comm = "local"'
}
if $dry; then
    train full "$grid" --data.path="$text" --run.memory_limit=100000
else
    train full "$samples/mlp.toml" --run.ranks=1 --run.steps=1 --run.device=cuda --parallel.mode=none \
        --model.width=32768 --model.layers=96 --data.batch=1
fi
check "out of memory: exit status" 1 $?
says "what was asked, what is held" "$work/full.err" "out of memory: " " bytes for " "allocated are " "parameters"
CUDA_VISIBLE_DEVICES='' train none "$grid" --data.path="$text" --run.device=cuda
check "no GPU: exit status" 1 $?
says "what is missing" "$work/none.err" 'run.device = "cuda"' 'run.device = "cpu"'

# --- the talk's experiment ---------------------------------------------------------------------------------

section "8 x Linear(20480, 20480) in fp32 on 10240 rows a rank: the peak is the account"
talk() { # RANKS WRAP OFFLOAD: whether there was room for it
    local what="ranks $1, $2, offload $3" size predicted free host host_free
    if $dry; then size=(--model.width=256 --data.batch=128); else
        size=(--model.width=20480 --data.batch=10240 --memory.gemm_workspace_bytes=8519680)
    fi
    size+=(--run.ranks="$1" --run.steps=2 --fsdp.wrap="$2" --fsdp.cpu_offload="$3")
    predicted=$("$bin/shardscope-train" "$samples/talk/talk.toml" "${size[@]}" --dry-run --format json |
        sed -n 's/.*"predicted_peak_bytes": *\([0-9]*\).*/\1/p')
    if ! $dry; then
        free=$(nvidia-smi --id="$CUDA_VISIBLE_DEVICES" --query-gpu=memory.free --format=csv,noheader,nounits)
        if (((predicted * $1 >> 20) + 3072 > free)); then
            left_out "$what" "needs $((predicted * $1 >> 20)) MiB and 3 GiB, $free are free"
            return 1
        fi
        # Every rank's rows and, with offload, 8 layers and their gradients.
        host_free=$(awk '/MemAvailable/ { print int($2 / 1024) }' /proc/meminfo)
        host=$((3000 + $1 * 2000))
        if $3; then host=$((host + 26000)); fi
        if ((host > host_free)); then
            left_out "$what" "needs $host MiB of the host, $host_free are free"
            return 1
        fi
    fi
    late "$what" && return
    if train talk "$samples/talk/talk.toml" "${size[@]}" --run.device="$device"; then
        check "$what: peak bytes of every rank" "$predicted" "$(peaks talk | tr ',' '\n' | sort -u | paste -sd,)"
    else
        failed "$what" "$(tail -n 1 "$work/talk.err")"
    fi
    return 0
}
talk 1 root false
talk 1 module:Linear false
talk 1 module:Linear true
talk 8 module:Linear true || talk 4 module:Linear true || talk 2 module:Linear true

# --- compute-sanitizer -------------------------------------------------------------------------------------

section "compute-sanitizer on some kernels' tests"
sanitizer=$(command -v compute-sanitizer || echo "${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer")
if ! would "memcheck and racecheck" && ! late "memcheck and racecheck"; then
    if [[ ! -x $sanitizer || ! -x $tests ]]; then
        left_out "memcheck and racecheck" "no compute-sanitizer, or no test_cuda_kernels_gpu"
    else
        for tool in memcheck racecheck; do
            timeout 80 "$sanitizer" --tool $tool --error-exitcode 9 "$tests" --gtest_brief=1 \
                --gtest_filter='CudaNorm*LayerNorm*:CudaLoss.CrossEntropy*:CudaImages.*Several*:CudaImages.BatchNormsOmit*:CudaImages.AdaptiveAverage*:CudaLoss.TopOne*:CudaAttention*FusedForward:CudaEmbedding*Looks*:CudaOptimizer.*' \
                >"$work/sanitizer.out" 2>&1
            status=$?
            check "$tool: exit status" 0 $status
            ((status == 0)) || tail -n 5 "$work/sanitizer.out"
        done
    fi
fi
finish
