// Runs SQL on a trace on a thread of its own: read-only, with a time limit, a row limit and a way to stop. A
// trace that is not a database is first imported to a temporary one, which is kept for the next query. Frame
// thread (the worker is inside); no Dear ImGui.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "traces/query/as_database.h"
#include "traces/query/database_schema.h"
#include "traces/store/sqlite/query.h"
#include "viewer/model/file_stamp.h"

namespace shardscope::viewer::panels {

struct QueryLimits {
    std::optional<std::chrono::nanoseconds> time = std::chrono::seconds(30);
    std::size_t rows = 100'000;
};

struct QueryAnswer {
    std::string sql;
    std::vector<traces::store::QueryResult> results;  // of the statements that return columns
    std::string error;                                // one sentence; empty: success
    std::optional<std::size_t> error_offset;          // its place in `sql`, in bytes
    double seconds = 0;
    std::string note;  // "imported to a temporary database ..."
};

using TraceFiles = std::vector<std::string>;  // the files of one open trace

class QueryRunner {
  public:
    QueryRunner() = default;
    ~QueryRunner();  // stops the running query
    QueryRunner(const QueryRunner&) = delete;
    QueryRunner& operator=(const QueryRunner&) = delete;

    // Does nothing while a query runs.
    void run(const TraceFiles& files, const std::string& sql, const QueryLimits& limits);
    void load_schema(const TraceFiles& files);
    // From the next query on: whether exports of Nsight Systems are imported too, so that they have our
    // views.
    void import_exports(bool on) { import_exports_ = on; }
    void stop() { cancel_ = true; }
    bool running() const { return work_.valid(); }
    double running_seconds() const;

    void poll();  // once a frame: takes over finished results
    const std::shared_ptr<const QueryAnswer>& answer() const { return answer_; }
    // The schema of the files it was loaded for; nullptr if it is not there (yet).
    std::shared_ptr<const std::vector<traces::query::SchemaObject>> schema(const TraceFiles& files) const;
    const std::string& schema_error() const { return schema_error_; }

  private:
    using Clock = std::chrono::steady_clock;
    void start(std::function<void()> work);
    std::string database(const TraceFiles& files, bool import_exports);  // on the worker

    std::future<void> work_;
    std::atomic<bool> cancel_ = false;
    bool import_exports_ = false;
    Clock::time_point since_;
    std::shared_ptr<const QueryAnswer> answer_;
    std::shared_ptr<const std::vector<traces::query::SchemaObject>> schema_;
    TraceFiles schema_files_;
    std::string schema_error_;

    // Used by the worker while it runs.
    std::shared_ptr<QueryAnswer> next_answer_;
    std::shared_ptr<std::vector<traces::query::SchemaObject>> next_schema_;
    std::string next_schema_error_;
    std::unique_ptr<traces::query::AsDatabase> as_database_;
    TraceFiles database_files_;
    std::vector<model::FileStamp> database_stamps_;
    bool database_imported_ = false;
};

}  // namespace shardscope::viewer::panels
