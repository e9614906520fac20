// Found events as a table: rows are made on demand, so that millions of matches cost nothing until they are
// shown. No Dear ImGui; any thread.
#pragma once

#include <memory>

#include "viewer/tables/table_model.h"
#include "viewer/timeline/find_text.h"

namespace shardscope::viewer {

class MatchTable final : public TableModel {
  public:
    MatchTable(TracePtr trace, std::shared_ptr<const FoundEvents> found);
    std::size_t rows() const override { return found_->size(); }
    std::string text(std::size_t row, std::size_t column) const override;
    double number(std::size_t row, std::size_t column) const override;
    SelectedEvent event(std::size_t row) const { return found_->event(row); }

  private:
    TracePtr trace_;
    std::shared_ptr<const FoundEvents> found_;
};

}  // namespace shardscope::viewer
