// See flight.h.
#include "traces/analysis/communication/flight.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "traces/schema/dumped_groups.h"
#include "traces/schema/sort_rows.h"
#include "traces/store/columns/trace.h"
#include "traces/store/stack_text.h"

namespace shardscope::traces::analysis {
namespace {

using ToldGroups = std::map<std::pair<int, std::string>, schema::DumpedGroup>;  // by rank and group

ToldGroups told_groups(const store::Trace& trace) {
    ToldGroups told;
    for (const auto& [key, value] : trace.config) {
        // Merged files prefix keys whose values differ with "part.N.".
        const std::size_t at = key.rfind("flight_recorder.rank");
        int rank = 0;
        if (at == std::string::npos || !key.ends_with(".groups")) continue;
        for (const char c : key.substr(at + 20, key.size() - at - 27)) {
            if (c < '0' || c > '9' || rank > 100'000'000) return told;
            rank = rank * 10 + (c - '0');
        }
        for (auto& [name, group] : schema::parse_dumped_groups(value)) told[{rank, name}] = std::move(group);
    }
    return told;
}

// A group's name and, if recorded, its members.
using GroupKey = std::pair<std::string, std::vector<int>>;

// The records of one rank in one group: collectives by sequence number, sends and receives separately.
struct RankRecords {
    std::map<std::int64_t, std::vector<std::size_t>> collectives;  // rows of Trace::flight
    std::vector<std::size_t> point_to_point;
    std::int64_t enqueued = -1, completed = -1;  // from the group's status

    std::int64_t last() const {
        return collectives.empty() ? enqueued : std::max(enqueued, collectives.rbegin()->first);
    }
};
using GroupRecords = std::map<int, RankRecords>;  // by rank

class Flights {
  public:
    Flights(const store::Trace& trace, const Selection& selection)
        : trace_(trace), told_(told_groups(trace)) {
        std::set<int> ranks;
        for (const auto& [key, told] : told_) {
            ranks.insert(key.first);
            GroupRecords& group = groups_[key_of(key.first, key.second)];
            group[key.first].enqueued = told.enqueued.value_or(-1);
            group[key.first].completed = told.completed.value_or(-1);
        }
        for (std::size_t i = 0; i < trace.flight.size(); ++i) {
            const schema::FlightRow& row = trace.flight[i];
            ranks.insert(row.rank);
            last_of_rank_[row.rank] = i;  // rows are sorted by (rank, id)
            if (selection.from_ns && row.created < *selection.from_ns) continue;
            if (selection.to_ns && row.created >= *selection.to_ns) continue;
            RankRecords& records = groups_[key_of(row.rank, std::string(trace.strings[row.group]))][row.rank];
            if (row.point_to_point) {
                records.point_to_point.push_back(i);
            } else {
                records.collectives[row.sequence].push_back(i);
            }
        }
        report_.ranks.assign(ranks.begin(), ranks.end());
        if (selection.rank) {
            std::erase_if(groups_,
                          [&](const auto& group) { return group.second.count(*selection.rank) == 0; });
        }
    }

    FlightReport report() {
        for (const auto& [key, records] : groups_) {
            FlightGroup group = look_at(key, records);
            // A group that was created but never used is not reported.
            if (group.last_sequence < 0 && group.pending.empty()) continue;
            report_.groups.push_back(std::move(group));
        }
        schema::sort_rows(report_.groups,
                          [](const FlightGroup& a, const FlightGroup& b) { return a.stopped > b.stopped; });
        find_who_holds_up();
        tell();
        return std::move(report_);
    }

  private:
    GroupKey key_of(int rank, const std::string& name) const {
        const auto told = told_.find({rank, name});
        if (told == told_.end()) return {name, {}};
        return {name, {told->second.ranks.begin(), told->second.ranks.end()}};
    }

    FlightPlace place(std::size_t row) const {
        const schema::FlightRow& r = trace_.flight[row];
        FlightPlace place;
        place.rank = r.rank;
        place.sequence = r.sequence;
        place.group = trace_.strings[r.group];
        place.operation = r.operation;
        place.name = trace_.strings[r.name];
        place.state = r.state;
        place.sizes = trace_.strings[r.sizes];
        place.data_type = trace_.strings[r.data_type];
        place.input_bytes = r.input_bytes;
        place.output_bytes = r.output_bytes;
        place.created_ns = r.created;
        place.timeout_ms = r.timeout_ms;
        place.stack = trace_.strings[r.stack];
        return place;
    }

    // The part of a coalesced collective that is furthest behind.
    std::size_t slowest(const std::vector<std::size_t>& rows) const {
        return *std::min_element(rows.begin(), rows.end(), [&](std::size_t a, std::size_t b) {
            return trace_.flight[a].state < trace_.flight[b].state;
        });
    }
    bool complete(const std::vector<std::size_t>& rows) const {
        return trace_.flight[slowest(rows)].state == schema::FlightState::completed;
    }

