// The lanes of a trace (traces/lanes), and those of a query's result.
#pragma once

#include <vector>

#include "traces/lanes/tracks.h"
#include "viewer/model/session.h"

namespace shardscope::viewer::model {
struct ResultRows;
}

namespace shardscope::viewer::timeline {

using namespace traces::lanes;
using traces::store::EventTime;

Tracks make_tracks(const traces::store::Trace& trace, const model::ResultRows* result = nullptr);
// The tracks of a query's result, by rank.
std::vector<Track> result_tracks(const traces::store::Trace& trace, const model::ResultRows& result);

}  // namespace shardscope::viewer::timeline
