// Bus bandwidth over size: one curve for each operation, axis and number of ranks, with quartiles and the
// bound; below it the same as a table. Drawing layer (Dear ImGui); frame thread only.
#pragma once

#include <memory>

#include "traces/analysis/communication/bus_bandwidth.h"
#include "viewer/tables/table.h"
#include "viewer/theme/theme.h"
#include "viewer/widgets/kept_model.h"

namespace shardscope::viewer::panels {

class BandwidthChart {
  public:
    // In all of the room that is left.
    void draw(const std::shared_ptr<const traces::analysis::BusBandwidthReport>& report);

  private:
    void draw_curves(const traces::analysis::BusBandwidthReport& report, float height);

    widgets::KeptModel rows_, pairs_;
    tables::TableState rows_state_, pairs_state_;
    int table_ = 0;
};

}  // namespace shardscope::viewer::panels
