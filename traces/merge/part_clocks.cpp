#include "traces/merge/part_clocks.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <set>

#include "traces/merge/clock_fit.h"
#include "traces/merge/part.h"
#include "traces/store/nccl_collectives.h"

namespace shardscope::traces {

namespace {

constexpr std::int64_t kSameStart = 60'000'000'000;  // ns; a machine takes longer to start again
constexpr int kRounds = 20;
constexpr std::int64_t kByOrder = std::int64_t{1} << 40;  // from here on numbers are places in an order

bool ends_together(Operation operation) {
    return operation == Operation::all_gather || operation == Operation::reduce_scatter ||
           operation == Operation::all_reduce || operation == Operation::barrier ||
           operation == Operation::all_to_all;
}

bool share_a_clock(const PartClock& a, const PartClock& b) {
    if (a.host.empty() || a.host != b.host || a.system_ns == 0 || b.system_ns == 0) return false;
    return std::abs((a.utc_ns - a.system_ns) - (b.utc_ns - b.system_ns)) < kSameStart;
}

// Shift of each part's clock to the first's.
std::vector<std::int64_t> shifts_by_wall(const std::vector<PartClock>& parts) {
    std::vector<std::int64_t> shifts(parts.size(), 0);
    for (std::size_t i = 1; i < parts.size(); ++i) {
        const auto leader = static_cast<std::size_t>(
            std::find_if(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(i),
                         [&](const PartClock& p) { return share_a_clock(p, parts[i]); }) -
            parts.begin());
        if (leader < i) {
            shifts[i] = shifts[leader] + parts[i].system_ns - parts[leader].system_ns;
        } else if (parts[0].utc_ns != 0 && parts[i].utc_ns != 0) {
            shifts[i] = parts[i].utc_ns - parts[0].utc_ns;
        }
    }
    return shifts;
}

// A collective that several parts have: (part, end on its clock).
using Shared = std::vector<std::pair<std::size_t, std::int64_t>>;

// The ends of each part, those of collectives without a number among them: these have their place in their
// rank's order as number, where all ranks have equally many of the kind, so that the order means something.
std::vector<CollectiveEnds> numbered_ends(const std::vector<PartClock>& parts) {
    std::map<std::pair<std::int64_t, std::int64_t>, std::set<std::size_t>> counts;
    for (const PartClock& part : parts) {
        for (const auto& [kind, ranks] : part.unnumbered) {
            for (const auto& [rank, times] : ranks) counts[kind].insert(times.size());
        }
    }
    std::vector<CollectiveEnds> all;
    for (const PartClock& part : parts) {
        CollectiveEnds& ends = all.emplace_back(part.ends);
        for (const auto& [kind, ranks] : part.unnumbered) {
            if (counts[kind].size() != 1) continue;
            for (const auto& [rank, times] : ranks) {
                auto ordered = times;
                std::sort(ordered.begin(), ordered.end());
                std::int64_t number = kByOrder;
                for (const auto& [start, end] : ordered) {
                    std::int64_t& last =
                        ends.try_emplace({kind.first, kind.second, number++}, end).first->second;
                    last = std::max(last, end);
                }
            }
        }
    }
    return all;
}

std::vector<Shared> find_shared(const std::vector<PartClock>& parts) {
    std::map<CollectiveKey, Shared> all;
    const std::vector<CollectiveEnds> ends_of = numbered_ends(parts);
    for (std::size_t p = 0; p < parts.size(); ++p) {
        for (const auto& [key, end] : ends_of[p]) all[key].emplace_back(p, end);
    }
    std::vector<Shared> shared;
    for (auto& [key, ends] : all) {
        if (ends.size() > 1) shared.push_back(std::move(ends));
    }
    return shared;
}

class Aligner {
  public:
    explicit Aligner(const std::vector<PartClock>& parts) : parts_(parts), shared_(find_shared(parts)) {
        result_.parts.resize(parts.size());
        const auto shifts = shifts_by_wall(parts);
        for (std::size_t p = 0; p < parts.size(); ++p)
            result_.parts[p].by_wall_ns = result_.parts[p].clock.shift = shifts[p];
        result_.collectives = static_cast<std::int64_t>(shared_.size());
        for (const Shared& ends : shared_) {
            for (const auto& [part, end] : ends) ++result_.parts[part].collectives;
        }
    }

    Alignment run() {
        result_.residual_by_wall_ns = residuals().first;
        join_all();
        refine();
        std::tie(result_.residual_ns, result_.worst_ns) = residuals();
        return std::move(result_);
    }

  private:
    std::int64_t aligned(std::size_t part, std::int64_t end) const { return result_.parts[part].clock(end); }

    std::pair<std::int64_t, std::int64_t> residuals() const {
        std::vector<std::int64_t> widths;
        for (const Shared& ends : shared_) {
            std::int64_t first = INT64_MAX, last = INT64_MIN;
            for (const auto& [part, end] : ends) {
                first = std::min(first, aligned(part, end));
                last = std::max(last, aligned(part, end));
            }
            widths.push_back(last - first);
        }
        const std::int64_t worst = widths.empty() ? 0 : *std::max_element(widths.begin(), widths.end());
        return {median(widths), worst};
    }

