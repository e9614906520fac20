// See folded_rows.h.
#include "viewer/timeline/folded_rows.h"

#include <algorithm>
#include <cmath>

#include "traces/schema/sort_rows.h"

namespace shardscope::viewer::timeline {
namespace {

constexpr int kWidest = 64;  // greatest width of a column in pixels
constexpr std::size_t kOfOne =
    5;  // most rectangles of an event shorter than a bar: four columns, a background

std::size_t count_of(const std::vector<const Row*>& rows, Row::Kind kind) {
    return static_cast<std::size_t>(
        std::count_if(rows.begin(), rows.end(), [kind](const Row* row) { return row->kind == kind; }));
}

}  // namespace

std::vector<FoldedRun> strip_runs(const FoldedLane& folded, int levels) {
    std::vector<FoldedRun> runs;
    for (const FoldedPixel& pixel : folded.pixels) {
        const int level = std::clamp(static_cast<int>(std::lround(pixel.share() * levels)), 1, levels);
        if (!runs.empty() && runs.back().first + runs.back().count == pixel.column &&
            runs.back().paint == pixel.paint && runs.back().level == level) {
            ++runs.back().count;
        } else {
            runs.push_back({pixel.column, 1, pixel.paint, level});
        }
    }
    return runs;
}

std::vector<FoldedRun> strip_grounds(const FoldedLane& folded) {
    std::vector<FoldedRun> runs;
    for (const FoldedPixel& pixel : folded.pixels) {
        if (!runs.empty() && runs.back().first + runs.back().count == pixel.column) {
            ++runs.back().count;
        } else {
            runs.push_back({pixel.column, 1, 0, 0});
        }
    }
    return runs;
}

FoldedRow FoldedRows::fold_row(const FoldRequest& request, const Row& row, int columns) const {
    const Lane& lane =
        request.tracks.tracks[static_cast<std::size_t>(row.track)].lanes[static_cast<std::size_t>(row.lane)];
    FoldedRow made;
    made.lane =
        fold_lane(lane, request.view, columns,
                  request.paints ? &request.paints->of(request.tracks, row.track, row.lane) : nullptr);
    made.runs = strip_runs(made.lane, request.levels);
    made.grounds = strip_grounds(made.lane);
    return made;
}

void FoldedRows::update(const FoldRequest& request) {
    const model::TimeView& view = request.view;
    if (tracks_ != &request.tracks || view_.from != view.from || view_.to != view.to ||
        view_.width != view.width || levels_ != request.levels || paints_ != request.paints) {
        clear();
        tracks_ = &request.tracks;
        view_ = view;
        levels_ = request.levels;
        paints_ = request.paints;
    }
    const std::size_t strips = count_of(request.rows, Row::Kind::group);
    const std::size_t lanes = count_of(request.rows, Row::Kind::lane);
    const std::size_t for_strips = strips == 0 ? 0 : request.most * strips / (strips + lanes);
    fold_strips(request, for_strips);
    fold_lanes(request, request.most - for_strips);
}

// Rows with few events have columns of one pixel. The others share the remaining rectangles evenly; their
// columns double in width until they fit.
void FoldedRows::fold_lanes(const FoldRequest& request, std::size_t room) {
    const int finest = std::max(1, static_cast<int>(request.view.width));
    std::map<Key, FoldedRow> shown;
    std::vector<std::pair<std::size_t, const Row*>> missing;  // upper bound of rectangles, row
    for (const Row* row : request.rows) {
        if (row->kind != Row::Kind::lane) continue;
        const Key key{row->track, row->lane};
        if (auto it = rows_.find(key); it != rows_.end()) {
            room -= std::min(room, it->second.rectangles());
            shown[key] = std::move(it->second);
            continue;
        }
        const Lane& lane = request.tracks.tracks[static_cast<std::size_t>(row->track)]
                               .lanes[static_cast<std::size_t>(row->lane)];
        missing.emplace_back(kOfOne * events_in(lane, request.view), row);
    }
    traces::schema::sort_rows(missing, [](const auto& a, const auto& b) { return a.first < b.first; });
    for (std::size_t m = 0; m < missing.size(); ++m) {
        const auto [at_most, row] = missing[m];
        const std::size_t share = room / (missing.size() - m);
        // Start at the width at which one rectangle per column would just fit.
        int columns = finest;
        while (at_most > share && static_cast<std::size_t>(columns) > 2 * share && columns * kWidest > finest)
            columns /= 2;
        columns = std::max(1, columns);
        FoldedRow made = fold_row(request, *row, columns);
        while (made.rectangles() > share && columns > 1 && columns * kWidest > finest) {
            columns /= 2;
            made = fold_row(request, *row, columns);
        }
        room -= std::min(room, made.rectangles());
        shown[{row->track, row->lane}] = std::move(made);
    }
    rows_ = std::move(shown);
}

void FoldedRows::fold_strips(const FoldRequest& request, std::size_t room) {
    std::map<std::string, FoldedRow> shown;
    std::size_t left = count_of(request.rows, Row::Kind::group);
    for (const Row* row : request.rows) {
        if (row->kind != Row::Kind::group) continue;
        const std::size_t share = room / std::max<std::size_t>(1, left--);
        const RowGroup& group = request.layout.groups[static_cast<std::size_t>(row->group)];
        if (!group.collapsed || !request.busy_union) continue;
        if (auto it = strips_.find(group.key); it != strips_.end()) {
            room -= std::min(room, it->second.rectangles());
            shown[group.key] = std::move(it->second);
            continue;
        }
        const auto busy = request.busy_union(group);
        if (busy == nullptr) continue;
        // Uses streams if there are any, else the outermost ranges of threads, like the union.
        std::vector<StripMember> members, hosts, others;
        for (const int t : group.tracks) {
            const Track& track = request.tracks.tracks[static_cast<std::size_t>(t)];
            const std::size_t lanes = track.kind == Track::Kind::thread ? 1 : track.lanes.size();
            for (std::size_t l = 0; l < lanes; ++l) {
                const StripMember member{&track.lanes[l],
                                         request.paints
                                             ? &request.paints->of(request.tracks, t, static_cast<int>(l))
                                             : &track.lanes[l].paints()};
                (track.kind == Track::Kind::stream   ? members
                 : track.kind == Track::Kind::thread ? hosts
                                                     : others)
                    .push_back(member);
            }
        }
        if (members.empty()) members = std::move(hosts);
        if (members.empty()) members = std::move(others);
        int columns = std::max(1, static_cast<int>(request.view.width));
        for (;; columns = std::max(1, columns / 2)) {
            FoldedRow made;
            made.lane.columns = columns;
            made.lane.pixels = fold_strip(*busy, members, request.view, columns);
            made.runs = strip_runs(made.lane, request.levels);
            made.grounds = strip_grounds(made.lane);
            if (made.rectangles() > share && columns > 1) continue;
            room -= std::min(room, made.rectangles());
            shown[group.key] = std::move(made);
            break;
        }
    }
    strips_ = std::move(shown);
}

const FoldedRow* FoldedRows::find(int track, int lane) const {
    const auto it = rows_.find({track, lane});
    return it == rows_.end() ? nullptr : &it->second;
}

const FoldedRow* FoldedRows::strip_of(const std::string& group) const {
    const auto it = strips_.find(group);
    return it == strips_.end() ? nullptr : &it->second;
}

std::size_t FoldedRows::rectangles() const {
    std::size_t count = 0;
    for (const auto& [key, row] : rows_) count += row.rectangles();
    for (const auto& [key, row] : strips_) count += row.rectangles();
    return count;
}

void FoldedRows::clear() {
    rows_.clear();
    strips_.clear();
    tracks_ = nullptr;
}

}  // namespace shardscope::viewer::timeline
