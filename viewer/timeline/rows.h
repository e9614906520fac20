// Where tracks lie on the page: a heading for each rank, its memory curve, its streams and threads with one
// line for each lane. Folded ranks show their heading alone. Pure arithmetic, any thread. Pixels from the
// top.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "viewer/timeline/tracks.h"

namespace shardscope::viewer {

struct Row {
    enum class Kind { rank, memory, lane };
    Kind kind = Kind::rank;
    int rank = -1;   // index into Trace::ranks; -1: threads of no rank
    int track = -1;  // lanes only: index into Tracks::tracks
    int lane = 0;
    float y = 0, height = 0;
    bool first_of_track = false, last_of_track = false;
};

struct RowHeights {
    float rank = 24, memory = 44, lane = 20;
    float gap = 4;  // below a track
};

struct RowLayout {
    std::vector<Row> rows;  // top to bottom, not overlapping
    float height = 0;
    // Rows that any part of [top, bottom) shows, as a range of indices.
    struct Span {
        std::size_t first = 0, last = 0;
    };
    Span between(float top, float bottom) const;
    const Row* at(float y) const;                   // nullptr between rows
    const Row* of_lane(int track, int lane) const;  // nullptr where its rank is folded
};

// `with_memory`: by index into Trace::ranks, whether the rank has a memory curve.
RowLayout layout_rows(const traces::Trace& trace, const Tracks& tracks, const std::vector<bool>& with_memory,
                      const std::set<int>& folded_ranks, const RowHeights& heights);

}  // namespace shardscope::viewer
