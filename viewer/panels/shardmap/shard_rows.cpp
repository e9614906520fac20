// See shard_rows.h.
#include "viewer/panels/shardmap/shard_rows.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <utility>

#include <fmt/core.h>

#include "traces/store/columns/trace.h"
#include "traces/store/number_list.h"
#include "viewer/model/rank_steps.h"
#include "viewer/model/time_view.h"

namespace shardscope::viewer::panels {
namespace {

using traces::analysis::ShardChange;
using traces::analysis::ShardState;
using traces::analysis::ShardStates;
using traces::analysis::UnitHistory;
using traces::store::RankIndex;
using traces::store::UnitIndex;

constexpr std::size_t kMostMoments = 256;  // candidates checked for the busiest one

std::size_t index(ShardState state) {
    return static_cast<std::size_t>(state);
}

std::int64_t edge(std::int64_t from, std::int64_t to, int column, int columns) {
    return from + static_cast<std::int64_t>(static_cast<double>(to - from) * column / columns);
}

}  // namespace

StateLane::StateLane(const UnitHistory& history) : history_(&history) {
    std::array<std::int64_t, traces::analysis::kShardStates> sum{};
    before_.reserve(history.changes.size());
    for (std::size_t c = 0; c < history.changes.size(); ++c) {
        if (c > 0) {
            const ShardChange& last = history.changes[c - 1];
            sum[index(last.state)] += history.changes[c].time - last.time;
        }
        before_.push_back(sum);
    }
}

std::array<std::int64_t, traces::analysis::kShardStates> StateLane::up_to(std::int64_t time) const {
    const auto& changes = history_->changes;
    if (changes.empty()) return {};
    const auto after = std::partition_point(changes.begin(), changes.end(),
                                            [&](const ShardChange& c) { return c.time <= time; });
    std::array<std::int64_t, traces::analysis::kShardStates> sum{};
    if (after == changes.begin()) {
        sum[index(history_->at_first.state)] = time - changes.front().time;  // negative: before all changes
        return sum;
    }
    const auto at = static_cast<std::size_t>(after - changes.begin()) - 1;
    sum = before_[at];
    sum[index(changes[at].state)] += time - changes[at].time;
    return sum;
}

std::array<std::int64_t, traces::analysis::kShardStates> StateLane::time_in(std::int64_t from,
                                                                            std::int64_t to) const {
    if (history_->changes.empty()) {
        std::array<std::int64_t, traces::analysis::kShardStates> all{};
        all[index(history_->at_first.state)] = to - from;
        return all;
    }
    auto result = up_to(to);
    const auto first = up_to(from);
    for (std::size_t s = 0; s < result.size(); ++s) result[s] -= first[s];
    return result;
}

std::vector<StateRun> StateLane::fold(std::int64_t from, std::int64_t to, int columns) const {
    std::vector<StateRun> runs;
    if (to <= from) return runs;
    for (int column = 0; column < columns; ++column) {
        const std::int64_t begin = edge(from, to, column, columns);
        const std::int64_t end = std::max(begin + 1, edge(from, to, column + 1, columns));
        const auto time = time_in(begin, end);
        const auto most = std::max_element(time.begin() + 1, time.end());  // except sharded, which is first
        if (*most <= 0) continue;
        const std::int64_t active = end - begin - time[index(ShardState::sharded)];
        const StateRun run{
            column, 1, static_cast<ShardState>(most - time.begin()),
            static_cast<float>(static_cast<double>(active) / static_cast<double>(end - begin))};
        StateRun* last = runs.empty() ? nullptr : &runs.back();
        if (last != nullptr && last->first + last->count == column && last->state == run.state &&
            last->share == run.share) {
            ++last->count;
        } else {
            runs.push_back(run);
        }
    }
    return runs;
}

std::vector<std::int64_t> change_times(const ShardStates& states, traces::store::RankIndex rank) {
    std::vector<std::int64_t> times;
    if (rank.at() >= states.ranks) return times;
    for (std::size_t u = 0; u < states.units.size(); ++u) {
        for (const ShardChange& change : states.of(rank, UnitIndex(u)).changes) times.push_back(change.time);
    }
    std::sort(times.begin(), times.end());
    times.erase(std::unique(times.begin(), times.end()), times.end());
    return times;
}

std::optional<std::int64_t> next_change(const std::vector<std::int64_t>& times, std::int64_t time) {
    const auto it = std::upper_bound(times.begin(), times.end(), time);
    return it == times.end() ? std::nullopt : std::optional(*it);
}

std::optional<std::int64_t> previous_change(const std::vector<std::int64_t>& times, std::int64_t time) {
    const auto it = std::lower_bound(times.begin(), times.end(), time);
    return it == times.begin() ? std::nullopt : std::optional(*(it - 1));
}

ShardCounts counts_at(const ShardStates& states, traces::store::RankIndex rank, std::int64_t time) {
    ShardCounts counts;
    if (rank.at() >= states.ranks) return counts;
    for (std::size_t u = 0; u < states.units.size(); ++u) {
        const UnitHistory& history = states.of(rank, UnitIndex(u));
        const ShardChange& now = history.at(time);
        ++counts.units[index(now.state)];
        if (now.whole) {
            ++counts.whole;
            counts.whole_bytes += std::max<std::int64_t>(states.bytes[u], 0);
        }
        if (traces::analysis::holds(history.allocated, time)) ++counts.allocated;
    }
    return counts;
}

std::int64_t busiest_moment(const ShardStates& states, traces::store::RankIndex rank,
                            const std::vector<std::int64_t>& times, std::int64_t from, std::int64_t to) {
    const auto first = std::lower_bound(times.begin(), times.end(), from);
    const auto last = std::lower_bound(first, times.end(), to);
    const auto count = static_cast<std::size_t>(last - first);
    const std::size_t stride = count / kMostMoments + 1;
    std::int64_t best = from;
    int most = -1;
    for (std::size_t i = 0; i < count; i += stride) {
        const std::int64_t time = *(first + static_cast<std::ptrdiff_t>(i));
        const int active = static_cast<int>(states.units.size()) -
                           counts_at(states, rank, time).units[index(ShardState::sharded)];
        if (active <= most) continue;
        most = active;
        best = time;
    }
    return best;
}

std::vector<traces::analysis::MemoryPoint> whole_parameters_curve(const ShardStates& states,
                                                                  traces::store::RankIndex rank) {
    std::vector<std::pair<std::int64_t, std::int64_t>> edges;  // time, change in bytes
    std::int64_t now = 0;
    for (std::size_t u = 0; rank.at() < states.ranks && u < states.units.size(); ++u) {
        const std::int64_t bytes = std::max<std::int64_t>(states.bytes[u], 0);
        const UnitHistory& history = states.of(rank, UnitIndex(u));
        bool whole = history.at_first.whole;
        if (whole) now += bytes;
        for (const ShardChange& change : history.changes) {
            if (change.whole != whole) edges.emplace_back(change.time, change.whole ? bytes : -bytes);
            whole = change.whole;
        }
    }
    std::sort(edges.begin(), edges.end());  // a release comes before a gather at the same instant
    std::vector<traces::analysis::MemoryPoint> curve;
    const auto add = [&](std::int64_t time) {
        traces::analysis::MemoryPoint point;
        point.time = time;
        point.total = now;
        point.bytes[static_cast<std::size_t>(traces::schema::MemoryCategory::unsharded_parameters)] = now;
        curve.push_back(point);
    };
    if (now > 0) add(std::numeric_limits<std::int64_t>::min());
    for (const auto& [time, bytes] : edges) {
        now += bytes;
        add(time);
    }
    return curve;
}

namespace {

constexpr double kShortest = 1000;  // shortest visible range, ns

}  // namespace

std::vector<StepTime> step_times(const traces::store::Trace& trace,
                                 const traces::analysis::RankSummary& rank) {
    std::unordered_map<std::int64_t, std::int64_t> host_start;
    for (const traces::store::Step& step : model::steps_of(trace, trace.rank_of_number(rank.rank)))
        host_start.emplace(step.number, step.start);
    std::vector<StepTime> steps;
    for (const traces::analysis::StepSummary& step : rank.steps) {
        StepTime time{step.number, {step.window_start, step.window_end}};
        if (const auto host = host_start.find(step.number); host != host_start.end())
            time.time.from = std::min(time.time.from, host->second);
        steps.push_back(time);
    }
    return steps;
}

void ShardView::update(model::TimeRange all, model::TimeRange timeline_shows, std::int64_t cursor) {
    if (mode == whole) range_ = all;
    if (mode == timeline) range_ = timeline_shows;
    if (mode == step) {
        const StepTime* now = step_at(cursor);
        if (now != nullptr) {
            chosen_ = now->time;
        } else if (!chosen_ || cursor < chosen_->from || cursor >= chosen_->to) {
            chosen_ = around(cursor, all);
        }
        const std::int64_t air = chosen_->length() / 50 + 1;
        range_ = {chosen_->from - air, chosen_->to + air};
    }
    range_ = {std::max(range_.from, all.from), std::min(range_.to, all.to)};
    if (range_.to <= range_.from) range_ = all;
}

const StepTime* ShardView::step_at(std::int64_t time) const {
    auto after = std::partition_point(steps_.begin(), steps_.end(),
                                      [&](const StepTime& s) { return s.time.from <= time; });
    if (after == steps_.begin()) return nullptr;
    const StepTime& last = *(after - 1);
    return time < last.time.to ? &last : nullptr;
}

model::TimeRange ShardView::middle_step(model::TimeRange all) const {
    std::vector<model::TimeRange> inside;
    for (const StepTime& s : steps_) {
        if (s.time.to > all.from && s.time.from < all.to)
            inside.push_back({std::max(s.time.from, all.from), std::min(s.time.to, all.to)});
    }
    return inside.empty() ? all : inside[inside.size() / 2];
}

// Outside every step: the range between the neighbouring steps.
model::TimeRange ShardView::around(std::int64_t time, model::TimeRange all) const {
    model::TimeRange gap = all;
    for (const StepTime& s : steps_) {
        if (s.time.to <= time) gap.from = std::max(gap.from, s.time.to);
        if (s.time.from > time) gap.to = std::min(gap.to, s.time.from);
    }
    return gap;
}

void ShardView::zoom(model::TimeRange all, double share, double notches) {
    const auto length = static_cast<double>(range_.length()), most = static_cast<double>(all.length());
    const double next =
        std::clamp(length * std::pow(model::kWheelStep, notches), std::min(kShortest, most), most);
    const double at = static_cast<double>(range_.from) + std::clamp(share, 0.0, 1.0) * length;
    range_.from = std::max(all.from, static_cast<std::int64_t>(at - std::clamp(share, 0.0, 1.0) * next));
    range_.to = std::min(all.to, range_.from + std::max<std::int64_t>(1, static_cast<std::int64_t>(next)));
    mode = own;
}

void ShardView::pan(model::TimeRange all, double share) {
    const auto by = static_cast<std::int64_t>(share * static_cast<double>(range_.length()));
    const std::int64_t shift = std::clamp(by, std::min<std::int64_t>(0, all.from - range_.from),
                                          std::max<std::int64_t>(0, all.to - range_.to));
    range_ = {range_.from + shift, range_.to + shift};
    mode = own;
}

void ShardView::follow(std::int64_t cursor) {
    if (cursor >= range_.from && cursor < range_.to) return;
    if (mode == timeline) mode = own;
    if (mode != own) return;
    const std::int64_t half = range_.length() / 2;
    range_ = {cursor - half, cursor + half + 1};
}

// --- shares ---

namespace {

bool is_used(const traces::analysis::UnitHistory& history) {
    return !history.changes.empty() || !history.allocated.empty() || history.at_first.whole;
}

}  // namespace

ShardShares::ShardShares(const traces::store::Trace& trace, const traces::analysis::ShardStates& states)
    : units_(states.units.size()) {
    const auto noun = [](std::string_view axis) {
        return axis == "data"      ? "replica"
               : axis == "shard"   ? "shard"
               : axis == "context" ? "sequence part"
               : axis == "tensor"  ? "slice"
                                   : "stage position";
    };
    bool pipeline = false;
    for (std::size_t a = 0; a < traces::schema::kMeshAxes.size(); ++a) {
        const std::string_view name = traces::schema::kMeshAxes[a].name;
        Axis axis{.title = name == "shard" ? "FSDP" : std::string(name), .noun = noun(name), .places = {}};
        axis.title[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(axis.title[0])));
        for (const traces::store::Rank& rank : trace.ranks) {
            axis.places.push_back(rank.place[a]);
            axis.size = std::max(axis.size, rank.place[a] + 1);
        }
        if (axis.size == 1) continue;
        pipeline = pipeline || name == "pipeline";
        axes_.push_back(std::move(axis));
    }
    // Importers that know no mesh put every rank at its own place along "data".
    if (axes_.size() == 1 && axes_.front().title == "Data") axes_.clear();
    for (const traces::store::Rank& rank : trace.ranks) numbers_.push_back(rank.number);
    gather_sizes_.assign(trace.ranks.size(), 1);
    const traces::store::Collectives& collectives = trace.collectives;
    for (std::size_t i = 0; i < collectives.size(); ++i) {
        if (collectives.unit[i] < 0 || collectives.operation[i] != traces::schema::Operation::all_gather)
            continue;
        int& size = gather_sizes_[collectives.rank[i]];
        size = std::max(size, static_cast<int>(collectives.group_size[i]));
    }
    if (!pipeline || states.ranks != trace.ranks.size()) return;
    std::vector<bool> anywhere(units_, false);
    for (std::size_t r = 0; r < states.ranks; ++r) {
        for (std::size_t u = 0; u < units_; ++u)
            anywhere[u] = anywhere[u] || is_used(states.of(RankIndex(r), UnitIndex(u)));
    }
    for (std::size_t r = 0; r < states.ranks; ++r) {
        for (std::size_t u = 0; u < units_; ++u)
            held_.push_back(!anywhere[u] || is_used(states.of(RankIndex(r), UnitIndex(u))));
    }
}

