// The groups of an area's report as a table: cells are made when they are shown. No Dear ImGui; any thread.
#pragma once

#include <memory>
#include <string>

#include "traces/analysis/area/area.h"
#include "viewer/tables/table_model.h"

namespace shardscope::viewer::timeline {

class AreaTable final : public tables::LazyTable {
  public:
    // `by`: "Name", "Rank", the title of the first column.
    AreaTable(std::shared_ptr<const traces::analysis::AreaReport> report, const std::string& by);
    const traces::analysis::AreaGroup& group(std::size_t row) const { return report_->groups[row]; }

  private:
    std::shared_ptr<const traces::analysis::AreaReport> report_;
};

// "1,234 events (3 cut), sum 12.34 ms, union 10.1 ms, communication 5.1 ms (39.2 % exposed)".
std::string area_text(const traces::analysis::AreaGroup& all);

}  // namespace shardscope::viewer::timeline
