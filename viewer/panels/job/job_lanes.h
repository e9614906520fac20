// Draws one measure of the job: a lane for each device, rank or adapter over the time, hosts as groups, with
// the time below. Drawing layer (Dear ImGui); frame thread only.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "viewer/model/session.h"
#include "viewer/panels/job/job_rows.h"

namespace shardscope::viewer::panels {

class JobLanes {
  public:
    // In all of the room that is left. A click on a lane chooses its rank, a double click goes to that time
    // on the timeline.
    void draw(model::Session& session, const std::shared_ptr<const std::vector<JobMeasure>>& measures,
              std::size_t measure, traces::analysis::Interval time);
    void forget();

  private:
    using Columns = std::vector<traces::analysis::SampledCurve::Column>;
    struct Place;
    void draw_lane(model::Session& session, const JobMeasure& measure, const JobHost& host,
                   const JobLane& lane, const Place& place);
    const Columns& folded(const JobLane& lane, std::size_t columns);

    std::shared_ptr<const std::vector<JobMeasure>> of_;
    std::size_t columns_ = 0;
    std::map<const JobLane*, Columns> folded_;  // of the lanes that were in sight
};

}  // namespace shardscope::viewer::panels
