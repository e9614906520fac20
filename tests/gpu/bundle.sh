#!/usr/bin/env bash
# Packs everything that a machine with only a GPU and the CUDA toolkit needs: the tools, the CUDA module, the programs
# of run.sh and the distribution's libraries that they need, in one folder and in one archive of it.
#
#   tests/gpu/bundle.sh [-o FOLDER] [--build FOLDER]
#
#   -o FOLDER        shardscope-bundle, unless it is given; must not exist. FOLDER.tar.gz is written next to it
#   --build FOLDER   a configured build with tests and CUDA (build/release, which is configured if necessary)
#
# There: tar xzf FOLDER.tar.gz && FOLDER/run tests/gpu/run.sh. An archive of more than 60 MiB is refused.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tree=$(cd "$here/../.." && pwd)
most=$((60 << 20))

out=shardscope-bundle build=$tree/build/release
while (($#)); do
    case $1 in
        -o | --build)
            (($# > 1)) || { echo "bundle.sh: $1 needs a folder" >&2; exit 2; }
            if [[ $1 == -o ]]; then out=${2%/}; else build=$2; fi
            shift
            ;;
        -h | --help)
            sed -n '2,/^set /{/^set /d; s/^# \{0,1\}//; p}' "${BASH_SOURCE[0]}"
            exit 0
            ;;
        *)
            echo "bundle.sh: \"$1\" is not an option; use -o FOLDER or --build FOLDER" >&2
            exit 2
            ;;
    esac
    shift
done
for taken in "$out" "$out.tar.gz"; do
    [[ ! -e $taken ]] || { echo "bundle.sh: $taken exists; remove it, or name another with -o" >&2; exit 1; }
done

if [[ $build == "$tree/build/release" && ! -f $build/build.ninja ]]; then
    "$tree/scripts/build.sh" release -DSHARDSCOPE_BUILD_TESTS=ON -DSHARDSCOPE_BUILD_VIEWER=OFF shardscope-train >&2
fi
tools=(shardscope-train shardscope-record shardscope-trace test_cuda_kernels_gpu bench_cuda)
libraries=(libshardscope_cuda.so libshardscope_inject.so libshardscope_preload.so)
if ! cmake --build "$build" --target "${tools[@]}" shardscope_cuda shardscope_inject shardscope_preload >&2; then
    echo "bundle.sh: $build does not build what must travel; configure it with -DSHARDSCOPE_BUILD_TESTS=ON where" \
        "nvcc is (-DSHARDSCOPE_CUDA=ON says whether it is found)" >&2
    exit 1
fi

mkdir -p "$out/bin" "$out/lib" "$out/tests/gpu" "$out/samples"
for tool in "${tools[@]}"; do install -s -m 755 "$build/bin/$tool" "$out/bin/"; done
for library in "${libraries[@]}"; do install -s -m 644 "$build/lib/$library" "$out/lib/"; done
install -m 755 "$here"/*.sh "$out/tests/gpu/"
install -m 644 "$here"/*.cu "$here"/*.toml "$here"/*.py "$out/tests/gpu/"
# The two small traces stay here.
cp "$tree"/samples/*.toml "$out/samples/"
cp -r "$tree"/samples/{queries,talk,pytorch} "$out/samples/"
rm -rf "$out"/samples/pytorch/__pycache__

# The libraries of a bare system: C, C++ and their parts. All other linked libraries are packed, and OpenBLAS, which is
# loaded at run time. oneDNN (convolutions and bf16 matmuls on the processor, 38 MiB) is omitted.
needed_by() { # FILE: the paths of the libraries that it links, and they link
    ldd "$1" | sed -n 's/^[^/]*=> \(\/[^ ]*\) .*/\1/p' |
        grep -vE '/(libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s)\.so[.0-9]*$' || true
}
openblas=$(ldconfig -p 2>/dev/null | sed -n 's/.*libopenblas\.so\.0 .*=> //p' | head -n 1)
[[ -n $openblas ]] || { echo "bundle.sh: libopenblas.so.0 is not installed; apt-get install libopenblas0" >&2; exit 1; }
{
    echo "$openblas"
    needed_by "$openblas"
    for file in "$out"/bin/* "$out"/lib/libshardscope*; do needed_by "$file"; done
} | sort -u | while read -r library; do
    install -m 644 "$(readlink -f "$library")" "$out/lib/$(basename "$library")"
    strip --strip-unneeded "$out/lib/$(basename "$library")"
done

cat >"$out/run" <<'END'
#!/usr/bin/env bash
# Runs one of bin/'s programs, or any command, with the libraries of this folder and the toolkit's:
#   ./run shardscope-train samples/mlp.toml --run.device=cuda
#   ./run tests/gpu/run.sh
set -euo pipefail
tree=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cuda=${CUDA_HOME:-/usr/local/cuda}
export LD_LIBRARY_PATH=$tree/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}:$cuda/lib64:$cuda/extras/CUPTI/lib64
export SHARDSCOPE_BIN=$tree/bin PATH=$tree/bin:$PATH
(($#)) || { sed -n '2,4s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 2; }
if [[ -x $tree/$1 && ! -d $tree/$1 ]]; then
    program=$tree/$1
    shift
    set -- "$program" "$@"
fi
exec "$@"
END
chmod +x "$out/run"

# The newest symbols that the target system must have.
newest() { # PREFIX
    objdump -T "$out"/bin/* "$out"/lib/*.so* 2>/dev/null | grep -o "$1[0-9.]*" | sort -Vu | tail -n 1
}
version=$(sed -n 's/^project(shardscope VERSION \([0-9.]*\).*/\1/p' "$tree/CMakeLists.txt")
cat >"$out/README" <<END
Shardscope $version with the libraries that it needs, for $(uname -m) and a system with $(newest GLIBC_), $(newest GLIBCXX_)
or newer and NVIDIA's driver; cuBLASLt, CUPTI and NCCL are the toolkit's there.

./run shardscope-train samples/mlp.toml --run.device=cuda --trace mlp.sqlite
./run tests/gpu/run.sh                  all checks; --part recorder, trainer or speed: ten minutes each at most
./run tests/gpu/run.sh --dry-run        what needs no GPU
END

size=$(du -sb "$out" | cut -f1)
tar -C "$(dirname "$out")" -czf "$out.tar.gz" "$(basename "$out")"
packed=$(stat -c %s "$out.tar.gz")
mib() { awk -v b="$1" 'BEGIN { printf "%.1f MiB", b / 1048576 }'; }
if ((packed > most)); then
    du -ab "$out" | sort -rn | sed -n '2,8p' >&2
    rm -rf "$out" "$out.tar.gz"
    echo "bundle.sh: the archive is $(mib "$packed"), more than $(mib $most); build for fewer architectures" \
        "(-DSHARDSCOPE_CUDA_ARCHITECTURES=90)" >&2
    exit 1
fi
echo "$out: $(mib "$size"), packed $(mib "$packed") in $out.tar.gz"
