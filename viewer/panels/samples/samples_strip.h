// The strip of the Samples panel: the processor time of the chosen threads over the whole trace. A drag sets
// the time filter, a click the instant that panels share. Drawing layer (Dear ImGui); frame thread only.
//
// For scripts: "samples.strip" with the highest value.
#pragma once

#include "viewer/model/session.h"
#include "viewer/panels/samples/samples_rows.h"

namespace shardscope::viewer::panels {

// Takes a line of this width.
void draw_samples_strip(model::OpenTrace& entry, const ShownSamples& samples, float width);

}  // namespace shardscope::viewer::panels
