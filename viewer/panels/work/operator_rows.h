// Operators and kernels by name as tables, and the largest of them as shares of the device's time. Text and
// numbers over an analysis result (traces/analysis/{operators,kernels}.h), no drawing; any thread. Times in
// us.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "traces/analysis/modules/operators.h"
#include "traces/analysis/time/kernels.h"
#include "viewer/tables/table_model.h"

namespace shardscope::viewer::panels {

// Row i is the report's row i.
std::shared_ptr<const tables::TableModel> operator_table(const traces::analysis::RankOperators& rank,
                                                         bool by_shape);
std::shared_ptr<const tables::TableModel> kernel_table(const traces::analysis::RankKernels& rank);

struct NameShare {
    std::string name;
    double us = 0, percent = 0;
    theme::Color color = 0;
    int row = -1;  // of the table; -1: all rows without a part of their own
};

inline constexpr std::size_t kNamedShares = 8;  // the number of distinguishable colours

// The rows with the most time (an operator's own device time, a kernel's total) in the report's order, then
// the rest as one part. The colours are those of the table's rows.
std::vector<NameShare> operator_shares(const traces::analysis::RankOperators& rank);
std::vector<NameShare> kernel_shares(const traces::analysis::RankKernels& rank);

}  // namespace shardscope::viewer::panels
