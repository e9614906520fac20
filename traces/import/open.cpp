#include "traces/import/open.h"

#include <utility>

#include "traces/import/importer_table.h"
#include "traces/import/inputs.h"
#include "traces/import/join/infer_places.h"
#include "traces/import/join/join.h"
#include "traces/store/columns/column_sink.h"

namespace shardscope::traces::importer {

namespace {

// Reading is nearly all of the work; the rest is sorting and linking.
constexpr double kShareOfImport = 0.9;

// Progress of one file: its share of the whole begins at `from` and is `size` large.
merge::WorkOptions work_of(store::LoadProgress* progress, double from, double size) {
    merge::WorkOptions work;
    if (progress == nullptr) return work;
    work.cancel = &progress->cancel;
    work.progress = [=](double share) { progress->fraction = from + size * share * kShareOfImport; };
    return work;
}

std::unique_ptr<store::Trace> open_one(const std::string& path, const ImportOptions& options,
                                       FileRequest request, double from, double size) {
    const InputOptions how{.max_bytes = options.max_bytes, .work = work_of(options.progress, from, size)};
    for (;;) {
        Input input = Input::open(path, how);
        input.set_cut_is_end(options.partial);  // also if the file is cut before its format is known
        KnownFile file(std::move(input));
        if (file.is_loaded_as_it_is()) {
            auto trace = load_trace(file.database(), options.progress);
            trace->path = path;
            return trace;
        }
        store::ColumnSink sink;
        sink.set_path(path);
        const FileFacts facts = file.read(sink, request);
        if (facts.rank && *facts.rank != facts.rows_rank && *facts.rank != request.rank) {
            request.rank = *facts.rank;  // known only after the events: read the file again
            continue;
        }
        sink.set_start_utc_ns(facts.start_utc_ns);
        return sink.take();
    }
}

}  // namespace

std::unique_ptr<store::Trace> open_any(const std::vector<std::string>& paths, const ImportOptions& options) {
    const std::vector<InputFile> files = list_inputs(paths);
    std::vector<std::unique_ptr<store::Trace>> parts;
    for (const InputFile& file : files) {
        const double share = 1.0 / static_cast<double>(files.size());
        parts.push_back(
            open_one(file.path, options,
                     {.rank = file.rank, .one_of_several = files.size() > 1, .partial = options.partial},
                     share * static_cast<double>(parts.size()), share));
    }
    auto trace = parts.size() == 1 ? std::move(parts.front()) : join_traces(std::move(parts));
    infer_places(*trace);
    if (options.progress != nullptr) options.progress->fraction = 1;
    return trace;
}

}  // namespace shardscope::traces::importer
