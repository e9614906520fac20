#include "profiler/record/live_rows.h"

#include <algorithm>
#include <charconv>

#include "traces/schema/enums.h"

namespace shardscope::profiler {

namespace {

constexpr std::size_t kMostRangeNames = 1 << 16;  // of ranges; more are not looked at

}  // namespace

void LiveRows::take(const traces::schema::RankRow& row) {
    Rank& rank = ranks_[row.rank];
    rank.host = row.host;
    rank.pid = row.global_pid >> 24 & 0xFFFFFF;
    const auto [known, is_new] = rank_of_process_.emplace(row.global_pid, row.rank);
    if (!is_new && known->second != row.rank) known->second = -1;
}

void LiveRows::take(const traces::schema::CounterRow& row, const traces::store::EventSink& sink) {
    const std::string_view name = sink.text(row.name);
    const bool cores = name == "process_cpu_cores";
    if (!cores && name != "process_resident_bytes") return;
    Rank& rank = ranks_[row.rank];
    rank.counted_ns = row.time;
    if (cores) {
        rank.cores = row.value;
    } else {
        rank.resident_bytes = static_cast<std::int64_t>(row.value);
    }
}

std::optional<std::int64_t> LiveRows::step_of(traces::schema::StringId name,
                                              const traces::store::EventSink& sink) {
    const auto known = steps_by_name_.find(static_cast<std::uint32_t>(name));
    std::int64_t step = -1;
    if (known != steps_by_name_.end()) {
        step = known->second;
    } else {
        std::string_view text = sink.text(name);
        if (text.starts_with(step_name_)) {
            text.remove_prefix(step_name_.size());
            const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), step);
            if (error != std::errc() || end != text.data() + text.size() || step < 0) step = -1;
        }
        // Each step has a name of its own, which is not seen often.
        if (step < 0 && steps_by_name_.size() < kMostRangeNames)
            steps_by_name_.emplace(static_cast<std::uint32_t>(name), step);
    }
    if (step < 0) return std::nullopt;
    return step;
}

void LiveRows::take(const traces::schema::RangeRow& row, const traces::store::EventSink& sink) {
    if (!row.end) return;
    const auto step = step_of(row.text, sink);
    if (!step) return;
    const std::int64_t process = row.global_tid & traces::schema::kPidMask;
    std::int64_t& done = steps_of_process_[process];
    done = std::max(done, *step + 1);
    steps_done_ = std::min_element(steps_of_process_.begin(), steps_of_process_.end(),
                                   [](const auto& a, const auto& b) { return a.second < b.second; })
                      ->second;
    const auto rank = rank_of_process_.find(process);
    if (rank != rank_of_process_.end() && rank->second >= 0) ranks_[rank->second].steps_done = done;
}

void LiveRows::take(const traces::schema::NcclOperationRow& row) {
    const auto group = groups_.emplace(row.communicator, static_cast<int>(groups_.size())).first->second;
    Rank& rank = ranks_[row.rank];
    rank.collective = traces::status::CollectiveStatus{
        std::string(name(row.operation)), row.sequence, group, !row.end.has_value(), {}};
    rank.collective_ns = row.end.value_or(row.start);
}

}  // namespace shardscope::profiler
