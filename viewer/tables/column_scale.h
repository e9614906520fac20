// The units in which a table writes its columns: microseconds become milliseconds or seconds, MiB become GiB
// or TiB where the largest value of a column is long, so that no time has seven digits. A value keeps its
// exact text for the tooltip, and sorting, copies and exports keep the model's unit. No Dear ImGui.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "viewer/tables/table_model.h"

namespace shardscope::viewer::tables {

struct ColumnScale {
    double of = 1;     // the written unit, in the model's unit: 1e3 (us in a ms)
    int decimals = 0;  // of a written number, if `of` is not 1
    std::string unit;  // "ms", "ms a step"
};

// By column. Columns of times, and columns of sizes, share the table's longest unit, except those whose
// largest value would be below a tenth of it. Of large tables a sample of the rows decides.
std::vector<ColumnScale> column_scales(const TableModel& model);

// The cell's text in its column's unit. A sign or mark before the number stays ("~ +1.2"), a text with
// anything after the number is left as it is; a number that would be written as 0 is "< 0.001".
std::string scaled_text(const TableModel& model, std::size_t row, std::size_t column,
                        const ColumnScale& scale);

// What the cell's text rounds: "5,715,520.9 µs", "113,348,608 bytes"; empty if the text is exact.
std::string exact_text(const TableModel& model, std::size_t row, std::size_t column,
                       const ColumnScale& scale);

// The scales of a model, computed again for another one.
class ColumnScales {
  public:
    const std::vector<ColumnScale>& of(const std::shared_ptr<const TableModel>& model);
    const std::vector<ColumnScale>& last() const { return scales_; }

  private:
    std::shared_ptr<const TableModel> model_;  // kept alive, so that its address is not reused
    std::vector<ColumnScale> scales_;
};

}  // namespace shardscope::viewer::tables
