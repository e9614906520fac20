// See folded_rows.h.
#include "viewer/timeline/folded_rows.h"

#include <algorithm>
#include <cmath>

namespace shardscope::viewer {

std::vector<StripRun> strip_runs(const FoldedLane& folded, int levels) {
    std::vector<StripRun> runs;
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

std::vector<StripRun> strip_grounds(const FoldedLane& folded) {
    std::vector<StripRun> runs;
    for (const FoldedPixel& pixel : folded.pixels) {
        if (!runs.empty() && runs.back().first + runs.back().count == pixel.column) {
            ++runs.back().count;
        } else {
            runs.push_back({pixel.column, 1, 0, 0});
        }
    }
    return runs;
}

void FoldedRows::update(const Tracks& tracks, const RowLayout& layout, RowLayout::Span span,
                        const TimeView& view, int levels) {
    const int finest = std::max(1, static_cast<int>(view.width));
    const bool same = tracks_ == &tracks && view_.from == view.from && view_.to == view.to &&
                      view_.width == view.width && levels_ == levels;
    if (!same) {
        rows_.clear();
        tracks_ = &tracks;
        view_ = view;
        levels_ = levels;
        columns_ = finest;
    }
    for (;;) {
        std::map<std::pair<int, int>, FoldedRow> shown;
        std::size_t count = 0;
        for (std::size_t i = span.first; i < span.last; ++i) {
            const Row& row = layout.rows[i];
            if (row.kind != Row::Kind::lane) continue;
            const std::pair key{row.track, row.lane};
            if (auto it = rows_.find(key); it != rows_.end()) {
                shown[key] = std::move(it->second);
            } else {
                const Track& track = tracks.tracks[static_cast<std::size_t>(row.track)];
                FoldedRow& made = shown[key];
                made.lane = fold_lane(track.lanes[static_cast<std::size_t>(row.lane)], view, columns_);
                made.runs = strip_runs(made.lane, levels);
                made.grounds = strip_grounds(made.lane);
            }
            count += shown[key].rectangles();
        }
        rows_ = std::move(shown);
        if (count <= kMostRectangles || columns_ <= std::max(1, finest / 64)) return;
        rows_.clear();
        columns_ = std::max(1, columns_ / 2);
    }
}

const FoldedRow* FoldedRows::find(int track, int lane) const {
    const auto it = rows_.find({track, lane});
    return it == rows_.end() ? nullptr : &it->second;
}

std::size_t FoldedRows::rectangles() const {
    std::size_t count = 0;
    for (const auto& [key, row] : rows_) count += row.rectangles();
    return count;
}

}  // namespace shardscope::viewer
