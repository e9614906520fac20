#!/usr/bin/env bash
# Configures a preset if needed and builds targets of it.
#
#   scripts/build.sh PRESET [-DNAME=VALUE ...] [TARGET ...]
#
# An existing build folder keeps its options unless they are given; a new one has no tests unless they are
# requested. Output is short: all of it is shown only if something fails.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

preset=$1
shift
options=() targets=()
for argument in "$@"; do
    case $argument in
        -D*) options+=("$argument") ;;
        *) targets+=("$argument") ;;
    esac
done
if [[ ! -f build/$preset/CMakeCache.txt && " ${options[*]} " != *" -DSHARDSCOPE_BUILD_TESTS="* ]]; then
    options+=(-DSHARDSCOPE_BUILD_TESTS=OFF)
fi
((${#targets[@]})) || targets=(all)

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Reads the build's lines, keeps them in the log and shows the progress: a bar on a terminal, else a line for each
# quarter.
progress() {
    local line last=0 began=$SECONDS
    while IFS= read -r line; do
        printf '%s\n' "$line" >>"$log"
        [[ $line =~ ^\[([0-9]+)/([0-9]+)\]\  ]] || continue
        local n=${BASH_REMATCH[1]} all=${BASH_REMATCH[2]}
        local percent=$((100 * n / all)) left=""
        # The first few edges say little about the rest.
        if ((SECONDS - began >= 10 && n < all)); then
            left=", about $((((SECONDS - began) * (all - n) / n + 59) / 60)) min left"
        fi
        if [[ -t 1 ]]; then
            local bar
            printf -v bar '%*s' $((percent * 30 / 100)) ''
            printf '\r   [%-30s] %d of %d files%s\033[K' "${bar// /#}" "$n" "$all" "$left"
        elif ((percent / 25 > last)); then
            last=$((percent / 25))
            ((n == all)) || echo "   $n of $all files$left"
        fi
    done
    [[ ! -t 1 ]] || printf '\r\033[K'
}

# Only the compiler's own messages, without the lines that count files and the commands. A message of a compiler or
# linker begins with a place or a name and a colon.
compiler_lines() {
    grep -vE '^\[[0-9]+/[0-9]+\] |^(: && )?/[^ ]*[^ :] (.* )?-[a-zA-Z]' "$log" >&2 || true
}

started=$SECONDS
if ! cmake --preset "$preset" "${options[@]}" >"$log" 2>&1; then
    cat "$log" >&2
    echo "build.sh: cmake could not configure the preset $preset; the lines above say why." >&2
    exit 1
fi
grep -E '^-- CUDA Toolkit' "$log" || true
echo "-- building $preset: ${targets[*]}"
: >"$log"
if ! NINJA_STATUS='[%f/%t] ' cmake --build --preset "$preset" --target "${targets[@]}" 2>&1 | progress; then
    compiler_lines
    echo "build.sh: the preset $preset does not build; the lines above say why." >&2
    exit 1
fi
echo "-- built $preset in $((SECONDS - started)) s"
