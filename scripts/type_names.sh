#!/usr/bin/env bash
# No two types may have the same name. A program that links both keeps one copy of the functions that the compiler
# makes for them, and so silently destroys, copies or frees objects of one type with the size of the other.
#
#   scripts/type_names.sh [FILE ...]
#
# Prints each class, struct, union and enumeration of C and C++ that two of the files (default: all of the
# repository) define under one qualified name, with both places, and then fails. Types of anonymous namespaces (and
# TEST_FILE, of tests) and of functions are local, and a file that defines a type twice does so under conditions that
# exclude each other.
set -euo pipefail
if (($# == 0)); then
    cd "$(dirname "${BASH_SOURCE[0]}")/.."
    mapfile -t found < <(git ls-files '*.cpp' '*.h' '*.c' '*.cu')
    set -- "${found[@]}"
fi
if ! ctags --version 2>/dev/null | grep -q 'Universal Ctags'; then
    echo "type_names.sh: Universal Ctags is missing; install it with scripts/packages.sh lint." >&2
    exit 2
fi

# One of two sources is linked: a library that the tests play.
played=tests/trainer/played_cuda/matmul_library.cpp
files=()
for file in "$@"; do
    [[ $file == "$played" ]] || files+=("$file")
done

# SCOPE|NAME|FILE:LINE of each type.
types=$(printf '%s\n' "${files[@]}" | ctags -L - --languages=C,C++ --langmap=C++:+.cu --kinds-C=sgu --kinds-C++=csgu \
    -x --_xformat='%{scope}|%{scopeKind}|%N|%F:%n')
if ! awk -F '|' '
    $1 ~ /__anon|TEST_FILE/ || $3 ~ /^__anon/ || $2 == "function" { next }
    {
        name = ($1 == "" ? "" : $1 "::") $3
        file = $4
        sub(/:[0-9]+$/, "", file)
        if (!(name in first)) {
            first[name] = $4
            of[name] = file
        } else if (of[name] != file) {
            printf "%s: %s is a type of %s, too\n", $4, name, first[name]
            twice = 1
        }
    }
    END { exit twice }' <<<"$types"; then
    echo "type_names.sh: give one of the types above another name, or put it into an anonymous namespace." >&2
    exit 1
fi