    std::vector<ClockPair> pairs(std::size_t own, std::size_t other) const {
        std::vector<ClockPair> found;
        for (const Shared& ends : shared_) {
            std::optional<std::int64_t> a, b;
            for (const auto& [part, end] : ends) {
                if (part == own) a = aligned(part, end);
                if (part == other) b = aligned(part, end);
            }
            if (a && b) found.push_back({*a, *b});
        }
        return found;
    }

    // The spanning tree, grown from the first part; what is not reached begins a tree of its own.
    void join_all() {
        std::map<std::pair<std::size_t, std::size_t>, std::int64_t> common;
        for (const Shared& ends : shared_) {
            for (std::size_t i = 0; i < ends.size(); ++i) {
                for (std::size_t j = 0; j < ends.size(); ++j) ++common[{ends[i].first, ends[j].first}];
            }
        }
        std::vector<bool> joined(parts_.size(), false);
        for (std::size_t root = 0; root < parts_.size(); ++root) {
            if (joined[root]) continue;
            joined[root] = true;
            for (;;) {
                std::int64_t most = 0;
                std::size_t from = 0, to = 0;
                for (const auto& [pair, count] : common) {
                    if (joined[pair.first] && !joined[pair.second] && count > most) {
                        most = count;
                        from = pair.first;
                        to = pair.second;
                    }
                }
                if (most == 0) break;
                joined[to] = true;
                join(to, from);
            }
        }
    }

    void join(std::size_t own, std::size_t other) {
        const bool same_clock = share_a_clock(parts_[own], parts_[other]);
        const ClockFit fit = fit_clock(pairs(own, other), !same_clock);
        if (same_clock && std::abs(fit.offset) <= fit.spread) return;
        AlignedPart& part = result_.parts[own];
        part.by_collectives = true;
        part.clock.drift = fit.drift;
        part.clock.from = fit.from - part.clock.shift;  // on the part's own clock
        part.clock.shift += fit.offset;
    }

    // Where a part meets several others, all of them count.
    void refine() {
        for (int round = 0; parts_.size() > 2 && round < kRounds; ++round) {
            std::vector<std::vector<std::int64_t>> off(parts_.size());
            for (const Shared& ends : shared_) {
                std::vector<std::int64_t> times;
                for (const auto& [part, end] : ends) times.push_back(aligned(part, end));
                for (std::size_t i = 0; i < ends.size(); ++i) {
                    std::vector<std::int64_t> others = times;
                    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
                    off[ends[i].first].push_back(median(others) - times[i]);
                }
            }
            std::int64_t moved = 0;
            for (std::size_t p = 0; p < parts_.size(); ++p) {
                if (!result_.parts[p].by_collectives) continue;
                const std::int64_t by = median(off[p]) / 2;  // the others move, too
                result_.parts[p].clock.shift += by;
                moved = std::max(moved, std::abs(by));
            }
            if (moved == 0) return;
        }
    }

    const std::vector<PartClock>& parts_;
    std::vector<Shared> shared_;
    Alignment result_;
};

// Of an export, in which nobody wrote what NCCL did.
void read_nccl_calls(Part& part, const std::function<std::int64_t(std::int64_t)>& group_of, PartClock& into) {
    for (const char* table :
         {"StringIds", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS", "NVTX_PAYLOAD_SCHEMA_ENTRIES"}) {
        if (part.database.has_table(table) && !part.has_table(table))
            return;  // no plain table, whatever it is
    }
    const NcclCollectives found = find_nccl_collectives(part.database);
    for (std::size_t i = 0; i < found.rows.size(); ++i) {
        const CollectiveRow& row = found.rows[i];
        into.add(row.operation, group_of(row.group), row.group_size, row.sequence, row.rank,
                 found.times[i].first, found.times[i].second);
    }
}

}  // namespace

void PartClock::add(Operation operation, std::int64_t group, std::int64_t group_size, std::int64_t sequence,
                    std::int64_t rank, std::int64_t start, std::int64_t end) {
    if (group_size < 2 || !ends_together(operation)) return;
    const auto number = static_cast<std::int64_t>(operation);
    if (sequence < 0) {
        unnumbered[{group, number}][rank].emplace_back(start, end);
        return;
    }
    std::int64_t& last = ends.try_emplace({group, number, sequence}, end).first->second;
    last = std::max(last, end);
}

void read_collectives(Part& part, const std::function<std::int64_t(std::int64_t)>& group_of,
                      PartClock& into) {
    if (!part.has_table("CUPTI_ACTIVITY_KIND_KERNEL")) return;
    if (!part.ours) return read_nccl_calls(part, group_of, into);
    if (!part.has_table("SHARD_COLLECTIVES")) return;
    Statement row(
        part.database,
        "SELECT c.operation, c.groupId, c.groupSize, c.sequence, c.rank, min(k.start), max(k.\"end\") "
        "FROM SHARD_COLLECTIVES c JOIN CUPTI_ACTIVITY_KIND_KERNEL k "
        "ON k.correlationId = c.correlationId GROUP BY c.rowid");
    while (row.step()) {
        into.add(static_cast<Operation>(row.integer(0)), group_of(row.integer(1)), row.integer(2),
                 row.integer(3), row.integer(4), row.integer(5), row.integer(6));
    }
}

Alignment align_clocks(const std::vector<PartClock>& parts) {
    return Aligner(parts).run();
}

}  // namespace shardscope::traces
