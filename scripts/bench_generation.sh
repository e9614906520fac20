#!/usr/bin/env bash
# Prints how fast a GPT of 6 layers, 384 wide, continues a prompt of 256 tokens by 256 more, with a key/value cache, with
# the whole context computed again for each token, and with weights in int8: medians of alternating runs, their ratios, the
# goal, and the memory of the weights.
#
#   scripts/bench_generation.sh [ROUNDS]     some minutes; needs an otherwise idle machine
#
# BIN: a folder with shardscope-train and shardscope-trace that are built already.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bin=${BIN:-build/release/bin}
[[ -n ${BIN:-} ]] || scripts/build.sh release shardscope-train shardscope-trace >&2
rounds=${1:-5}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/job.toml" <<'TOML'
[run]
steps = 20
ranks = 1
[model]
type = "gpt"
layers = 6
width = 384
heads = 6
context = 512
[data]
type = "text"
path = "/usr/share/common-licenses"
batch = 1
[parallel]
mode = "none"
[optimizer]
type = "adamw"
lr = 0.001
TOML
"$bin/shardscope-train" "$folder/job.toml" --checkpoint.save="$folder/save" >/dev/null 2>"$folder/log" || { cat "$folder/log" >&2; exit 1; }
prompt=$(head -c 256 /usr/share/common-licenses/GPL-3 | tr '\n' ' ')

# generate NAME TEXTS FLAG...: a line of tokens/s, ms until the first token, ms of a token: median, 95 %, 99 %.
generate() {
    local name=$1 texts=$2 words=()
    shift 2
    for ((t = 0; t < texts; ++t)); do words+=(--generate "$prompt"); done
    "$bin/shardscope-train" "$folder/job.toml" --checkpoint.load="$folder/save" "${words[@]}" --tokens 256 --format json "$@" \
        >"$folder/$name.json" 2>/dev/null
    sed -E 's/.*"continued":"(.*)"\}\],"tokens":.*/\1/' "$folder/$name.json" >"$folder/$name.text"
    sed -E 's/.*"first_token_s":([0-9.e-]+).*"tokens_per_s":([0-9.e-]+).*"median":([0-9.e-]+),"p95":([0-9.e-]+),"p99":([0-9.e-]+).*/\2 \1 \3 \4 \5/' \
        "$folder/$name.json" | awk '{ print $1, 1e3 * $2, $3, $4, $5 }' >>"$folder/$name"
}
for ((i = 0; i < rounds; ++i)); do
    generate whole 1 --no-cache
    generate cache 1
    generate batch 4
    generate int8 1 --weights int8
    generate int8batch 4 --weights int8
    cmp -s "$folder/whole.text" "$folder/cache.text" || { echo "bench_generation.sh: the texts differ" >&2; exit 1; }
done
median() { sort -g | awk '{ v[NR] = $1 } END { print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'; }
of() { awk -v c="$2" '{ print $c }' "$folder/$1" | median; }

printf 'GPT 6 x 384, context 512: 256 tokens after a prompt of 256, medians of %s alternating runs\n\n' "$rounds"
printf '%-28s %10s %14s %14s %8s %8s\n' '' 'tokens/s' 'first, ms' 'a token, ms' '95 %' '99 %'
for row in 'whole:whole context each time' 'cache:key/value cache' 'int8:cache, weights in int8' \
    'batch:cache, 4 texts together' 'int8batch:in int8, 4 texts together'; do
    name=${row%%:*}
    printf '%-28s %10.1f %14.1f %14.2f %8.2f %8.2f\n' "${row#*:}" "$(of "$name" 1)" "$(of "$name" 2)" "$(of "$name" 3)" \
        "$(of "$name" 4)" "$(of "$name" 5)"
done
awk -v a="$(of cache 1)" -v b="$(of whole 1)" 'BEGIN { printf "\nThe cache gives %.1f times as many tokens/s (goal: at least 20); the texts are the same\n", a / b }'
awk -v a="$(of int8 1)" -v b="$(of cache 1)" -v c="$(of int8batch 1)" -v d="$(of batch 1)" \
    'BEGIN { printf "Weights in int8 give %.1f times as many, of 4 texts %.1f times\n", a / b, c / d }'
# weights TYPE: their bytes, which the trace of a short run shows.
weights() {
    generate memory 1 --weights "$1" --trace "$folder/$1.sqlite"
    "$bin/shardscope-trace" memory "$folder/$1.sqlite" --format json | sed -E 's/.*"at_peak":\{"parameters":([0-9]+),.*/\1/'
}
awk -v a="$(weights fp32)" -v b="$(weights int8)" 'BEGIN { printf "Parameters: %.1f MB in fp32, %.1f MB with weights of linear layers in int8\n", a / 1e6, b / 1e6 }'
