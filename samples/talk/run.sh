#!/usr/bin/env bash
# Runs the FSDP talk's four configurations and prints its tables side by side: peak memory (predicted at the talk's
# size, trained at that of samples/talk/talk.toml), module tree, Execution Summary.
#
#   samples/talk/run.sh [-o FOLDER] [--section.key=value ...]
#
# The traces are written to FOLDER (talk-out). Keys of the job may be set, such as --model.width=512 --data.batch=256
# for a smaller machine. The tools are searched in $SHARDSCOPE_BIN, build/release/bin of this clone, and the PATH.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

out=talk-out
keys=()
while (($#)); do
    case $1 in
        -o)
            (($# > 1)) || { echo "run.sh: -o needs a folder" >&2; exit 2; }
            out=$2
            shift
            ;;
        --*.*=*) keys+=("$1") ;;
        -h | --help)
            sed -n '2,/^set /{/^set /d; s/^# \{0,1\}//; p}' "${BASH_SOURCE[0]}"
            exit 0
            ;;
        *)
            echo "run.sh: \"$1\" is not an option; use -o FOLDER or --section.key=value" >&2
            exit 2
            ;;
    esac
    shift
done

tool() { # NAME: its path
    local folder
    for folder in "${SHARDSCOPE_BIN:-}" "$here/../../build/release/bin"; do
        if [[ -n $folder && -x $folder/$1 ]]; then
            echo "$folder/$1"
            return
        fi
    done
    command -v "$1" || { echo "run.sh: $1 is not there; build it (./quickstart.sh) or set SHARDSCOPE_BIN" >&2; exit 1; }
}
train=$(tool shardscope-train)
trace=$(tool shardscope-trace)
say() { printf '\n== %s\n\n' "$*"; }

# The configurations in the order of all tables: names, settings, and the talk's peaks in MiB.
names=("root wrap" "per Linear" "per Linear + offload" "NO_SHARD")
strategies=(FULL_SHARD FULL_SHARD FULL_SHARD NO_SHARD)
wraps=(root module:Linear module:Linear root)
offloads=(false false true false)
published=("43,218.2" "17,616.6" "16,016.6" "-")

say "Peak memory at the talk's size: 20480 wide, 10240 rows per rank, 8 ranks; predicted, nothing trained"
printf '%-22s %12s %12s %18s\n' configuration "the talk" predicted "predicted, bytes"
for i in "${!names[@]}"; do
    bytes=$("$train" "$here/talk.toml" --dry-run --format json --model.width=20480 --data.batch=10240 \
        --memory.gemm_workspace_bytes=8519680 --fsdp.sharding_strategy="${strategies[i]}" --fsdp.wrap="${wraps[i]}" \
        --fsdp.cpu_offload="${offloads[i]}" | sed -n 's/.*"predicted_peak_bytes": *\([0-9]*\).*/\1/p')
    awk -v name="${names[i]}" -v talk="${published[i]}" -v bytes="$bytes" '
        function grouped(n, tail) { # 12345.6 -> 12,345.6
            tail = ""
            if (match(n, /\./)) { tail = substr(n, RSTART); n = substr(n, 1, RSTART - 1) }
            while (length(n) > 3) { tail = "," substr(n, length(n) - 2) tail; n = substr(n, 1, length(n) - 3) }
            return n tail
        }
        BEGIN { printf "%-22s %12s %12s %18s\n", name, talk, grouped(sprintf("%.1f", bytes / 1048576)), grouped(bytes "") }'
done

say "The same four and their neighbours, trained"
"$train" sweep "$here/talk.toml" "${keys[@]}" --fsdp.sharding_strategy=FULL_SHARD,NO_SHARD \
    --fsdp.wrap=root,module:Linear --fsdp.cpu_offload=false,true -o "$out" --overwrite

traces=()
for i in "${!names[@]}"; do
    traces+=("$out/sharding_strategy=${strategies[i]},wrap=${wraps[i]/:/-},cpu_offload=${offloads[i]}.sqlite")
done

say "Module tree of rank 0: ${names[0]} | ${names[1]}"
tree() { # TRACE: the modules' names, indented by their depth
    "$trace" modules "$1" --rank 0 --format csv |
        awk -F, 'NR > 1 { depth = gsub("/", "/", $2); printf "%" 2 * depth "s%s\n", "", $3 }'
}
paste -d '|' <(tree "${traces[0]}") <(tree "${traces[1]}") | awk -F'|' '{ line = sprintf("%-40s %s", $1, $2); sub(/ +$/, "", line); print line }'

summary() { # FOLD: Execution Summary of all four, rank 0; FOLD 1 counts Communication as Kernel, as the talk's did
    local i
    for i in "${!names[@]}"; do
        "$trace" summary "${traces[i]}" --rank 0 --format csv | sed "s/^/$i,/"
    done | awk -F, -v fold="$1" -v names="$(IFS=,; echo "${names[*]}")" '
        BEGIN { count = split(names, name, ",") }
        $2 == "rank" { next }
        {
            category = $4
            if (fold && category == "Communication") category = "Kernel"
            if (!(category in seen)) { seen[category] = 1; order[++categories] = category }
            us[category, $1] += $5
            percent[category, $1] += $6
        }
        END {
            printf "%-18s", "us (%)"
            for (i = 1; i <= count; ++i) printf " %24s", name[i]
            print ""
            for (c = 1; c <= categories; ++c) {
                printf "%-18s", order[c]
                for (i = 0; i < count; ++i) printf " %24s", sprintf("%.0f (%.2f)", us[order[c], i], percent[order[c], i])
                print ""
            }
        }'
}
say "Execution Summary of rank 0, mean of the steps"
summary 0
say "The same as the talk's tool counted: Communication is Kernel"
summary 1

cat <<END

The talk's Execution Summary, offload off | on: Kernel 100.00 | 89.04 %, Memcpy 0 | 0.85 %, CPU Exec 0 | 9.97 %,
Other 0 | 0.14 %; average step 52,133,082 | 62,136,475 us. samples/talk/README.md explains how to compare ours with it.
Look closer: shardscope-view $out/*.sqlite --panel compare
END