    FlightGroup look_at(const GroupKey& key, const GroupRecords& records) const {
        FlightGroup group;
        group.name = key.first;
        std::set<std::int64_t> sequences;
        for (const auto& [rank, own] : records) {
            group.ranks.push_back(rank);
            if (const auto told = told_.find({rank, key.first}); told != told_.end())
                group.description = told->second.description;
            for (const auto& [sequence, rows] : own.collectives) sequences.insert(sequence);
            for (const std::size_t row : own.point_to_point) {
                if (trace_.flight[row].state != schema::FlightState::completed)
                    group.pending.push_back(place(row));
            }
        }
        for (const int member : key.second) {
            if (records.count(member) == 0) group.without_dump.push_back(member);
        }
        if (sequences.empty()) return group;
        group.first_sequence = *sequences.begin();
        group.last_sequence = *sequences.rbegin();
        for (const std::int64_t sequence : sequences) {
            compare(records, sequence, group);
            if (group.stopped) continue;
            const bool everywhere = std::all_of(records.begin(), records.end(), [&](const auto& rank) {
                return completed_by(rank.second, sequence);
            });
            if (everywhere) {
                group.completed_everywhere = sequence;
            } else {
                group.stopped = true;
                group.stop = stop_at(records, sequence);
            }
        }
        return group;
    }

    // A record that the ring no longer holds was completed: later work of the same group was recorded.
    bool completed_by(const RankRecords& records, std::int64_t sequence) const {
        const auto at = records.collectives.find(sequence);
        if (at != records.collectives.end()) return complete(at->second);
        return records.completed >= sequence || records.last() > sequence;
    }

    FlightStop stop_at(const GroupRecords& records, std::int64_t sequence) const {
        FlightStop stop;
        stop.sequence = sequence;
        for (const auto& [rank, own] : records) {
            const auto at = own.collectives.find(sequence);
            if (at == own.collectives.end()) {
                if (own.last() < sequence) {
                    stop.missing.push_back(last_place(rank));
                } else if (!completed_by(own, sequence)) {  // reached, according to the status
                    FlightPlace& here = stop.waiting.emplace_back();
                    here.rank = rank;
                }
                continue;
            }
            FlightPlace here = place(slowest(at->second));
            if (stop.name.empty()) {
                stop.name = here.name;
                stop.operation = here.operation;
            }
            (here.state == schema::FlightState::completed ? stop.completed : stop.waiting)
                .push_back(std::move(here));
        }
        return stop;
    }

    FlightPlace last_place(int rank) const {
        const auto last = last_of_rank_.find(rank);
        if (last != last_of_rank_.end()) return place(last->second);
        FlightPlace none;
        none.rank = rank;
        return none;
    }

    // --- mismatches --------------------------------------------------------------------------------------

    // Whether all ranks share the sizes of such a collective; in the others each rank may have its own.
    static bool sizes_agree(schema::Operation operation) {
        switch (operation) {
            case schema::Operation::all_gather:
            case schema::Operation::reduce_scatter:
            case schema::Operation::all_reduce:
            case schema::Operation::broadcast:
            case schema::Operation::reduce:
                return true;
            default:
                return false;
        }
    }

    template <typename Text>
    bool differs(const std::vector<std::size_t>& rows, const char* what, Text text,
                 FlightGroup& group) const {
        FlightMismatch mismatch;
        mismatch.what = what;
        for (const std::size_t row : rows) {
            const std::string own = text(trace_.flight[row]);
            auto variant = std::find_if(mismatch.variants.begin(), mismatch.variants.end(),
                                        [&](const auto& v) { return v.text == own; });
            if (variant == mismatch.variants.end()) {
                mismatch.places.push_back(place(row));
                variant = mismatch.variants.insert(variant, {own, {}});
            }
            variant->ranks.push_back(trace_.flight[row].rank);
        }
        if (mismatch.variants.size() < 2) return false;
        mismatch.sequence = trace_.flight[rows.front()].sequence;
        ++group.mismatch_count;
        if (group.mismatches.size() < kMostMismatches) group.mismatches.push_back(std::move(mismatch));
        return true;
    }

