#!/usr/bin/env bash
# Builds Shardscope in a fresh clone, trains a small GPT under FSDP wrapped in two ways, and compares the traces.
#
#   ./quickstart.sh [--no-view]
#
# Installs the Debian packages that are missing, builds the four tools, and trains samples/gpt.toml with one FSDP
# unit per block and again with a single unit. Then it opens the viewer on both traces or, without a
# display or with --no-view, draws its panels to PNG. It writes to build/ and quickstart-out/ only.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

view=true
for argument in "$@"; do
    case $argument in
        --no-view) view=false ;;
        -h | --help)
            sed -n '2,/^set /{/^set /d; s/^# \{0,1\}//; p}' "${BASH_SOURCE[0]}"
            exit 0
            ;;
        *)
            echo "quickstart.sh: \"$argument\" is not an option; use --no-view or nothing." >&2
            exit 2
            ;;
    esac
done

say() { printf '\n== %s\n' "$*"; }

say "Packages"
scripts/packages.sh build view

say "Build"
scripts/build.sh release tools
bin=build/release/bin
out=quickstart-out
mkdir -p "$out"

say "Train a GPT with 4 ranks under FULL_SHARD, one FSDP unit per block"
"$bin/shardscope-train" samples/gpt.toml --run.steps=50 --trace "$out/gpt-block.sqlite" --overwrite

say "The same with the whole model as one unit"
"$bin/shardscope-train" samples/gpt.toml --run.steps=50 --fsdp.wrap=root --trace "$out/gpt-root.sqlite" --overwrite

say "Both compared"
"$bin/shardscope-trace" compare "$out/gpt-block.sqlite" "$out/gpt-root.sqlite"

if $view && [[ -n ${DISPLAY:-}${WAYLAND_DISPLAY:-} ]]; then
    say "Viewer (close its window to end; --no-view draws pictures instead)"
    if "$bin/shardscope-view" "$out/gpt-block.sqlite" "$out/gpt-root.sqlite" --panel compare; then
        exit 0
    fi
    echo "quickstart.sh: the viewer could not open its window; drawing its panels instead." >&2
fi

say "Pictures"
draw() { # NAME PANEL FILE ... : draws one panel
    local picture=$out/$1.png panel=$2
    shift 2
    "$bin/shardscope-view" "$@" --panel "$panel" --screenshot "$picture"
}
draw modules modules "$out/gpt-block.sqlite"
draw summary summary "$out/gpt-block.sqlite"
draw memory memory "$out/gpt-block.sqlite"
draw timeline timeline "$out/gpt-block.sqlite"
draw compare compare "$out/gpt-block.sqlite" "$out/gpt-root.sqlite"
# One step in the middle of the run, from the first rank's start to the last rank's end.
step=$("$bin/shardscope-trace" query "$out/gpt-block.sqlite" --format csv \
    "SELECT printf('%dns:%dns', min(start_ns), max(end_ns)) FROM steps WHERE step = (SELECT max(step) / 2 FROM steps)" |
    tail -n 1)
draw step timeline "$out/gpt-block.sqlite" --range "$step"

say "Done: traces and pictures are in $out/"
ls -1sh "$out"
echo "Look closer with: $bin/shardscope-view $out/gpt-block.sqlite $out/gpt-root.sqlite"
