#include "traces/merge/part_clocks.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <set>

#include <fmt/core.h>

#include "traces/analysis/base/percentile.h"
#include "traces/merge/clock_fit.h"
#include "traces/merge/part.h"
#include "traces/schema/communication_kernels.h"
#include "traces/store/nccl/nccl_collectives.h"

namespace shardscope::traces::merge {

namespace {

constexpr std::int64_t kSameStart = 60'000'000'000;  // ns; a reboot takes longer
constexpr int kRounds = 20;
constexpr std::int64_t kByOrder = std::int64_t{1} << 40;  // numbers from here on are positions in an order

bool share_a_clock(const PartClock& a, const PartClock& b) {
    if (a.host.empty() || a.host != b.host || a.system_ns == 0 || b.system_ns == 0) return false;
    return std::abs((a.utc_ns - a.system_ns) - (b.utc_ns - b.system_ns)) < kSameStart;
}

// The shift from each part's clock to the first part's.
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

// The ends of one collective that several parts recorded: (part, end on its clock).
using Shared = std::vector<std::pair<std::size_t, std::int64_t>>;

// The ends of each part's collectives. Collectives without a sequence number are numbered by their position
// in their rank's order, but only if all ranks have equally many of the kind, so that positions correspond.
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

// The collectives that at least two of the parts (or clocks) have in common, with their indices.
std::vector<Shared> find_shared(const std::vector<CollectiveEnds>& ends_of) {
    std::map<CollectiveKey, Shared> all;
    for (std::size_t p = 0; p < ends_of.size(); ++p) {
        for (const auto& [key, end] : ends_of[p]) all[key].emplace_back(p, end);
    }
    std::vector<Shared> shared;
    for (auto& [key, ends] : all) {
        if (ends.size() > 1) shared.push_back(std::move(ends));
    }
    return shared;
}

// Parts that move together: one part or, if clocks were measured, all parts of one machine. The clock's time
// is that of its first part.
struct Clock {
    std::vector<std::pair<std::size_t, std::int64_t>> parts;  // (part, offset of its times)
    CollectiveEnds ends;                                      // the latest among its parts
    std::optional<MeasuredClock> measured;
    ClockMap map;                 // to the time of the first part
    std::int64_t bound = -1;      // how far collectives may move it, ns; -1: no limit
    std::int64_t correction = 0;  // how far collectives moved it, ns
    bool by_collectives = false;
};

void add_part(Clock& clock, std::size_t part, std::int64_t added, const CollectiveEnds& ends) {
    clock.parts.emplace_back(part, added);
    for (const auto& [key, end] : ends) {
        const std::int64_t time = moved(end, added);
        std::int64_t& last = clock.ends.try_emplace(key, time).first->second;
        last = std::max(last, time);
    }
}

// The measured clock that parts[i] shares with other parts, in the time of parts[i].
std::optional<MeasuredClock> measured_clock(const std::vector<PartClock>& parts, std::size_t i) {
    const PartClock& first = parts[i];
    if (first.system_ns == 0) return {};
    std::vector<ClockMeasure> measures;
    std::int64_t length = 0;
    for (std::size_t p = i; p < parts.size(); ++p) {
        if (p != i && !share_a_clock(parts[p], first)) continue;
        const std::int64_t added = parts[p].system_ns - first.system_ns;
        length = std::max(length, parts[p].length_ns + added);
        if (parts[p].has_rank_0) measures.push_back({.at = added});
        for (ClockMeasure measure : parts[p].measures) {
            measure.at += added;
            measures.push_back(measure);
        }
    }
    return fit_measures(std::move(measures), first.system_ns, length);
}

// The clocks of the parts, placed by the wall clock or by measurements.
std::vector<Clock> find_clocks(const std::vector<PartClock>& parts, const std::vector<std::int64_t>& shifts,
                               const std::vector<CollectiveEnds>& ends) {
    const bool were_measured = std::any_of(parts.begin(), parts.end(), [](const PartClock& part) {
        return !part.measures.empty() && part.system_ns != 0;
    });
    std::vector<Clock> clocks;
    const Clock* leader = nullptr;  // the first measured clock
    clocks.reserve(parts.size());   // keeps `leader` valid
    for (std::size_t p = 0; p < parts.size(); ++p) {
        const auto shared = std::find_if(clocks.begin(), clocks.end(), [&](const Clock& clock) {
            return clock.measured && share_a_clock(parts[clock.parts.front().first], parts[p]);
        });
        if (shared != clocks.end()) {
            add_part(*shared, p, parts[p].system_ns - shared->measured->base, ends[p]);
            continue;
        }
        Clock& clock = clocks.emplace_back();
        add_part(clock, p, 0, ends[p]);
        clock.map.shift = shifts[p];
        if (!were_measured) continue;
        clock.measured = measured_clock(parts, p);
        if (!clock.measured) continue;
        if (leader == nullptr) {
            leader = &clock;
            continue;
        }
        clock.map = map_between(*clock.measured, *leader->measured);
        clock.map.shift += leader->map.shift;
    }
    return clocks;
}

class Aligner {
  public:
    explicit Aligner(const std::vector<PartClock>& parts) : parts_(parts) {
        const std::vector<CollectiveEnds> ends = numbered_ends(parts);
        const auto shifts = shifts_by_wall(parts);
        clocks_ = find_clocks(parts, shifts, ends);
        of_parts_ = find_shared(ends);
        std::vector<CollectiveEnds> clock_ends;
        for (Clock& clock : clocks_) clock_ends.push_back(std::move(clock.ends));
        shared_ = find_shared(clock_ends);

        result_.parts.resize(parts.size());
        for (std::size_t p = 0; p < parts.size(); ++p)
            result_.parts[p].by_wall_ns = result_.parts[p].clock.shift = shifts[p];
        result_.collectives = static_cast<std::int64_t>(of_parts_.size());
        for (const Shared& of : of_parts_) {
            for (const auto& [part, end] : of) ++result_.parts[part].collectives;
        }
    }

