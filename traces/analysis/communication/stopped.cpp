// See stopped.h.
#include "traces/analysis/communication/stopped.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include <fmt/core.h>

#include "traces/analysis/base/step_windows.h"
#include "traces/analysis/communication/matching.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

// "0,2-5" -> {0, 2, 3, 4, 5}; the format that merge writes.
std::set<int> numbers_of(std::string_view list) {
    std::set<int> numbers;
    const char* at = list.data();
    const char* const end = at + list.size();
    while (at < end) {
        int first = 0;
        auto read = std::from_chars(at, end, first);
        int last = first;
        if (read.ec == std::errc() && read.ptr < end && *read.ptr == '-')
            read = std::from_chars(read.ptr + 1, end, last);
        if (read.ec != std::errc()) break;
        constexpr int kAtMost = 0xFFFF;  // most ranks of a trace
        if (first < 0 || last > kAtMost) break;
        for (int n = first; n <= last; ++n) numbers.insert(n);
        at = read.ptr < end ? read.ptr + 1 : end;
    }
    return numbers;
}

// The ranks that had not ended, as recorded by the merge; repeated merges keep the earlier records.
std::optional<std::set<int>> unended_ranks(const store::Trace& trace) {
    std::optional<std::set<int>> ranks;
    for (const auto& [key, value] : trace.config) {
        if (!key.ends_with("merge.unended_ranks")) continue;
        if (!ranks) ranks.emplace();
        ranks->merge(numbers_of(value));
    }
    return ranks;
}

class Search {
  public:
    explicit Search(const store::Trace& trace) : trace_(trace) {}

    StopReport run() {
        find_ends();
        const int first = trace_.stops.empty() ? infer() : told();
        if (first < 0 && trace_.stops.empty()) return {};
        report_.stopped = true;
        report_.first_rank = first;
        if (const store::Rank* rank = rank_of(first)) report_.host = rank->host;
        find_waiting();
        return std::move(report_);
    }

  private:
    const store::Rank* rank_of(int number) const {
        const store::RankIndex at = trace_.rank_of_number(number);
        return at.known() ? &trace_.ranks[at.at()] : nullptr;
    }

    // --- where each rank's trace ends

    void find_ends() {
        const bool cut = !trace_.ended || !trace_.config_value("finalized").empty();
        const std::optional<std::set<int>> unended = unended_ranks(trace_);
        for (const store::Rank& rank : trace_.ranks) {
            RankAtEnd& end = report_.ranks.emplace_back();
            end.rank = rank.number;
            end.host = rank.host;
            end.ended = unended ? !unended->contains(rank.number) : !cut;
            end.last_ns = trace_.first_ns;
        }
        const auto saw = [&](store::RankIndex rank, std::int64_t ns) {
            if (!rank.known()) return;
            RankAtEnd& end = report_.ranks[rank.at()];
            end.last_ns = std::max(end.last_ns, ns);
        };
        for (std::size_t i = 0; i < trace_.device.size(); ++i)
            saw(store::RankIndex(trace_.device.rank[i]), trace_.device.end[i]);
        const auto of_thread = [&](std::uint16_t thread) { return trace_.threads[thread].rank; };
        for (std::size_t i = 0; i < trace_.runtime.size(); ++i)
            saw(of_thread(trace_.runtime.thread[i]), trace_.runtime.end[i]);
        for (std::size_t i = 0; i < trace_.ranges.size(); ++i)
            saw(of_thread(trace_.ranges.thread[i]), trace_.ranges.end[i]);
        for (const store::Step& step : trace_.steps) {
            RankAtEnd& end = report_.ranks[step.rank.at()];
            end.last_step = std::max(end.last_step, step.number);
        }
        find_last_collectives();
    }

