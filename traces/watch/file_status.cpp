#include "traces/watch/file_status.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>

#include <fmt/core.h>
#include <sys/stat.h>

#include "traces/schema/enums.h"
#include "traces/store/sqlite/open.h"
#include "traces/store/sqlite/sqlite.h"

namespace shardscope::traces::watch {

namespace {

namespace fs = std::filesystem;
using status::RankState;
using status::RankStatus;
using status::RunState;
using status::RunStatus;
using store::Database;
using store::Statement;

// Of tables that grow by thousands of rows a second, only the last are looked at.
constexpr int kLastRows = 20'000;
// Without a commit for that long, the run has been killed or does nothing.
constexpr double kQuietS = 10;

std::optional<std::int64_t> number_in(std::string_view text) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return number;
}

// Seconds since the file or its journal was written; 0 if the system does not say.
double seconds_since_written(const std::string& path) {
    timespec now{}, latest{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    for (const std::string& each : {path, path + "-wal"}) {
        struct stat facts;
        if (::stat(each.c_str(), &facts) != 0) continue;
        if (facts.st_mtim.tv_sec > latest.tv_sec) latest = facts.st_mtim;
    }
    return latest.tv_sec == 0 ? 0 : std::max(0.0, static_cast<double>(now.tv_sec - latest.tv_sec));
}

RankStatus& rank_of(RunStatus& run, std::int64_t number) {
    const int rank = static_cast<int>(std::clamp<std::int64_t>(number, -1, 1 << 30));
    for (RankStatus& own : run.ranks) {
        if (own.rank == rank) return own;
    }
    RankStatus& made = run.ranks.emplace_back();
    made.rank = rank;
    return made;
}

void read_settings(Database& file, RunStatus& run) {
    Statement settings(
        file,
        "SELECT key, value FROM SHARD_RUN WHERE key IN ('tool', 'command', 'pid', 'run.steps', "
        "'train.epochs')");
    while (settings.step()) {
        const std::string key(settings.text(0)), value(settings.text(1));
        if (key == "tool") run.tool = value;
        if (key == "command") run.run = value;
        if (key == "pid") run.pid = number_in(value).value_or(0);
        if (key == "run.steps") run.steps = number_in(value);
        if (key == "train.epochs") run.epochs = number_in(value);
        if (run.epochs && *run.epochs <= 0) run.epochs.reset();
    }
}

void read_ranks(Database& file, RunStatus& run) {
    Statement ranks(file, "SELECT rank, host, globalPid FROM SHARD_RANKS ORDER BY rank");
    while (ranks.step()) {
        RankStatus& rank = rank_of(run, ranks.integer(0));
        rank.host = ranks.text(1);
        rank.pid = ranks.integer_or(2, 0) >> 24 & 0xFFFFFF;
    }
}

// Sets the run's steps, how long one takes, and when the last ended.
void read_steps(Database& file, RunStatus& run, std::int64_t& last_ns) {
    Statement steps(
        file, "SELECT rank, max(step) + 1, count(*), min(start), max(end) FROM SHARD_STEPS GROUP BY rank");
    while (steps.step()) {
        rank_of(run, steps.integer(0)).steps_done = steps.integer(1);
        const std::int64_t done = steps.integer(1), count = steps.integer(2);
        const std::int64_t start = steps.integer(3), end = steps.integer(4);
        if (!run.steps_done || done < *run.steps_done) run.steps_done = done;
        if (end > start) run.step_s = static_cast<double>(end - start) * 1e-9 / static_cast<double>(count);
        last_ns = std::max(last_ns, end);
    }
}

void read_metrics(Database& file, RunStatus& run, std::int64_t& last_ns) {
    Statement loss(file, "SELECT loss FROM SHARD_LOSSES ORDER BY step DESC LIMIT 1");
    if (loss.step() && !loss.is_null(0)) run.loss = loss.real(0);
    if (!file.has_table("SHARD_METRICS")) return;  // before version 8
    constexpr std::string_view kRate = "_per_second";
    Statement metrics(
        file, fmt::format("SELECT s.value, m.value, m.time FROM SHARD_METRICS m JOIN StringIds s ON s.id = "
                          "m.nameId WHERE m.rowid > (SELECT max(rowid) FROM SHARD_METRICS) - {} ORDER "
                          "BY m.rowid",
                          kLastRows));
    while (metrics.step()) {
        const std::string_view name = metrics.text(0);
        if (metrics.is_null(1)) continue;
        if (name == "epoch") run.epoch = metrics.real(1);
        if (name.ends_with(kRate)) {
            run.rate = metrics.real(1);
            run.items = name.substr(0, name.size() - kRate.size());
        }
        last_ns = std::max(last_ns, metrics.integer(2));
    }
}

void read_counters(Database& file, RunStatus& run, std::int64_t& last_ns) {
    Statement counters(
        file, fmt::format("SELECT c.rank, s.value, c.value, c.time FROM SHARD_COUNTERS c JOIN StringIds s "
                          "ON s.id = c.nameId WHERE c.rowid > (SELECT max(rowid) FROM SHARD_COUNTERS) - "
                          "{} ORDER BY c.rowid",
                          kLastRows));
    while (counters.step()) {
        last_ns = std::max(last_ns, counters.integer(3));
        const std::string_view name = counters.text(1);
        if (counters.is_null(2)) continue;
        const double value = counters.real(2);
        // A trainer's process is all of its ranks.
        if (counters.integer_or(0, -1) < 0 && !run.tool.starts_with("shardscope-record")) continue;
        if (name == "process_cpu_cores") rank_of(run, counters.integer_or(0, -1)).cores = value;
        if (name == "process_resident_bytes" && value >= 0 && value < 1e18)
            rank_of(run, counters.integer_or(0, -1)).resident_bytes = static_cast<std::int64_t>(value);
    }
}

// The latest of each rank that has ended.
void read_collectives(Database& file, RunStatus& run) {
    Statement collectives(
        file,
        fmt::format("SELECT rank, operation, sequence, groupId FROM SHARD_COLLECTIVES WHERE rowid > (SELECT "
                    "max(rowid) FROM SHARD_COLLECTIVES) - {} ORDER BY rowid",
                    kLastRows));
    while (collectives.step()) {
        const std::int64_t operation = collectives.integer(1);
        if (operation < 0 || operation >= schema::kOperations) continue;
        rank_of(run, collectives.integer(0)).collective = status::CollectiveStatus{
            std::string(schema::kOperationNames[static_cast<std::size_t>(operation)]),
            collectives.integer(2),
            collectives.integer(3),
            false,
            {}};
    }
}

// Why it ended early: the last warning.
std::string last_warning(Database& file) {
    if (!file.has_table("DIAGNOSTIC_EVENT")) return {};
    Statement warnings(file,
                       "SELECT text FROM DIAGNOSTIC_EVENT WHERE severity >= 2 ORDER BY rowid DESC LIMIT 1");
    return warnings.step() && !warnings.is_null(0) ? std::string(warnings.text(0)) : std::string();
}

}  // namespace

struct FileStatus::File {
    explicit File(const std::string& path) : database(store::open_trace(path)) {
        if (!store::has_plain_table(database, "SHARD_STATE") ||
            !store::has_plain_table(database, "SHARD_STEPS")) {
            throw store::StoreError(
                fmt::format("{} is a trace of another tool; watch shows the runs of shardscope-train and "
                            "shardscope-record",
                            path));
        }
        store::trust_tables_only(database);
    }
    Database database;
};

std::vector<std::string> files_of_run(const std::string& trace) {
    std::error_code ignored;
    if (fs::exists(trace, ignored)) return {trace};
    const fs::path path(trace);
    const std::string first = path.stem().string() + ".rank-", last = path.extension().string();
    const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
    std::vector<std::string> parts;
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
        const std::string name = entry.path().filename().string();
        if (name.starts_with(first) && name.ends_with(last)) parts.push_back(entry.path().string());
    }
    std::sort(parts.begin(), parts.end());
    return parts;
}

