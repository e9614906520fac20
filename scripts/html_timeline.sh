#!/usr/bin/env bash
# The HTML timeline in headless Chromium: writes pages with shardscope-trace, opens them and compares what they show with
# SQL on their traces (html_timeline.py).
#
#   scripts/html_timeline.sh [--build FOLDER] [--pictures FOLDER] [--small]
#
# --small: a trace whose names are markup; a test of CTest, which needs chromedriver and skips (77) without.
# Else also a sample, and traces of 1 and 10 million events, with the time and the memory that writing takes: needs bench_viewer, and
# 1 GB in the temporary folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build=build/release pictures=() small=
while (($# > 0)); do
    case $1 in
        --build) build=$2 && shift 2 ;;
        --pictures) pictures=(--pictures "$2") && shift 2 ;;
        --small) small=yes && shift ;;
        *) sed -n '2,10s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
    esac
done
for program in python3 chromedriver; do
    if ! command -v "$program" >/dev/null; then
        echo "html_timeline: skipped: $program is not installed (apt-get install chromium chromium-driver)"
        exit 77
    fi
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trace=$build/bin/shardscope-trace
measured=()
[[ -x /usr/bin/time ]] && measured=(/usr/bin/time -f "  written in %e s, %U s of the processor, %M KiB of memory")

# page TRACE NAME: writes the page, and checks it.
page() {
    "${measured[@]}" "$trace" timeline "$1" -o "$folder/$2.html"
    python3 scripts/html_timeline.py "$1" "$folder/$2.html" "${pictures[@]}"
}

cp samples/traces/mlp-linear.sqlite "$folder/hostile.sqlite"
python3 - "$folder/hostile.sqlite" <<'PYTHON'
import sqlite3
import sys

NAMES = ["</script><img src=x onerror=\"document.title='owned'\">", "<!--<script>document.title='owned'</script>",
         "'; DROP TABLE StringIds; --", "a\u2028b\u2029\"quoted\"\\", "<iframe src='javascript:1'></iframe>${1}`"]
with sqlite3.connect(sys.argv[1]) as database:
    ids = [row[0] for row in database.execute("SELECT id FROM StringIds WHERE value != '' ORDER BY id")]
    for id in ids:
        database.execute("UPDATE StringIds SET value = ? || ' ' || value WHERE id = ?", (NAMES[id % len(NAMES)], id))
    database.execute("UPDATE NVTX_EVENTS SET text = NULL WHERE textId IS NOT NULL")
    database.execute("UPDATE StringIds SET value = CAST(x'FFC328' AS TEXT) || ' bad' WHERE id = ?", (ids[-1],))
PYTHON
page "$folder/hostile.sqlite" hostile

if [[ -z $small ]]; then
    page samples/traces/mlp-root.sqlite sample
    for millions in 1 10; do
        "$build/bin/bench_viewer" --events "${millions}000000" --make "$folder/made.sqlite"
        page "$folder/made.sqlite" "million-$millions"
        rm "$folder/made.sqlite"
    done
fi
