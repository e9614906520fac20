#!/usr/bin/env bash
# Headers that take a second or more to compile are included only where needed: each behind a light header of ours.
#
#   scripts/heavy_headers.sh
#
# Prints each include of such a header in a source of the rooms that is not among its places, and then fails.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# HEADER ; PLACES (patterns) ; what to include elsewhere
table='
fmt/(format|ranges|args|color|compile|std|os)\.h ; ^traces/schema/formatting\.cpp$ ; fmt/core.h, and joined() of traces/schema/joined.h
fmt/chrono\.h ; ^traces/analysis/facts/info\.cpp$ ; iso_8601() of that source
CLI/.* ; ^(traces/cli/main|trainer/cli/main|profiler/record/command_line|viewer/app/options)\.cpp$ ; the command line of the tool
gloo/.* ; ^trainer/comm/gloo_.*\.cpp$ ; trainer/comm/gloo_wire.h
asio(/.*)?\.hpp ; ^trainer/world/ ; the wires of trainer/comm and World of trainer/world/world.h
toml\+\+/.* ; ^trainer/(job/job|sim/figure_reader)\.cpp$ ; trainer/job/job.h and trainer/sim/figure_reader.h
simdjson\.h ; ^traces/import/(kineto/event_batch|bench/bench_import)\.cpp$ ; traces/import/kineto/event_stream.h
nlohmann/json\.hpp ; ^(traces/(schema|import|report|status)/.*|trainer/(checkpoint|cli)/.*|viewer/(tables/table_model|model/trials))\.cpp$|^viewer/model/fields\.h$ ; json_members() or another function of traces/schema/json_text.h, viewer/model/fields.h for structs, and nlohmann/json_fwd.hpp in a header
regex ; ^viewer/script/ ; std::string_view and from_chars
iostream ; \.cpp$ ; fmt/core.h
'
failed=0
while IFS=';' read -r header places instead; do
    header=${header## } header=${header%% }
    places=${places## } places=${places%% }
    [[ -n $header ]] || continue
    while IFS=: read -r file line _; do
        [[ ! $file =~ $places ]] || continue
        echo "$file:$line: includes a heavy header, <$header>; use ${instead## }"
        failed=1
    done < <(git grep -nE "^#include <$header>" -- traces profiler trainer viewer)
done <<<"$table"
# nlohmann's parser and writer are compiled once.
while IFS=: read -r file line _; do
    [[ $file == traces/schema/json_text.cpp ]] && continue
    echo "$file:$line: compiles a parser or a writer of JSON; use parse_json() and dump_json() of traces/schema/json_text.h"
    failed=1
done < <(git grep -nE '(json|Json)::(parse|accept)\(|\.dump\(' -- 'traces/*.cpp' 'profiler/*.cpp' 'trainer/*.cpp' 'viewer/*.cpp')
if ((failed)); then
    echo "heavy_headers.sh: the lines above make the build slow." >&2
    exit 1
fi
