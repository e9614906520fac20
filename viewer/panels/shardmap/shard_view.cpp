// See shard_view.h.
#include "viewer/panels/shardmap/shard_view.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "traces/store/columns/trace.h"
#include "viewer/model/rank_steps.h"

namespace shardscope::viewer {
namespace {

constexpr double kShortest = 1000;  // shortest visible range, ns

}  // namespace

std::vector<StepTime> step_times(const traces::Trace& trace, int rank_index,
                                 const traces::RankSummary& rank) {
    std::unordered_map<std::int64_t, std::int64_t> host_start;
    for (const traces::Step& step : steps_of(trace, rank_index)) host_start.emplace(step.number, step.start);
    std::vector<StepTime> steps;
    for (const traces::StepSummary& step : rank.steps) {
        StepTime time{step.number, {step.window_start, step.window_end}};
        if (const auto host = host_start.find(step.number); host != host_start.end())
            time.time.from = std::min(time.time.from, host->second);
        steps.push_back(time);
    }
    return steps;
}

void ShardView::update(TimeRange all, TimeRange timeline_shows, std::int64_t cursor) {
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

TimeRange ShardView::middle_step(TimeRange all) const {
    std::vector<TimeRange> inside;
    for (const StepTime& s : steps_) {
        if (s.time.to > all.from && s.time.from < all.to)
            inside.push_back({std::max(s.time.from, all.from), std::min(s.time.to, all.to)});
    }
    return inside.empty() ? all : inside[inside.size() / 2];
}

// Outside every step: the range between the neighbouring steps.
TimeRange ShardView::around(std::int64_t time, TimeRange all) const {
    TimeRange gap = all;
    for (const StepTime& s : steps_) {
        if (s.time.to <= time) gap.from = std::max(gap.from, s.time.to);
        if (s.time.from > time) gap.to = std::min(gap.to, s.time.from);
    }
    return gap;
}

void ShardView::zoom(TimeRange all, double share, double notches) {
    const auto length = static_cast<double>(range_.length()), most = static_cast<double>(all.length());
    const double next = std::clamp(length * std::pow(0.8, notches), std::min(kShortest, most), most);
    const double at = static_cast<double>(range_.from) + std::clamp(share, 0.0, 1.0) * length;
    range_.from = std::max(all.from, static_cast<std::int64_t>(at - std::clamp(share, 0.0, 1.0) * next));
    range_.to = std::min(all.to, range_.from + std::max<std::int64_t>(1, static_cast<std::int64_t>(next)));
    mode = own;
}

void ShardView::pan(TimeRange all, double share) {
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

}  // namespace shardscope::viewer
