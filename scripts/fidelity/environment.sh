# shellcheck shell=bash
# Sourced by the scripts that ask PyTorch. torch_python prints an interpreter that has the pinned PyTorch:
# $SHARDSCOPE_PYTHON or python3 if it does, else that of a virtual environment, which the first call makes.
torch_python() {
    local version environment=build/fidelity candidate
    version=$(sed -n 's/^VERSION = "\(.*\)".*/\1/p' scripts/fidelity/differences.py)
    has_torch() { "$1" -c "import torch; raise SystemExit(torch.__version__.split('+')[0] != '$version')" 2>/dev/null; }
    for candidate in "${SHARDSCOPE_PYTHON:-python3}" "$environment/bin/python"; do
        has_torch "$candidate" && { echo "$candidate"; return; }
    done
    python3 -m venv "$environment"
    "$environment/bin/python" -m pip install --quiet "torch==$version" "numpy<3" >&2
    echo "$environment/bin/python"
}

# with_torch SCRIPT ARGUMENT...: runs it with that interpreter and --tool, our shardscope-train: that of the folder $BIN, if
# it is set, else one that is built first.
with_torch() {
    local script=$1 bin=${BIN:-build/release/bin} python
    shift
    [ -n "${BIN:-}" ] || scripts/build.sh release shardscope-train >&2
    python=$(torch_python)
    exec "$python" "$script" --tool "$bin/shardscope-train" "$@"
}
