// A picture of a replayed schedule in plain text: a line per rank, a cell per unit of time.
#pragma once

#include <string>

#include "trainer/pipeline/replay.h"

namespace shardscope::trainer::cli {

// Lines of at most `width` columns; a picture that is wider continues below. A sentence instead if it would
// have more than a few hundred lines.
std::string schedule_picture(const pipeline::Schedule& schedule, const pipeline::ScheduleReplay& replay,
                             std::size_t width);

}  // namespace shardscope::trainer::cli
