#include "traces/store/load/loader.h"

#include <new>
#include <optional>
#include <stdexcept>
#include <utility>

#include "traces/store/beside/column_file.h"
#include "traces/store/beside/kept_trace.h"
#include "traces/store/columns/column_sink.h"
#include "traces/store/error.h"
#include "traces/store/load/load_tables.h"
#include "traces/store/on_cores.h"
#include "traces/store/sqlite/open.h"

namespace shardscope::traces::store {
namespace {

// nullptr if there is no sound file of columns beside this very trace.
std::unique_ptr<Trace> load_kept(Database& database, const std::string& path, const TraceIdentity& identity,
                                 LoadProgress* progress) {
    auto trace = std::make_unique<Trace>();
    std::shared_ptr<const ColumnFile> file;
    try {
        file = ColumnFile::open(path, identity);
        if (file == nullptr || !take_columns(*file, *trace)) return nullptr;
    } catch (const std::bad_alloc&) {  // of a file that is not ours, numbers may be anything
        return nullptr;
    } catch (const std::length_error&) {
        return nullptr;
    }
    Trace& begun = *trace;
    begun.beside = file;
    ColumnSink sink(std::move(trace));
    load_small_tables(database, sink, begun, progress);
    return sink.take_begun();
}

std::unique_ptr<Trace> load_rows(Database& database, const std::string& path, LoadProgress* progress,
                                 const TableParts& parts) {
    ColumnSink sink;
    sink.set_path(path);  // for errors
    load_tables(database, sink, progress, parts);
    return sink.take();
}

}  // namespace

std::unique_ptr<Trace> load_trace(const std::string& path, LoadProgress* progress) {
    std::optional<TraceIdentity> identity = identity_of(path);
    if (identity && !is_settled(*identity)) identity.reset();
    Database database = open_trace(path);
    std::unique_ptr<Trace> trace = identity ? load_kept(database, path, *identity, progress) : nullptr;
    if (trace == nullptr) {
        try {
            trace = load_rows(database, path, progress,
                              identity ? TableParts{.threads = static_cast<int>(cores())} : TableParts());
        } catch (const NotInParts&) {
        } catch (const StoreError&) {
            const bool cancelled = progress != nullptr && progress->cancel;
            if (!identity || cancelled || is_unchanged(path, *identity)) throw;
        }
        if (identity && !is_unchanged(path, *identity)) {  // it was not at rest
            identity.reset();
            trace.reset();
        }
        if (trace == nullptr) trace = load_rows(database, path, progress, {});
    }
    trace->path = path;
    trace->schema_version = schema_version(database);
    trace->identity = identity;
    if (progress != nullptr) progress->fraction = 1;
    return trace;
}

}  // namespace shardscope::traces::store
