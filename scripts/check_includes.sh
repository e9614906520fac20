#!/usr/bin/env bash
# Includes run one way: docs/architecture.md lists each room's folders from the bottom up, and a folder includes only
# itself and those listed before it; traces <- profiler <- trainer, traces <- viewer; no file includes itself
# indirectly.
#
#   scripts/check_includes.sh
#
# Prints each include of a folder further down the page, each folder that the page omits or that does not exist, and each
# line count that is off by more than a quarter (and a hundred lines), and then fails.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

page=docs/architecture.md
failed=0
complain() {
    echo "$*"
    failed=1
}
sources=(traces profiler trainer viewer)
declare -A place lines_said lines_are
number=0
while IFS='|' read -r _ folder lines _; do
    folder=${folder//[[:space:]]/} lines=${lines//[[:space:]]/}
    place[$folder]=$((++number))
    lines_said[$folder]=$lines
done < <(grep -E '^\| (traces|profiler|trainer|viewer)[a-z_/]* \|' "$page")

while read -r count file; do
    folder=${file%/*}
    lines_are[$folder]=$((${lines_are[$folder]:-0} + count))
done < <(git ls-files -- "${sources[@]}" | grep -E '\.(cpp|h|cu)$' | xargs wc -l | grep -v ' total$')
for folder in "${!lines_are[@]}"; do
    said=${lines_said[$folder]:-} are=${lines_are[$folder]}
    if [[ -z $said ]]; then
        complain "$folder: $page does not list it; add a row where it belongs"
    elif off=$((are > said ? are - said : said - are)) && ((off > 100 && 4 * off > said)); then
        complain "$folder: $page says $said lines, there are $are; correct its row"
    fi
done
for folder in "${!place[@]}"; do
    [[ -n ${lines_are[$folder]:-} ]] || complain "$folder: $page lists it, but it has no sources; remove its row"
done

# FILE LINE INCLUDED FOLDER-OF-IT for every include of our own headers.
includes=$(git grep -nE '^#include "(traces|profiler|trainer|viewer)/' -- '*.cpp' '*.h' '*.cu' |
    grep -E '^(traces|profiler|trainer|viewer)/' | sed -E 's/^([^:]+):([0-9]+):#include "(([^"]+)\/[^"\/]+)".*/\1 \2 \3 \4/')
declare -A may=([traces]="traces" [profiler]="traces profiler" [trainer]="traces profiler trainer" [viewer]="traces viewer")
while read -r file line included to; do
    from=${file%/*}
    room=${from%%/*}
    if [[ $from == "$to" ]]; then
        continue
    elif [[ " ${may[$room]} " != *" ${to%%/*} "* ]]; then
        complain "$file:$line: $room includes $included; it may include ${may[$room]// /, } only"
    elif [[ $room == "${to%%/*}" ]] && ((${place[$from]:-0} < ${place[$to]:-0})); then
        complain "$file:$line: $from includes $included, of a folder above it ($page lists it later); move what it needs down"
    fi
done <<<"$includes"

if ! circles=$(awk '{ print $1, $3 }' <<<"$includes" | tsort 2>&1 >/dev/null); then
    complain "These files include each other in a circle: $(sed 's/^tsort: //; /input contains a loop/d; s/^-: //' <<<"$circles" | paste -sd ' ')"
fi
((failed == 0))
