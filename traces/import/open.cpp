#include "traces/import/open.h"

#include <utility>

#include <fmt/format.h>

#include "traces/import/read_file.h"
#include "traces/store/column_sink.h"

namespace shardscope::traces {

namespace {

WorkOptions work_of(LoadProgress* progress) {
    WorkOptions work;
    if (progress == nullptr) return work;
    work.cancel = &progress->cancel;
    work.progress = [progress](double share) { progress->fraction = share * 0.9; };
    return work;
}

std::unique_ptr<Trace> open_one(const std::string& path, const ImportOptions& options, FileRequest request) {
    const InputOptions how{.max_bytes = options.max_bytes, .work = work_of(options.progress)};
    for (;;) {
        Input input = Input::open(path, how);
        const FileFormat format = sniff_format(input);
        if (format == FileFormat::sqlite) {
            if (!input.packed()) return load_trace(path, options.progress);
            const UnpackedDatabase database(input);
            auto trace = load_trace(database.path(), options.progress);
            trace->path = path;
            return trace;
        }
        ColumnSink sink;
        sink.set_path(path);
        const FileFacts facts = read_file(input, format, sink, request);
        if (facts.rank && *facts.rank != facts.rows_rank && *facts.rank != request.rank) {
            request.rank = *facts.rank;  // told after the events: again, now with it
            continue;
        }
        sink.set_start_utc_ns(facts.start_utc_ns);
        auto trace = sink.take();
        if (options.progress != nullptr) options.progress->fraction = 1;
        return trace;
    }
}

}  // namespace

std::unique_ptr<Trace> open_any(const std::vector<std::string>& paths, const ImportOptions& options) {
    if (paths.size() == 1) {
        const int rank = rank_of_name(paths[0]);
        return open_one(paths[0], options,
                        {.rank = rank < 0 ? 0 : rank, .one_of_several = false, .partial = options.partial});
    }
    throw StoreError(fmt::format("{} files cannot be opened together; merge them first", paths.size()));
}

}  // namespace shardscope::traces
