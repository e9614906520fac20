// Files that PyTorch writes as pickles or as JSON of the same shape; the content decides which kind each is.
#include <fmt/core.h>

#include "traces/import/flight/flight_recorder.h"
#include "traces/import/input/importer.h"
#include "traces/import/json/json_tree.h"
#include "traces/import/pickle/pickle.h"
#include "traces/import/pytorch_memory/memory_snapshot.h"

namespace shardscope::traces::importer {

namespace {

FileFacts read_tree(const Value& root, const std::string& damage, const std::string& path,
                    store::EventSink& sink, const FileRequest& request) {
    FileFacts facts;
    if (is_memory_snapshot(root)) {
        facts = read_memory_snapshot(root, !damage.empty(), path, sink, request);
    } else if (is_flight_dump(root)) {
        facts = read_flight_dump(root, path, sink, request);
    } else {
        // `damage` begins with the file's path, too.
        const std::size_t known = damage.starts_with(path) ? path.size() : 0;
        throw store::StoreError(fmt::format(
            "{}: this is neither a memory snapshot (segments, device_traces) nor a flight recorder's dump "
            "(entries) of PyTorch{}",
            path,
            damage.empty()
                ? damage
                : ", as far as it can be read" + (known > 0 ? damage.substr(known) : ": " + damage)));
    }
    if (!damage.empty()) {
        facts.partial = true;
        sink.add(schema::RunInfoRow{"import.partial", "1"});
        sink.add(schema::DiagnosticRow{0, schema::Severity::warning, "The intact part was kept: " + damage});
    }
    return facts;
}

}  // namespace

FileFacts read_pickle(Input& input, store::EventSink& sink, const FileRequest& request) {
    const ParsedPickle pickle = parse_pickle(input, {.partial = request.partial});
    return read_tree(pickle.tree.root(), pickle.damage, input.path(), sink, request);
}

FileFacts read_flight_json(Input& input, store::EventSink& sink, const FileRequest& request) {
    const ParsedJson json = parse_json(input, request.partial);
    return read_tree(json.tree.root(), json.damage, input.path(), sink, request);
}

}  // namespace shardscope::traces::importer