    void compare(const GroupRecords& records, std::int64_t sequence, FlightGroup& group) const {
        std::vector<std::size_t> firsts;
        std::vector<const std::vector<std::size_t>*> all;
        for (const auto& [rank, own] : records) {
            const auto at = own.collectives.find(sequence);
            if (at == own.collectives.end()) continue;
            firsts.push_back(at->second.front());
            all.push_back(&at->second);
        }
        if (firsts.size() < 2) return;
        std::size_t parts = all.front()->size();
        std::map<std::size_t, std::size_t> counts;  // by row of the first part
        for (std::size_t i = 0; i < all.size(); ++i) {
            counts[firsts[i]] = all[i]->size();
            parts = std::min(parts, all[i]->size());
        }
        const auto count = [&](const schema::FlightRow& row) {
            return fmt::format("{} part(s)", counts[static_cast<std::size_t>(&row - trace_.flight.data())]);
        };
        if (differs(firsts, "count", count, group)) return;
        for (std::size_t part = 0; part < parts; ++part) {
            std::vector<std::size_t> rows;
            rows.reserve(all.size());
            for (const auto* own : all) rows.push_back((*own)[part]);
            const auto operation = [&](const schema::FlightRow& row) {
                return row.operation == schema::Operation::other ? std::string(trace_.strings[row.name])
                                                                 : std::string(name(row.operation));
            };
            if (differs(rows, "operation", operation, group)) return;
            const auto type = [&](const schema::FlightRow& row) {
                return std::string(trace_.strings[row.data_type]);
            };
            if (differs(rows, "type", type, group)) return;
            if (!sizes_agree(trace_.flight[rows.front()].operation)) continue;
            // Shapes may differ if the bytes are the same.
            const auto same = [&](std::int64_t schema::FlightRow::*bytes) {
                return std::all_of(rows.begin(), rows.end(), [&](std::size_t row) {
                    return trace_.flight[row].*bytes >= 0 &&
                           trace_.flight[row].*bytes == trace_.flight[rows.front()].*bytes;
                });
            };
            if (same(&schema::FlightRow::input_bytes) && same(&schema::FlightRow::output_bytes)) continue;
            const auto size = [&](const schema::FlightRow& row) {
                return std::string(trace_.strings[row.sizes]);
            };
            if (differs(rows, "size", size, group)) return;
        }
    }

    // --- which rank holds up which -----------------------------------------------------------------------

    void find_who_holds_up() {
        std::map<int, std::vector<int>> waits_in;  // groups by waiting rank
        for (std::size_t g = 0; g < report_.groups.size(); ++g) {
            for (const FlightPlace& place : report_.groups[g].stop.waiting)
                waits_in[place.rank].push_back(static_cast<int>(g));
        }
        for (std::size_t g = 0; g < report_.groups.size(); ++g) {
            FlightGroup& group = report_.groups[g];
            for (const FlightPlace& place : group.stop.missing) {
                int held = -1;
                if (const auto waits = waits_in.find(place.rank); waits != waits_in.end()) {
                    for (const int other : waits->second) {
                        if (other != static_cast<int>(g) && held < 0) held = other;
                    }
                }
                group.held_up_in.push_back(held);
            }
        }
    }

    static std::string list(std::span<const FlightPlace> places) {
        std::string text;
        constexpr std::size_t kShown = 16;
        for (std::size_t i = 0; i < places.size() && i < kShown; ++i)
            text += fmt::format("{}{}", i > 0 ? ", " : "", places[i].rank);
        if (places.size() > kShown) text += fmt::format(" and {} more", places.size() - kShown);
        return fmt::format("rank{} {}", places.size() == 1 ? "" : "s", text);
    }

    static std::string called(const FlightGroup& group) {
        return group.description.empty() ? fmt::format("group {}", group.name)
                                         : fmt::format("group {} ({})", group.name, group.description);
    }

    void tell() {
        std::vector<std::string> causes, effects;
        for (const FlightGroup& group : report_.groups) {
            if (!group.stopped) continue;
            const FlightStop& stop = group.stop;
            const std::string where =
                fmt::format("collective {} ({}) of {}", stop.sequence, name(stop.operation), called(group));
            std::vector<FlightPlace> guilty;
            for (std::size_t i = 0; i < stop.missing.size(); ++i) {
                if (group.held_up_in[i] < 0) {
                    guilty.push_back(stop.missing[i]);
                    continue;
                }
                effects.push_back(
                    fmt::format("Rank {} did not reach {}: it waits in {}.", stop.missing[i].rank, where,
                                called(report_.groups[static_cast<std::size_t>(group.held_up_in[i])])));
            }
            if (!guilty.empty()) {
                std::string text = fmt::format("{} never reached {}", list(guilty), where);
                text.front() = 'R';
                if (!stop.waiting.empty()) text += fmt::format("; {} waited there", list(stop.waiting));
                causes.push_back(text + ".");
            } else if (stop.missing.empty()) {
                std::string text = fmt::format("All ranks reached {}, and it did not complete on {}", where,
                                               list(stop.waiting));
                if (!stop.completed.empty()) text += fmt::format(" (it did on {})", list(stop.completed));
                const bool differs =
                    std::any_of(group.mismatches.begin(), group.mismatches.end(),
                                [&](const FlightMismatch& m) { return m.sequence == stop.sequence; });
                if (differs) text += "; the ranks disagree about what it is";
                causes.push_back(text + ".");
            }
        }
        report_.verdict = std::move(causes);
        report_.verdict.insert(report_.verdict.end(), effects.begin(), effects.end());
    }

    const store::Trace& trace_;
    ToldGroups told_;
    std::map<GroupKey, GroupRecords> groups_;
    std::map<int, std::size_t> last_of_rank_;
    FlightReport report_;
};

}  // namespace

FlightReport flight_report(const store::Trace& trace, const Selection& selection) {
    return Flights(trace, selection).report();
}

bool has_flight_records(const store::Trace& trace) {
    if (!trace.flight.empty()) return true;
    return std::any_of(trace.config.begin(), trace.config.end(), [](const auto& fact) {
        return fact.first.find("flight_recorder.rank") != std::string::npos;
    });
}

}  // namespace shardscope::traces::analysis