    void find_last_collectives() {
        const store::Collectives& all = trace_.collectives;
        std::vector<std::int64_t> last(trace_.ranks.size(), INT64_MIN);
        std::vector<std::int64_t> row(trace_.ranks.size(), -1);
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (all.event[i] < 0) continue;
            const std::int64_t end = trace_.device.end[static_cast<std::size_t>(all.event[i])];
            if (end < last[all.rank[i]]) continue;
            last[all.rank[i]] = end;
            row[all.rank[i]] = static_cast<std::int64_t>(i);
        }
        for (std::size_t r = 0; r < row.size(); ++r) {
            if (row[r] >= 0) report_.ranks[r].last_collective = text_of(static_cast<std::size_t>(row[r]));
        }
    }

    std::string text_of(std::size_t row) const {
        const store::Collectives& all = trace_.collectives;
        std::string text(name(all.operation[row]));
        if (all.sequence[row] >= 0) text += fmt::format(" {}", all.sequence[row]);
        return text + fmt::format(" of group {}", all.group[row]);
    }

    // --- the first rank to stop

    // The rank that most of the remaining ranks report; of several with equally many reports, the one that
    // was reported first.
    int told() {
        std::map<int, int> votes;
        for (const schema::StopRow& row : trace_.stops) ++votes[row.first_rank];
        const schema::StopRow* best = nullptr;
        for (const schema::StopRow& row : trace_.stops) {
            if (best == nullptr || votes[row.first_rank] > votes[best->first_rank]) best = &row;
        }
        report_.told = true;
        report_.at_ns = best->at_ns;
        report_.reason = best->reason;
        report_.lost = best->lost;
        for (const schema::StopRow& row : trace_.stops) {  // the rank's own report is more precise
            if (row.rank != best->first_rank || row.first_rank != row.rank) continue;
            report_.reason = row.reason;
            report_.lost = row.lost;
        }
        return best->first_rank;
    }

    // Among the ranks whose parts were cut off, the one that ends first, if it ends before the others by the
    // commit interval or more. Ranks of one process are cut off together.
    int infer() {
        const RankAtEnd* first = nullptr;
        for (const RankAtEnd& rank : report_.ranks) {
            if (!rank.ended && (first == nullptr || rank.last_ns < first->last_ns)) first = &rank;
        }
        if (first == nullptr) return -1;
        const std::int64_t process = rank_of(first->rank)->global_pid;
        std::int64_t next = INT64_MAX;
        bool others = false;
        for (const RankAtEnd& rank : report_.ranks) {
            if (rank_of(rank.rank)->global_pid == process) continue;
            others = true;
            if (!rank.ended) next = std::min(next, rank.last_ns);
        }
        if (!others || next - kCommittedEvery < first->last_ns) return -1;
        report_.at_ns = first->last_ns;
        return first->rank;
    }

    // --- what the others waited in

    void find_waiting() {
        for (const schema::StopRow& row : trace_.stops) {
            for (RankAtEnd& rank : report_.ranks) {
                if (rank.rank != row.rank) continue;
                rank.waiting = row.waiting;
                rank.said = true;
            }
        }
        const store::Rank* first = rank_of(report_.first_rank);
        if (first == nullptr) return;
        const auto index = static_cast<std::uint16_t>(first - trace_.ranks.data());
        const store::Collectives& all = trace_.collectives;
        std::set<std::int64_t> groups;  // groups of the rank that stopped
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (all.rank[i] == index) groups.insert(all.group[i]);
        }
        // Takes only the last of them: earlier ones completed, and only their records were not committed.
        std::vector<std::int64_t> when(trace_.ranks.size(), INT64_MIN);
        const Communications communications = match_communications(trace_);
        for (const CollectiveMatch& match : communications.matches) {
            const auto parts = communications.of(match);
            if (!match.unmatched || parts.front().row < 0) continue;
            if (!groups.contains(all.group[static_cast<std::size_t>(parts.front().row)])) continue;
            if (std::any_of(parts.begin(), parts.end(), [&](const auto& p) { return p.rank == index; }))
                continue;
            for (const Communication& part : parts) {
                RankAtEnd& rank = report_.ranks[part.rank];
                if (rank.said || part.event < 0) continue;
                const std::int64_t start = trace_.device.start[static_cast<std::size_t>(part.event)];
                if (start < when[part.rank]) continue;
                when[part.rank] = start;
                rank.waiting = text_of(static_cast<std::size_t>(part.row));
            }
        }
    }

    const store::Trace& trace_;
    StopReport report_;
};

}  // namespace

StopReport stop_report(const store::Trace& trace) {
    // Nearly every trace ended normally; its events need not be read.
    if (trace.stops.empty() && trace.ended && trace.config_value("finalized").empty() &&
        !unended_ranks(trace))
        return {};
    return Search(trace).run();
}

std::string stop_sentence(const StopReport& report) {
    if (!report.stopped) return {};
    if (report.first_rank < 0) return fmt::format("The job failed: {}.", report.reason);
    const std::string on = report.host.empty() ? "" : " on " + report.host;
    if (report.told)
        return fmt::format("Rank {}{} was the first to stop{}{}.", report.first_rank, on,
                           report.reason.empty() ? "" : ": ", report.reason);
    return fmt::format("Rank {}{} seems to have stopped first: its trace ends before those of the others.",
                       report.first_rank, on);
}

}  // namespace shardscope::traces::analysis
