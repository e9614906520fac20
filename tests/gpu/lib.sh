# Functions that the parts of run.sh share; they source this file.
#
#   start "$@"        reads [--dry-run] FOLDER and sets dry, bin, work (a folder that is removed at the end), device
#   check, near, least, most, says      a line each; finish prints their count and exits
#
# A dry run does what needs no GPU: it makes its checks on runs on the processor, and lists the remaining ones.
# shellcheck shell=bash
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tree=$(cd "$here/../.." && pwd)
dry=false
export device=cuda
failures=0
checks=0
part=$(basename "$0" .sh)

# The bundle's libraries, and the toolkit's if the system does not find them.
for folder in "$tree/lib" "${CUDA_HOME:-/usr/local/cuda}"/{lib64,extras/CUPTI/lib64}; do
    [[ -d $folder ]] && LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder
done
export LD_LIBRARY_PATH

not_run() { # WHY: nothing of this part
    echo "not run: $*"
    exit 77
}

start() {
    if [[ ${1:-} == --dry-run ]]; then
        dry=true
        export device=cpu
        shift
    fi
    local folder
    for folder in "${1:-}" "$tree/bin" "$tree/build/release/bin"; do
        if [[ -n $folder && -x $folder/shardscope-trace ]]; then
            bin=$(cd "$folder" && pwd)
            break
        fi
    done
    [[ -n ${bin:-} ]] || not_run "build first, or name the folder of shardscope-trace"
    if ! $dry; then
        nvidia-smi -L 2>/dev/null | grep -q '^GPU' || not_run "no GPU"
        nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | sed 's/^/GPU     /'
        echo "date    $(date -u +%Y-%m-%d)"
    fi
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
}

section() { echo "--- $*"; }

passed() { # WHAT FOUND
    checks=$((checks + 1))
    echo "ok      $1${2:+: $2}"
}
failed() { # WHAT WHY
    checks=$((checks + 1))
    failures=$((failures + 1))
    echo "FAILED  $1${2:+: $2}"
}
left_out() { # WHAT WHY
    echo "not run $1: $2"
}
# In a dry run: prints that a check would be made, and succeeds.
would() { # WHAT
    $dry && echo "would   $1"
}

check() { # WHAT EXPECTED FOUND: the same, and not nothing
    if [[ -n $2 && $2 == "$3" ]]; then passed "$1" "$3"; else failed "$1" "expected ${2:-something}, found ${3:-nothing}"; fi
}
compare() { # WHAT VALUE OPERATOR BOUND
    if awk -v a="$2" -v b="$4" "BEGIN { exit !(a != \"\" && a + 0 $3 b) }"; then
        passed "$1" "$2 ($3 $4)"
    else
        failed "$1" "${2:-nothing} is not $3 $4"
    fi
}
near() { # WHAT TOLERANCE EXPECTED FOUND: numbers with commas between, the largest relative difference
    local worst
    worst=$(awk -v a="$3" -v b="$4" 'BEGIN {
        n = split(a, x, ","); m = split(b, y, ",")
        if (n == 0 || n != m) { print "nothing to compare"; exit }
        for (i = 1; i <= n; ++i) {
            if (x[i] !~ /[0-9]/ || y[i] !~ /[0-9]/) { print "no number"; exit }
            size = x[i] < 0 ? -x[i] : x[i]
            difference = x[i] - y[i]; if (difference < 0) difference = -difference
            if (size > 0) difference /= size
            if (difference > worst) worst = difference
        }
        printf "%.2g\n", worst }')
    case $worst in
        no*) failed "$1" "$worst: expected \"$3\", found \"$4\"" ;;
        *) if awk -v a="$worst" -v b="$2" 'BEGIN { exit !(a <= b) }'; then
            passed "$1" "differs by $worst at most (tolerance $2)"
        else
            failed "$1" "differs by $worst, tolerance $2: expected $3, found $4"
        fi ;;
    esac
}
says() { # WHAT FILE TEXT ...: the file contains each TEXT
    local what=$1 file=$2 text
    shift 2
    for text in "$@"; do
        grep -qF -- "$text" "$file" || {
            failed "$what" "no \"$text\" in: $(tail -n 1 "$file")"
            return
        }
    done
    passed "$what" "$(tail -n 1 "$file")"
}

# Whether so much of the part's ten minutes has passed that WHAT is skipped; prints so.
late() { # WHAT
    ((SECONDS > 420)) && left_out "$1" "$SECONDS s of ten minutes are gone"
}

value() { # TRACE SQL: the one value that it gives
    "$bin/shardscope-trace" query "$1" "$2" --format csv 2>&1 | tail -n 1 | tr -d '"\r'
}
list() { # TRACE SQL: its rows, each as values with commas, with blanks between
    "$bin/shardscope-trace" query "$1" "$2" --format csv 2>&1 | tail -n +2 | tr -d '"\r' | tr '\n' ' '
}
median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

finish() {
    local how=""
    $dry && how=" (dry run: on the processor)"
    if ((failures > 0)); then
        echo "$part: $failures of $checks checks failed$how, $SECONDS s"
        exit 1
    fi
    echo "$part: all $checks checks passed$how, $SECONDS s"
    exit 0
}
