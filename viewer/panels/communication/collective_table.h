// The table of all collectives, one row each (traces/analysis/communication/collective_list.h). No drawing;
// any thread. Times in microseconds, MB = 2^20 bytes, GB/s = 10^9 bytes a second.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "traces/analysis/communication/collectives.h"
#include "viewer/tables/table_model.h"

namespace shardscope::traces {
struct Trace;
}

namespace shardscope::viewer {

// Cells are made when they are shown, so that millions of rows cost nothing.
class CollectiveTable final : public TableModel {
  public:
    CollectiveTable(std::shared_ptr<const std::vector<traces::CollectiveTimes>> list,
                    const traces::Trace& trace);
    std::size_t rows() const override { return list_->size(); }
    std::string text(std::size_t row, std::size_t column) const override;
    double number(std::size_t row, std::size_t column) const override;
    Color swatch(std::size_t row) const override;

  private:
    void leave_out_unknown();
    std::shared_ptr<const std::vector<traces::CollectiveTimes>> list_;
    std::vector<std::string> units_;
    std::vector<std::size_t> fields_;  // the field of each column
};

}  // namespace shardscope::viewer
