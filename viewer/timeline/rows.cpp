// See rows.h.
#include "viewer/timeline/rows.h"

#include <algorithm>

namespace shardscope::viewer {
namespace {

class Stack {
  public:
    explicit Stack(RowLayout& layout) : layout_(layout) {}
    void put(Row row, float height) {
        row.y = layout_.height;
        row.height = height;
        layout_.rows.push_back(row);
        layout_.height += height;
    }
    void skip(float gap) { layout_.height += gap; }

  private:
    RowLayout& layout_;
};

}  // namespace

RowLayout layout_rows(const traces::Trace& trace, const Tracks& tracks, const std::vector<bool>& with_memory,
                      const std::set<int>& folded_ranks, const RowHeights& heights) {
    RowLayout layout;
    Stack stack(layout);
    std::vector<int> ranks;
    ranks.reserve(trace.ranks.size() + 1);
    for (int r = 0; r < static_cast<int>(trace.ranks.size()); ++r) ranks.push_back(r);
    if (std::any_of(tracks.tracks.begin(), tracks.tracks.end(), [](const Track& t) { return t.rank < 0; })) {
        ranks.push_back(-1);
    }
    for (const int rank : ranks) {
        stack.put({Row::Kind::rank, rank}, heights.rank);
        if (folded_ranks.contains(rank)) continue;
        const auto r = static_cast<std::size_t>(rank);
        if (rank >= 0 && r < with_memory.size() && with_memory[r]) {
            stack.put({Row::Kind::memory, rank}, heights.memory);
            stack.skip(heights.gap);
        }
        for (std::size_t t = 0; t < tracks.tracks.size(); ++t) {
            const Track& track = tracks.tracks[t];
            if (track.rank != rank) continue;
            for (std::size_t l = 0; l < track.lanes.size(); ++l) {
                Row row{Row::Kind::lane, rank, static_cast<int>(t), static_cast<int>(l)};
                row.first_of_track = l == 0;
                row.last_of_track = l + 1 == track.lanes.size();
                stack.put(row, heights.lane);
            }
            stack.skip(heights.gap);
        }
    }
    return layout;
}

RowLayout::Span RowLayout::between(float top, float bottom) const {
    const auto first = std::partition_point(rows.begin(), rows.end(),
                                            [top](const Row& row) { return row.y + row.height <= top; });
    const auto last =
        std::partition_point(first, rows.end(), [bottom](const Row& row) { return row.y < bottom; });
    return {static_cast<std::size_t>(first - rows.begin()), static_cast<std::size_t>(last - rows.begin())};
}

const Row* RowLayout::at(float y) const {
    const auto row =
        std::partition_point(rows.begin(), rows.end(), [y](const Row& r) { return r.y + r.height <= y; });
    return row != rows.end() && row->y <= y ? &*row : nullptr;
}

const Row* RowLayout::of_lane(int track, int lane) const {
    const auto row = std::find_if(rows.begin(), rows.end(), [=](const Row& r) {
        return r.kind == Row::Kind::lane && r.track == track && r.lane == lane;
    });
    return row != rows.end() ? &*row : nullptr;
}

}  // namespace shardscope::viewer
