#!/usr/bin/env bash
# The Debian packages that Shardscope needs, by purpose, and their installation.
#
#   scripts/packages.sh [--list] PURPOSE ...      PURPOSE: build, mpi, view, test, lint, sanitize or package
#
# Installs only the missing ones, with apt-get and without questions (with sudo if the user is not root). --list
# prints the names instead. If it cannot install them, it names the missing packages and stops.
set -euo pipefail

packages_of() {
    case $1 in
        # To build the tools and to train: a compiler, the libraries, the BLAS and the
        # convolutions and bfloat16 matmuls (oneDNN) that are loaded at run time.
        build) echo g++ cmake ninja-build pkg-config libsqlite3-dev libfmt-dev libcli11-dev nlohmann-json3-dev libsimdjson-dev \
            zlib1g-dev libutf8proc-dev libssl-dev libtomlplusplus-dev libasio-dev libgloo-dev libopenblas0 libdnnl-dev \
            libpng-dev libjpeg-dev libelf-dev libexpat1-dev liburing-dev ;;
        # To build the module for MPI and to start jobs under mpirun.
        mpi) echo libopenmpi-dev openmpi-bin ;;
        # To build the viewer and to draw, also without a display.
        view) echo libimgui-dev libstb-dev libutf8proc-dev libglfw3-dev libgl-dev libegl-dev libfreetype-dev libpng-dev \
            libgl1-mesa-dri fonts-dejavu-core ;;
        # To build and run the tests; a virtual display for the viewer's window, its mouse and keys.
        test) echo libgtest-dev libgmock-dev libx11-dev sqlite3 xvfb xauth xdotool iproute2 universal-ctags python3 ;;
        lint) echo clang-format clang-tidy shellcheck universal-ctags git ;;
        # To test under sanitizers and to fuzz the readers of foreign files: a compiler with these and libFuzzer.
        sanitize) echo clang libclang-rt-14-dev lld ;;
        # For cpack, which uses these to find what a .deb depends on.
        package) echo dpkg-dev file ;;
        *)
            echo "packages.sh: \"$1\" is not a purpose; use build, mpi, view, test, lint, sanitize or package." >&2
            exit 2
            ;;
    esac
}

list=false
if [[ ${1:-} == --list ]]; then
    list=true
    shift
fi
if (($# == 0)); then
    echo "packages.sh: say what for; use build, mpi, view, test, lint, sanitize or package." >&2
    exit 2
fi

wanted=()
for purpose in "$@"; do
    names=$(packages_of "$purpose")
    read -ra names <<<"$names"
    wanted+=("${names[@]}")
done
if $list; then
    printf '%s\n' "${wanted[@]}"
    exit 0
fi

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    echo "packages.sh: this system has no apt-get; install what these Debian packages hold, then build with" \
        "cmake --preset release: ${wanted[*]}" >&2
    exit 1
fi

missing=()
for name in "${wanted[@]}"; do
    status=$(dpkg-query --show --showformat='${db:Status-Status}' "$name" 2>/dev/null || true)
    [[ $status == installed ]] || missing+=("$name")
done
((${#missing[@]})) || exit 0

as_root=()
if ((EUID != 0)); then
    if ! command -v sudo >/dev/null; then
        echo "packages.sh: these packages are missing and there is no sudo; install them as root: ${missing[*]}" >&2
        exit 1
    fi
    as_root=(sudo)
fi

echo "-- installing ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300)
if ! { "${apt[@]}" update && "${apt[@]}" install --yes --no-install-recommends "${missing[@]}"; } \
    >"$log" 2>&1 </dev/null; then
    tail -n 15 "$log" >&2
    echo "packages.sh: apt-get could not install them (is this machine offline?); install these packages, then run" \
        "this again: ${missing[*]}" >&2
    exit 1
fi