FileStatus::FileStatus(const std::string& trace) : trace_(trace) {
    for (const std::string& file : files_of_run(trace)) files_.push_back(std::make_unique<File>(file));
    if (files_.empty()) {
        throw store::StoreError(fmt::format(
            "{}: there is no such trace, and no run serves its status for it; check the path", trace));
    }
}

FileStatus::~FileStatus() = default;

void FileStatus::add_to(Course& course) {
    Database& database = files_.front()->database;  // losses are rank 0's
    Statement losses(database, "SELECT loss FROM SHARD_LOSSES WHERE loss IS NOT NULL ORDER BY step");
    while (losses.step()) course.loss.add(losses.real(0));
    if (!database.has_table("SHARD_METRICS")) return;
    Statement rates(
        database,
        "SELECT m.value FROM SHARD_METRICS m JOIN StringIds s ON s.id = m.nameId WHERE m.value IS NOT NULL "
        "AND s.value LIKE '%\\_per\\_second' ESCAPE '\\' ORDER BY m.rowid");
    while (rates.step()) course.rate.add(rates.real(0));
}

RunStatus FileStatus::read() {
    RunStatus run;
    run.trace = trace_;
    run.number = ++number_;
    std::int64_t last_ns = 0;
    bool ended = true;
    double quiet_s = 1e18;
    std::string warning;
    for (const auto& file : files_) {
        Database& database = file->database;
        database.execute("BEGIN");  // one commit's state
        read_settings(database, run);
        read_ranks(database, run);
        read_steps(database, run, last_ns);
        read_metrics(database, run, last_ns);
        read_counters(database, run, last_ns);
        read_collectives(database, run);
        ended = ended && database.integer("SELECT ended FROM SHARD_STATE") != 0;
        run.dropped_events =
            run.dropped_events.value_or(0) + database.integer("SELECT dropped FROM SHARD_STATE");
        if (warning.empty()) warning = last_warning(database);
        database.execute("COMMIT");
        quiet_s = std::min(quiet_s, seconds_since_written(database.path()));
    }
    std::sort(run.ranks.begin(), run.ranks.end(),
              [](const RankStatus& a, const RankStatus& b) { return a.rank < b.rank; });
    for (RankStatus& rank : run.ranks) rank.state = ended ? RankState::ended : RankState::running;
    if (!run.ranks.empty()) run.host = run.ranks.front().host;
    run.time_s = static_cast<double>(last_ns) * 1e-9;
    if (run.tool.empty()) run.tool = run.steps ? "shardscope-train" : "a recorded program";
    if (run.steps_done && run.steps && run.step_s)
        run.left_s =
            *run.step_s * static_cast<double>(std::max<std::int64_t>(*run.steps - *run.steps_done, 0));
    const bool all_done = !run.steps || (run.steps_done && *run.steps_done >= *run.steps);
    if (ended) {
        run.state = all_done ? RunState::finished : RunState::stopped;
        if (!all_done) run.reason = warning;
    } else if (quiet_s >= kQuietS) {
        run.state = RunState::waiting;
        run.reason =
            fmt::format("nothing has been written for {:.0f} s: the run was killed, or it hangs", quiet_s);
    } else {
        run.state = RunState::running;
    }
    return run;
}

}  // namespace shardscope::traces::watch
