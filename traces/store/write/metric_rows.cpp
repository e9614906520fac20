#include "traces/store/write/metric_rows.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/core.h>

#include "traces/schema/enums.h"
#include "traces/schema/marked_metrics.h"
#include "traces/schema/rows.h"
#include "traces/schema/stored_rows.h"
#include "traces/store/columns/names.h"
#include "traces/store/sqlite/row_insert.h"
#include "traces/store/sqlite/sqlite.h"

namespace shardscope::traces::store {

namespace {

constexpr std::int64_t kProcess = ~std::int64_t{0xFFFFFF};  // of a globalTid

// The texts that begin so, by id.
std::map<std::int64_t, std::string> texts_of(Database& database, std::string_view prefix) {
    std::map<std::int64_t, std::string> texts;
    Statement rows(database, "SELECT id, value FROM StringIds WHERE substr(value, 1, length(?1)) = ?1");
    rows.bind(1, prefix);
    while (rows.step()) texts.emplace(rows.integer(0), rows.text(1));
    return texts;
}

// Calls `each` for the marks and ranges that have one of the texts.
template <class Each>
void for_ranges(Database& database, const std::map<std::int64_t, std::string>& texts, const Each& each) {
    if (texts.empty()) return;
    Statement rows(database,
                   fmt::format("SELECT textId, start, \"end\", globalTid FROM NVTX_EVENTS WHERE eventType IN "
                               "({}, {}, {}) AND textId NOT NULL AND start NOT NULL",
                               schema::kNvtxMark, schema::kNvtxPushPop, schema::kNvtxStartEnd));
    while (rows.step()) {
        const auto text = texts.find(rows.integer(0));
        if (text != texts.end())
            each(text->second, rows.integer(1), rows.integer_or(2, rows.integer(1)), rows.integer_or(3, 0));
    }
}

// The ranks of threads: their own or, if they have none, that of their process if it has one alone, as where
// traces are loaded. The loader can also find a thread's rank from the device work that it launched: marks of
// such threads get no rows here, and are read from the marks (analysis/training/metrics.cpp).
class RanksOfThreads {
  public:
    explicit RanksOfThreads(Database& database) {
        Statement threads(database, "SELECT globalTid, rank FROM SHARD_THREADS");
        while (threads.step()) threads_.emplace(threads.integer(0), static_cast<int>(threads.integer(1)));
        Statement ranks(
            database, "SELECT globalPid, min(rank) FROM SHARD_RANKS GROUP BY globalPid HAVING count(*) = 1");
        while (ranks.step()) processes_.emplace(ranks.integer_or(0, 0), static_cast<int>(ranks.integer(1)));
    }
    std::optional<int> of(std::int64_t thread) const {
        if (const auto own = threads_.find(thread); own != threads_.end()) return own->second;
        const auto process = processes_.find(thread & kProcess);
        return process == processes_.end() ? std::nullopt : std::optional(process->second);
    }

  private:
    std::map<std::int64_t, int> threads_, processes_;
};

// The steps of each rank: as recorded or, if none are, the ranges "ProfilerStep#N".
class StepsOfRanks {
  public:
    StepsOfRanks(Database& database, const RanksOfThreads& ranks) {
        Statement rows(database, "SELECT rank, start, \"end\", step FROM SHARD_STEPS");
        while (rows.step())
            steps_[static_cast<int>(rows.integer(0))].push_back(
                {rows.integer(1), rows.integer(2), rows.integer(3)});
        if (steps_.empty()) {
            for_ranges(database, texts_of(database, "ProfilerStep#"),
                       [&](const std::string& text, std::int64_t start, std::int64_t end, std::int64_t tid) {
                           const auto step = profiler_step(text);
                           const auto rank = ranks.of(tid);
                           if (step && rank) steps_[*rank].push_back({start, end, *step});
                       });
        }
        for (auto& [rank, steps] : steps_) std::sort(steps.begin(), steps.end());
    }
    std::int64_t at(int rank, std::int64_t time) const {
        const auto of = steps_.find(rank);
        if (of == steps_.end()) return -1;
        const auto after = std::partition_point(of->second.begin(), of->second.end(),
                                                [&](const Step& step) { return std::get<0>(step) <= time; });
        if (after == of->second.begin()) return -1;
        const auto& [start, end, number] = *(after - 1);
        return time < end ? number : -1;
    }

  private:
    using Step = std::tuple<std::int64_t, std::int64_t, std::int64_t>;  // start, end, number
    std::map<int, std::vector<Step>> steps_;
};

// The names of metrics in StringIds, where new ones are added.
class MetricNames {
  public:
    explicit MetricNames(Database& database)
        : database_(database),
          find_(database, "SELECT id FROM StringIds WHERE value = ?1"),
          add_(database, "INSERT INTO StringIds (value) VALUES (?1)") {}
    std::int64_t id_of(const std::string& name) {
        const auto [known, is_new] = ids_.try_emplace(name);
        if (!is_new) return known->second;
        find_.bind(1, std::string_view(name));
        if (find_.step()) {
            known->second = find_.integer(0);
        } else {
            add_.bind(1, std::string_view(name));
            add_.run();
            known->second = database_.integer("SELECT last_insert_rowid()");
        }
        find_.reset();
        return known->second;
    }

  private:
    Database& database_;
    Statement find_, add_;
    std::map<std::string, std::int64_t> ids_;
};

}  // namespace

void add_marked_metrics(Database& database) {
    const std::map<std::int64_t, std::string> texts = texts_of(database, schema::kMetricMark);
    if (texts.empty()) return;
    const RanksOfThreads ranks(database);
    const StepsOfRanks steps(database, ranks);
    std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t>> stored;  // rank, name, time
    {
        Statement rows(database, "SELECT rank, nameId, time FROM SHARD_METRICS WHERE rank NOT NULL");
        while (rows.step()) stored.emplace(rows.integer(0), rows.integer(1), rows.integer(2));
    }
    std::vector<schema::MetricRow> metrics;
    MetricNames names(database);
    for_ranges(database, texts,
               [&](const std::string& text, std::int64_t time, std::int64_t, std::int64_t tid) {
                   const auto rank = ranks.of(tid);
                   if (!rank) return;
                   const schema::MarkedMetrics marked = schema::marked_metrics(text);
                   for (const auto& [name, value] : marked.values) {
                       const std::int64_t id = names.id_of(name);
                       if (!stored.emplace(*rank, id, time).second) continue;
                       metrics.push_back({.step = marked.step >= 0 ? marked.step : steps.at(*rank, time),
                                          .sample = marked.sample,
                                          .time = time,
                                          .rank = *rank,
                                          .name = static_cast<schema::StringId>(id),
                                          .value = value});
                   }
               });
    RowInsert<schema::MetricRow> into(database);
    for (const schema::MetricRow& row : metrics) into.add(row);
    into.flush();
}

}  // namespace shardscope::traces::store
