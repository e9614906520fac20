#!/usr/bin/env bash
# Prints what building and testing cost on an otherwise idle machine.
#
#   scripts/build_times.sh [--tools]
#
# Builds what quickstart.sh builds; then (not with --tools) builds and runs the tests, and builds again after changing a
# line of a source and of a header; all in folders that are removed afterwards. Prints processor seconds (of all
# compilers and linkers) and wall time, the ten most expensive sources, and the ten most expensive headers of other
# projects and of the standard library that are not precompiled: the time that each takes alone, times the number of
# compilations that read it.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# The compiler's launcher: runs the compiler, and writes its processor seconds and its output file.
if [[ ${1:-} == --compile ]]; then
    shift
    made=""
    for ((i = 1; i < $#; ++i)); do
        [[ ${!i} != -o ]] || { next=$((i + 1)); made=${!next}; }
    done
    times=$(mktemp)
    trap 'rm -f "$times"' EXIT
    status=0
    TIMEFORMAT='%U %S'
    { time "$@" 2>&3; } 3>&2 2>"$times" || status=$?
    awk -v made="$made" 'END { printf "%.2f %s\n", $1 + $2, made }' "$times" >>"$SHARDSCOPE_COMPILE_LOG"
    exit "$status"
fi

tools_only=false
case ${1:-} in
    "") ;;
    --tools) tools_only=true ;;
    *)
        echo "build_times.sh: \"$1\" is not an option; use --tools or nothing." >&2
        exit 2
        ;;
esac

cd "$here"
folder=$(mktemp -d)
changed=()
put_back() {
    for file in "${changed[@]}"; do
        [[ ! -f $folder/${file//\//_} ]] || cp -p "$folder/${file//\//_}" "$file"
    done
    rm -rf "$folder"
}
trap put_back EXIT
export SHARDSCOPE_COMPILE_LOG=$folder/compiles
: >"$SHARDSCOPE_COMPILE_LOG"

row() { printf '%-46s %14s %14s\n' "$@"; }
# NAME COMMAND ...: runs it and prints a row; the processor seconds are those of all its children.
timed() {
    local name=$1
    shift
    local real user system
    TIMEFORMAT='%R %U %S'
    if ! { time "$@" >"$folder/log" 2>&1; } 2>"$folder/time"; then
        tail -n 40 "$folder/log" >&2
        echo "build_times.sh: $name failed; the lines above say why." >&2
        exit 1
    fi
    read -r real user system <"$folder/time"
    row "$name" "$(awk "BEGIN { printf \"%.1f\", $user + $system }")" "$real"
}
configure() { # FOLDER OPTION ...
    local into=$1
    shift
    cmake -S . -B "$into" -G Ninja -DCMAKE_BUILD_TYPE=Release -DSHARDSCOPE_CUDA_ARCHITECTURES=90 \
        -DSHARDSCOPE_PCH=ON -DSHARDSCOPE_UNITY=ON \
        "-DCMAKE_CXX_COMPILER_LAUNCHER=$here/scripts/build_times.sh;--compile" "$@"
}
build() { ninja -C "$@"; }
change() { # FILE: appends a line that changes the compiled code
    cp -p "$1" "$folder/${1//\//_}"
    changed+=("$1")
    printf '\nnamespace shardscope { [[maybe_unused]] inline int g_build_times_%s = 0; }\n' "$RANDOM" >>"$1"
}

echo "$(date -u +%Y-%m-%d), $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores, $(c++ --version | head -n 1)"
row "" "processor s" "clock s"
timed "configure" configure "$folder/tools" -DSHARDSCOPE_BUILD_TESTS=OFF
timed "the four tools (quickstart.sh)" build "$folder/tools" tools
cp "$SHARDSCOPE_COMPILE_LOG" "$folder/tools_compiles"
test_one() { # PROGRAM TARGET ...: builds it and the targets, and runs it
    build "$folder/tests" "$@" && "$folder/tests/bin/$1" >"$folder/one"
}
if ! $tools_only; then
    configure "$folder/tests" -DSHARDSCOPE_BUILD_TESTS=ON -DSHARDSCOPE_WERROR=ON >"$folder/log" 2>&1
    timed "everything with its tests (run_tests.sh)" build "$folder/tests"
    timed "the tests" ctest --test-dir "$folder/tests" -j $((2 * $(nproc) + 1)) -LE 'soak|perf'
    change traces/analysis/time/summary.cpp
    timed "a line of summary.cpp: its test" test_one analysis_test
    change trainer/plan/plan.h
    timed "a line of plan.h: the tools and its test" test_one test_plan tools
    timed "and every other test that includes it" build "$folder/tests"
fi

echo
echo "Sources that take longest, of the tools:"
sort -rn "$folder/tools_compiles" | head -n 10 | awk '{ printf "%8.1f s  %s\n", $1, $2 }'

echo
echo "Headers that cost most, of the tools (but for those that are compiled once): alone, times the compilations that read it"
ninja -C "$folder/tools" -t deps | awk '
    /^[^ ].*: #deps/ { for (h in seen) ++readers[h]; delete seen; next }
    /^    \/usr\/include\// { seen[$1] }
    END { for (h in seen) ++readers[h]; for (h in readers) print readers[h], h }' >"$folder/readers"
# The headers that our own sources name.
git grep -hoE '^#include <[A-Za-z0-9_/.+]+>' -- traces profiler trainer viewer | sed 's/#include <//; s/>//' | sort -u |
    while read -r header; do
        ! grep -qF "<$header>" cmake/ShardscopeBuild.cmake || continue
        readers=$(awk -v name="/$header" 'substr($2, length($2) - length(name) + 1) == name { print $1; exit }' "$folder/readers")
        [[ -n $readers ]] || continue
        printf '#include <%s>\n' "$header" >"$folder/one.cpp"
        TIMEFORMAT='%U'
        seconds=$({ time c++ -std=c++20 -I/usr/include/imgui -I/usr/include/stb -fsyntax-only "$folder/one.cpp" \
            >"$folder/log" 2>&1; } 2>&1) || continue
        awk -v s="$seconds" -v n="$readers" -v h="$header" 'BEGIN { printf "%8.1f s  %5.2f s x %3d  %s\n", s * n, s, n, h }'
    done | sort -rn | head -n 10