    Alignment run() {
        result_.residual_by_wall_ns = residuals().first;
        place_parts();
        result_.residual_measured_ns = residuals().first;
        bound_clocks();
        join_all();
        refine();
        place_parts();
        std::tie(result_.residual_ns, result_.worst_ns) = residuals();
        return std::move(result_);
    }

  private:
    std::int64_t aligned(std::size_t clock, std::int64_t end) const { return clocks_[clock].map(end); }

    // Gives each part the mapping of its clock.
    void place_parts() {
        for (const Clock& clock : clocks_) {
            for (const auto& [part, added] : clock.parts) {
                AlignedPart& to = result_.parts[part];
                to.clock = clock.map;
                to.clock.shift += added;
                to.clock.from -= added;
                to.by_collectives = clock.by_collectives;
                to.correction_ns = clock.correction;
                if (!clock.measured || !clocks_.front().measured) continue;
                const std::int64_t last = added + parts_[part].length_ns;
                to.uncertainty_ns = std::max(uncertainty_at(clock, added), uncertainty_at(clock, last));
            }
        }
    }

    // The uncertainty of a measured clock against the first clock, which was measured, too. `time` is on
    // `clock`.
    std::int64_t uncertainty_at(const Clock& clock, std::int64_t time) const {
        if (&clock == &clocks_.front()) return 0;
        return clock.measured->uncertainty_at(time) +
               clocks_.front().measured->uncertainty_at(clock.map(time));
    }

    // Collectives may move a measured clock by the largest sum of both clocks' uncertainties at their ends.
    void bound_clocks() {
        if (!clocks_.front().measured) return;
        for (Clock& clock : clocks_) {
            if (clock.measured) clock.bound = 0;
        }
        for (const Shared& ends : shared_) {
            for (const auto& [at, end] : ends) {
                Clock& clock = clocks_[at];
                if (clock.measured) clock.bound = std::max(clock.bound, uncertainty_at(clock, end));
            }
        }
    }

    std::pair<std::int64_t, std::int64_t> residuals() const {
        std::vector<std::int64_t> widths;
        for (const Shared& ends : of_parts_) {
            std::int64_t first = INT64_MAX, last = INT64_MIN;
            for (const auto& [part, end] : ends) {
                const std::int64_t time = result_.parts[part].clock(end);
                first = std::min(first, time);
                last = std::max(last, time);
            }
            widths.push_back(last - first);
        }
        const std::int64_t worst = widths.empty() ? 0 : *std::max_element(widths.begin(), widths.end());
        return {analysis::lower_median(widths), worst};
    }

    std::vector<ClockPair> pairs(std::size_t own, std::size_t other) const {
        std::vector<ClockPair> found;
        for (const Shared& ends : shared_) {
            std::optional<std::int64_t> a, b;
            for (const auto& [clock, end] : ends) {
                if (clock == own) a = aligned(clock, end);
                if (clock == other) b = aligned(clock, end);
            }
            if (a && b) found.push_back({*a, *b});
        }
        return found;
    }

