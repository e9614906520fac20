// See query_runner.h.
#include "viewer/panels/query/query_runner.h"

#include <exception>
#include <utility>

namespace shardscope::viewer::panels {
namespace {

constexpr std::size_t kMostBytes = std::size_t{256} << 20;  // limit for one result
constexpr int kMostValueBytes = 16 << 20;                   // limit for one text or blob

}  // namespace

QueryRunner::~QueryRunner() {
    cancel_ = true;
    if (work_.valid()) work_.wait();
}

double QueryRunner::running_seconds() const {
    return running() ? std::chrono::duration<double>(Clock::now() - since_).count() : 0;
}

void QueryRunner::start(std::function<void()> work) {
    cancel_ = false;
    since_ = Clock::now();
    work_ = std::async(std::launch::async, std::move(work));
}

std::string QueryRunner::database(const TraceFiles& files, bool import_exports) {
    const std::vector<model::FileStamp> stamps = model::stamps_of(files);
    if (as_database_ == nullptr || database_files_ != files || database_stamps_ != stamps ||
        database_imported_ != import_exports) {
        as_database_.reset();
        traces::query::AsDatabaseOptions options;
        options.files = files;
        options.partial = true;  // as the viewer opens traces
        options.ours = import_exports;
        traces::merge::WorkOptions work;
        work.cancel = &cancel_;
        as_database_ = std::make_unique<traces::query::AsDatabase>(options, work);
        database_files_ = files;
        database_stamps_ = stamps;
        database_imported_ = import_exports;
    }
    return as_database_->path();
}

void QueryRunner::run(const TraceFiles& files, const std::string& sql, const QueryLimits& limits) {
    if (running()) return;
    start([this, files, sql, limits, import_exports = import_exports_] {
        auto answer = std::make_shared<QueryAnswer>();
        answer->sql = sql;
        const auto began = Clock::now();
        try {
            const std::string path = database(files, import_exports);
            if (as_database_->imported())
                answer->note = "Queried in a temporary database that the trace was imported to.";
            traces::store::QueryOptions options;
            options.cancel = &cancel_;
            options.time_limit = limits.time;
            options.max_rows = limits.rows;
            options.max_bytes = kMostBytes;
            options.max_value_bytes = kMostValueBytes;
            options.names_listed = "the list on the left has the tables and their columns";
            answer->results = traces::store::run_query(path, sql, options);
            if (answer->results.empty())
                answer->error = "The SQL has no statement with a result; write a SELECT.";
        } catch (const traces::store::QueryStopped&) {
            answer->error = cancel_
                                ? "The query was stopped."
                                : "The query was stopped at its time limit; ask for less or allow more time.";
        } catch (const traces::merge::Cancelled&) {
            answer->error = "The import was stopped.";
        } catch (const std::bad_alloc&) {
            answer->error = "There is not enough memory for this result; ask for less.";
        } catch (const traces::store::QueryError& error) {
            answer->error = error.what();
            answer->error_offset = error.offset;
        } catch (const std::exception& error) {
            answer->error = error.what();
        }
        answer->seconds = std::chrono::duration<double>(Clock::now() - began).count();
        next_answer_ = std::move(answer);
    });
}

void QueryRunner::load_schema(const TraceFiles& files) {
    if (running()) return;
    schema_files_ = files;
    schema_error_.clear();
    schema_ = nullptr;
    start([this, files, import_exports = import_exports_] {
        next_schema_error_.clear();
        auto objects = std::make_shared<std::vector<traces::query::SchemaObject>>();
        try {
            *objects = traces::query::schema_objects(database(files, import_exports));
        } catch (const std::exception& error) {
            next_schema_error_ = error.what();
        }
        next_schema_ = std::move(objects);
    });
}

void QueryRunner::poll() {
    if (!work_.valid() || work_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return;
    work_.get();
    if (next_answer_ != nullptr) answer_ = std::exchange(next_answer_, nullptr);
    if (next_schema_ != nullptr) {
        schema_ = std::exchange(next_schema_, nullptr);
        schema_error_ = next_schema_error_;
    }
}

std::shared_ptr<const std::vector<traces::query::SchemaObject>> QueryRunner::schema(
    const TraceFiles& files) const {
    return files == schema_files_ ? schema_ : nullptr;
}

}  // namespace shardscope::viewer::panels