std::string ShardShares::holders(UnitIndex unit) const {
    std::vector<std::int64_t> ranks;
    for (std::size_t r = 0; r < numbers_.size(); ++r)
        if (holds(RankIndex(r), unit)) ranks.push_back(numbers_[r]);
    return (ranks.size() == 1 ? "rank " : "ranks ") + traces::store::number_list(ranks);
}

std::string ShardShares::place_text(const Axis& axis, RankIndex rank) {
    return fmt::format("{} {} of {} (from 0)", axis.noun, axis.places[rank.at()], axis.size);
}

std::vector<ShardShares::Part> ShardShares::parts(RankIndex rank) const {
    std::vector<Part> parts;
    for (const Axis& axis : axes_) parts.push_back({axis.title, place_text(axis, rank)});
    return parts;
}

std::string ShardShares::sentence(RankIndex rank) const {
    int tensor = 1, shard = 1;
    bool by_fsdp_alone = true;
    std::string place;
    for (const Axis& axis : axes_) {
        if (axis.title == "Tensor") tensor = axis.size;
        if (axis.title == "FSDP") shard = axis.size;
        by_fsdp_alone = by_fsdp_alone && (axis.title == "FSDP" || axis.title == "Data");
        place += fmt::format("{}{} {}", place.empty() ? "" : ", ", axis.title, place_text(axis, rank));
    }
    if (by_fsdp_alone) return "";
    // FSDP shards over more ranks than those of its axis if there is a context group.
    const int parts = gather_sizes_[rank.at()] > 1 ? gather_sizes_[rank.at()] : shard;
    const std::string_view divided = tensor > 1 ? " that its tensor group divides" : "";
    if (parts == 1) {
        return tensor == 1 ? fmt::format("{}: it keeps all weights of its stages.", place)
                           : fmt::format("{}: it keeps 1/{} of each weight{}.", place, tensor, divided);
    }
    return fmt::format("{}: it keeps 1/{} of each weight{}, {} while the unit is gathered.", place,
                       tensor * parts, divided,
                       tensor == 1 ? std::string("all of it") : fmt::format("1/{}", tensor));
}

}  // namespace shardscope::viewer::panels