    // Grows the spanning tree from the first clock; a clock that it does not reach begins another tree.
    void join_all() {
        std::map<std::pair<std::size_t, std::size_t>, std::int64_t> common;
        for (const Shared& ends : shared_) {
            for (std::size_t i = 0; i < ends.size(); ++i) {
                for (std::size_t j = 0; j < ends.size(); ++j) ++common[{ends[i].first, ends[j].first}];
            }
        }
        std::vector<bool> joined(clocks_.size(), false);
        for (std::size_t root = 0; root < clocks_.size(); ++root) {
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
        Clock& clock = clocks_[own];
        const auto found = pairs(own, other);
        const bool is_bound = clock.bound >= 0;
        const bool same_clock = !is_bound && share_a_clock(parts_[clock.parts.front().first],
                                                           parts_[clocks_[other].parts.front().first]);
        const bool may_drift = is_bound ? !clock.measured->knows_drift : !same_clock;
        const ClockFit fit = fit_clock(found, may_drift);
        if (same_clock && std::abs(fit.offset) <= fit.spread) return;
        // The error of a median is about twice the spread over the square root of the number of pairs.
        if (is_bound && 2 * static_cast<double>(fit.spread) / std::sqrt(static_cast<double>(found.size())) >=
                            static_cast<double>(clock.bound))
            return;
        clock.by_collectives = true;
        if (fit.drift != 0) {
            const std::int64_t from = fit.from - clock.map.shift;  // on the clock's own time
            if (clock.map.drift == 0) {
                clock.map.from = from;
            } else {  // the sum of both lines, anchored at the point of the first one
                clock.map.shift += std::llround(fit.drift * static_cast<double>(clock.map.from - from));
            }
            clock.map.drift += fit.drift;
        }
        move(clock, fit.offset);
    }

    // Moves the clock by as much of `by` as its bound allows; returns that amount.
    static std::int64_t move(Clock& clock, std::int64_t by) {
        if (clock.bound >= 0)
            by = std::clamp(clock.correction + by, -clock.bound, clock.bound) - clock.correction;
        clock.correction += by;
        clock.map.shift += by;
        return by;
    }

    // Moves each aligned clock towards all with which it shares collectives, not only its tree neighbours.
    void refine() {
        for (int round = 0; clocks_.size() > 2 && round < kRounds; ++round) {
            std::vector<std::vector<std::int64_t>> off(clocks_.size());
            for (const Shared& ends : shared_) {
                std::vector<std::int64_t> times;
                for (const auto& [clock, end] : ends) times.push_back(aligned(clock, end));
                for (std::size_t i = 0; i < ends.size(); ++i) {
                    std::vector<std::int64_t> others = times;
                    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
                    off[ends[i].first].push_back(analysis::lower_median(others) - times[i]);
                }
            }
            std::int64_t moved = 0;
            for (std::size_t c = 0; c < clocks_.size(); ++c) {
                if (!clocks_[c].by_collectives) continue;
                const std::int64_t by = analysis::lower_median(off[c]) / 2;  // the others move, too
                moved = std::max(moved, std::abs(move(clocks_[c], by)));
            }
            if (moved == 0) return;
        }
    }

    const std::vector<PartClock>& parts_;
    std::vector<Clock> clocks_;              // the first one contains the first part
    std::vector<Shared> shared_, of_parts_;  // indexed by clock, and by part
    Alignment result_;
};

// For an export, which has no table of collectives.
void read_nccl_calls(Part& part, const std::function<std::int64_t(std::int64_t)>& group_of, PartClock& into) {
    for (const char* table :
         {"StringIds", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS", "NVTX_PAYLOAD_SCHEMA_ENTRIES"}) {
        if (part.database.has_table(table) && !part.has_table(table)) return;  // a view or a stand-in
    }
    const store::NcclCollectives found = find_nccl_collectives(part.database);
    for (std::size_t i = 0; i < found.rows.size(); ++i) {
        const schema::CollectiveRow& row = found.rows[i];
        into.add(row.operation, group_of(row.group), row.group_size, row.sequence, row.rank,
                 found.times[i].first, found.times[i].second);
    }
}

}  // namespace

void PartClock::add(schema::Operation operation, std::int64_t group, std::int64_t group_size,
                    std::int64_t sequence, std::int64_t rank, std::int64_t start, std::int64_t end) {
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
    store::Statement row(
        part.database,
        fmt::format("SELECT c.operation, c.groupId, c.groupSize, c.sequence, c.rank, k.start, k.\"end\" "
                    "FROM ({}) w JOIN SHARD_COLLECTIVES c ON c.rowid = w.collective "
                    "JOIN CUPTI_ACTIVITY_KIND_KERNEL k ON k.rowid = w.kernel",
                    schema::collective_kernels_sql()));
    while (row.step()) {
        into.add(static_cast<schema::Operation>(row.integer(0)), group_of(row.integer(1)), row.integer(2),
                 row.integer(3), row.integer(4), row.integer(5), row.integer(6));
    }
}

Alignment align_clocks(const std::vector<PartClock>& parts) {
    return Aligner(parts).run();
}

}  // namespace shardscope::traces::merge
