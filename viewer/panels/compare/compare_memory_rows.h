// What was allocated at the peak of several runs, side by side: by category, unit, module or buffer. Pure
// numbers and text over analysis results, no drawing; any thread.
#pragma once

#include <string>
#include <vector>

#include "traces/analysis/memory/memory.h"
#include "viewer/panels/compare/compare_parts_rows.h"
#include "viewer/tables/table_model.h"

namespace shardscope::viewer {

enum class MemoryBy { category, unit, module, buffer };

// The rank with the largest peak; nullptr if no rank has one.
const traces::RankMemory* largest_rank(const traces::MemoryReport& report);

// Sizes in MB (2^20 bytes). The first row is the peak itself; the others sum to it.
class MemoryModel final : public TableModel {
  public:
    // One rank for each run; nullptr: the run recorded no allocations.
    MemoryModel(const std::vector<RunHead>& runs, const std::vector<const traces::RankMemory*>& ranks,
                MemoryBy by);

    std::size_t rows() const override { return rows_.size(); }
    std::string text(std::size_t row, std::size_t column) const override;
    double number(std::size_t row, std::size_t column) const override;
    Color swatch(std::size_t row) const override { return rows_[row].swatch; }
    Color ink(std::size_t row, std::size_t column) const override;

  private:
    enum class What { name, size, difference, change };
    struct Column {
        What what = What::name;
        std::size_t run = 0;
    };
    struct Row {
        std::string name;
        std::vector<double> bytes;  // by run; kNoNumber: the run does not have it
        Color swatch = 0;
    };
    Row& row_named(const std::string& name);

    std::vector<Column> what_;
    std::vector<Row> rows_;
};

}  // namespace shardscope::viewer
