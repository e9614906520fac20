// One line for each process group with each of its collectives once, whatever the number of ranks: how long
// the first rank waits for the last one to arrive, and how long the transfer takes from then on. Which parts
// belong together is traces/analysis/communication/matching.h. Pure, any thread. Times in nanoseconds.
#pragma once

#include <vector>

#include "viewer/timeline/tracks.h"

namespace shardscope::viewer {

// Lanes are filled and not finished yet. Only collectives in which two ranks at least have device events.
std::vector<Track> collective_tracks(const traces::Trace& trace);

}  // namespace shardscope::viewer
