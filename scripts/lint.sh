#!/usr/bin/env bash
# Checks layout, scripts, names of types, includes and code with clang-format, shellcheck, type_names.sh,
# heavy_headers.sh, check_includes.sh and clang-tidy.
#
#   scripts/lint.sh [--quick] [BASE [MOST]]
#
# --quick omits clang's static analyzer, which takes half of the time, and five checks that take a third of the rest
# and rarely find anything; continuous integration runs it.
# clang-tidy checks the four rooms' sources (not tests and benchmarks): with BASE (a commit) only those that changed
# since then or include a header that did, and of these at most MOST, the latest changes first (sources before
# includers). The other checks are quick and always cover everything.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
quick=()
if [[ ${1:-} == --quick ]]; then
    slow=bugprone-reserved-identifier,-bugprone-stringview-nullptr,-bugprone-suspicious-semicolon
    slow+=,-bugprone-multiple-statement-macro,-bugprone-unused-raii
    quick=("--checks=-clang-analyzer-*,-$slow")
    shift
fi
base=${1:-}
most=${2:-}

mapfile -t sources < <(git ls-files '*.cpp' '*.h' '*.c' '*.cu')
echo "-- clang-format: ${#sources[@]} files"
clang-format --dry-run --Werror "${sources[@]}"

mapfile -t scripts < <(git ls-files '*.sh' '*.sbatch' .ci/run)
echo "-- shellcheck: ${#scripts[@]} files"
shellcheck "${scripts[@]}"

echo "-- type_names.sh: ${#sources[@]} files"
scripts/type_names.sh "${sources[@]}"
echo "-- heavy_headers.sh"
scripts/heavy_headers.sh
echo "-- check_includes.sh"
scripts/check_includes.sh

# A build tree of its own, which compiles each source alone.
tree=build/lint
scripts/packages.sh build view test
cmake --preset release -B "$tree" -DSHARDSCOPE_BUILD_TESTS=ON -DSHARDSCOPE_UNITY=OFF -DSHARDSCOPE_PCH=OFF \
    -DCMAKE_CXX_COMPILER_LAUNCHER= >/dev/null
# What this configuration compiles (a target whose library is absent is not there).
mapfile -t compiled < <(sed -n 's|^ *"file": "'"$PWD"'/\(.*\)",\{0,1\}$|\1|p' "$tree/compile_commands.json" |
    grep -E '^(traces|profiler|trainer|viewer)/' | grep -v '/bench/' | sort -u)
if [[ -n $base ]]; then
    # The latest changes come first.
    mapfile -t changed < <({
        git ls-files -o --exclude-standard
        git diff --name-only --diff-filter=d HEAD --
        git log --format= --name-only --diff-filter=d "$base..HEAD"
    } | awk '!seen[$0]++')
    patterns=()
    for file in "${changed[@]}"; do
        case $file in
            *.h) patterns+=(-e "#include \"$file\"") ;;
        esac
    done
    mapfile -t compiled < <({
        printf '%s\n' "${changed[@]}"
        ((${#patterns[@]} == 0)) || grep -lF "${patterns[@]}" "${compiled[@]}" || true
    } | awk 'NR == FNR { known[$0]; next } $0 in known && !seen[$0]++' <(printf '%s\n' "${compiled[@]}") -)
    if [[ -n $most ]] && ((${#compiled[@]} > most)); then
        echo "-- clang-tidy: the $most files that changed last, of ${#compiled[@]}"
        compiled=("${compiled[@]:0:most}")
    fi
fi
echo "-- clang-tidy: ${#compiled[@]} files"
((${#compiled[@]})) || exit 0
# The compile commands are for GCC; clang does not know all of its options. Those of nvcc are omitted: GCC
# compiles the CUDA sources, too, for the tests that play CUDA.
mkdir -p "$tree/tidy"
{
    echo '['
    awk '/^\{/ { entry = "" } /^[{} ]/ { entry = entry $0 "\n" } /^\}/ && entry !~ / -x cu / { printf "%s", entry }' \
        "$tree/compile_commands.json" | sed -E 's/ (-Wno-restrict|-fno-tree-[a-z-]+)//g'
    echo ']'
} >"$tree/tidy/compile_commands.json"
tidy=(clang-tidy --quiet "${quick[@]}" -p "$tree/tidy")
if ! printf '%s\0' "${compiled[@]}" | xargs -0 -n 1 -P "$(nproc)" "${tidy[@]}" 2>/dev/null; then
    echo "lint.sh: clang-tidy found what is printed above; correct it, or say why not with a NOLINT comment." >&2
    exit 1
fi
