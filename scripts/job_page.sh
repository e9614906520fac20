#!/usr/bin/env bash
# The pages of a job in headless Chromium: writes them with shardscope-trace from a trace with samples of played devices
# (job_samples.py), and looks at them as wide as a desktop's window and as a phone (job_page.py).
#
#   scripts/job_page.sh [--build FOLDER] [--pictures FOLDER] [--small]
#
# --small: two hosts, one of whose names is markup; a test of CTest, which needs chromedriver and skips (77) without.
# Else also a thousand devices, and five days, with the time that writing takes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build=build/release pictures=() small=
while (($# > 0)); do
    case $1 in
        --build) build=$2 && shift 2 ;;
        --pictures) pictures=(--pictures "$2") && shift 2 ;;
        --small) small=yes && shift ;;
        *) sed -n '2,9s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
    esac
done
for program in python3 chromedriver; do
    if ! command -v "$program" >/dev/null; then
        echo "job_page: skipped: $program is not installed (apt-get install chromium chromium-driver)"
        exit 77
    fi
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trace=$build/bin/shardscope-trace
pages=()

# pages NAME OPTIONS...: a trace with samples, and its pages.
pages() {
    local name=$1
    shift
    "$trace" import samples/traces/mlp-root.sqlite -o "$folder/$name.sqlite" >/dev/null 2>&1
    python3 scripts/job_samples.py "$folder/$name.sqlite" "$@"
    local before after
    before=$(date +%s%N)
    "$trace" report --job "$folder/$name.sqlite" -o "$folder/$name-job.html" --price-per-device-hour 2.5
    after=$(date +%s%N)
    echo "$name: $(((after - before) / 1000000)) ms"
    "$trace" utilization "$folder/$name.sqlite" -o "$folder/$name-use.html"
    "$trace" utilization "$folder/$name.sqlite" -o "$folder/$name-use.svg"
    "$trace" report "$folder/$name.sqlite" -o "$folder/$name-report.html"
    python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "$folder/$name-use.svg"
    pages+=("$folder/$name-job.html" "$folder/$name-use.html" "$folder/$name-report.html")
}

pages two --host "<img src=x onerror=\"document.title='owned'\">"
if [[ -z $small ]]; then
    pages thousand --hosts 125 --gpus 8 --seconds 60
    pages days --hosts 1 --seconds 432000 --period 10
fi
python3 scripts/job_page.py "${pages[@]}" "${pictures[@]}"
