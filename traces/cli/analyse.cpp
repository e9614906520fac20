#include "traces/cli/analyse.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <thread>

#include <sys/ioctl.h>
#include <unistd.h>

#include "traces/cli/long_work.h"
#include "traces/import/open.h"
#include "traces/query/as_database.h"
#include "traces/report/print.h"
#include "traces/report/report.h"
#include "traces/schema/text.h"
#include "traces/store/grouped.h"

namespace shardscope::traces::cli {

namespace {

constexpr std::size_t kLeast = 40, kMost = 1000;

// Returns 0 if it is not a number.
std::size_t number(const char* text) {
    return text == nullptr ? 0 : schema::number_of<std::size_t>(text).value_or(0);
}

std::size_t of_terminal() {
    winsize size{};
    return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

}  // namespace

std::size_t table_width() {
    for (const std::size_t width : {number(std::getenv("COLUMNS")), of_terminal()}) {
        if (width > 0) return std::clamp(width, kLeast, kMost);
    }
    return report::kTableWidth;
}

namespace {

constexpr std::chrono::milliseconds kLook(50), kPatience(500);

// Shows the progress of a slow load, and lets Ctrl-C cancel it, as long as this lives.
class LoadWatch {
  public:
    LoadWatch() : work_("reading"), thread_([this] { watch(); }) {}
    ~LoadWatch() {
        {
            const std::lock_guard lock(mutex_);
            done_ = true;
        }
        changed_.notify_all();
        thread_.join();
    }
    LoadWatch(const LoadWatch&) = delete;
    LoadWatch& operator=(const LoadWatch&) = delete;

    store::LoadProgress& progress() { return progress_; }

  private:
    void watch() {
        const auto start = std::chrono::steady_clock::now();
        std::unique_lock lock(mutex_);
        while (!changed_.wait_for(lock, kLook, [this] { return done_; })) {
            if (*work_.options().cancel) progress_.cancel = true;
            if (std::chrono::steady_clock::now() - start > kPatience)
                work_.options().progress(progress_.fraction);
        }
    }

    store::LoadProgress progress_;
    LongWork work_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool done_ = false;
    std::thread thread_;  // the last member: it uses the others
};

}  // namespace

std::string instead_of_nothing(const store::Trace& trace, std::string rendered) {
    if (!trace.ranks.empty() || rendered != report::kNothingSelected) return rendered;
    std::string held;
    const auto add = [&](std::size_t count, const char* one, const char* several) {
        if (count == 0) return;
        if (!held.empty()) held += " and ";
        held += store::counted(static_cast<std::int64_t>(count), one, several);
    };
    add(trace.counters.size(), "value of counters", "values of counters");
    add(trace.marks.size(), "mark", "marks");
    add(trace.metrics.size(), "value of metrics", "values of metrics");
    std::string said = "This trace holds no rank, and so no time of a step to divide";
    said += held.empty() ? "."
                         : ": it holds " + held +
                               ", which shardscope-trace timeline and shardscope-view show over time.";
    return report::paragraph(said + " docs/why-empty.md says what to record for more.", table_width());
}

std::unique_ptr<store::Trace> load(const Inputs& inputs) {
    importer::ImportOptions options;
    options.partial = inputs.partial;
    options.max_bytes = parse_size(inputs.max_size);
    for (const std::string& file : inputs.files) check_input_or_folder(file);
    LoadWatch watch;
    options.progress = &watch.progress();
    try {
        return open_any(inputs.files, options);
    } catch (const store::StoreError&) {
        if (LongWork::stopped_status() != 0) throw merge::Cancelled("reading was stopped");
        throw;
    }
}

query::AsDatabaseOptions database_options(const Inputs& inputs) {
    return {.files = inputs.files,
            .partial = inputs.partial,
            .max_bytes = parse_size(inputs.max_size),
            .ours = false};
}

}  // namespace shardscope::traces::cli
