// One line for each process group with each of its collectives once, for any number of ranks: how long the
// first rank waits for the last one to arrive, and how long the transfer takes from then on.
// traces/analysis/communication/matching.h finds the parts of a collective. Pure, any thread. Times in
// nanoseconds.
#pragma once

#include <vector>

#include "viewer/timeline/tracks.h"

namespace shardscope::viewer {

// Lanes are filled but not finished. Only collectives with device events on at least two ranks are included.
std::vector<Track> collective_tracks(const traces::Trace& trace);

}  // namespace shardscope::viewer
