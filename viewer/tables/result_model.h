// A result of an analysis (traces/analysis/base/result_table.h) as a table of the viewer: title, unit, help
// and cells are the result's, width, priority and bar the viewer's. No Dear ImGui; any thread.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traces/analysis/base/result_table.h"
#include "viewer/tables/table_model.h"

namespace shardscope::viewer {

struct ColumnLook {
    std::string_view key;  // of the result's column
    float width = 6;       // this and the next three as in TableColumn
    int priority = 10;
    Color bar = 0;
    std::string_view id = {};     // in place of the key
    std::string_view title = {};  // in place of the result's title
    std::string_view unit = {};   // in place of the result's unit
    float least = 0;
    std::string (*write)(std::string_view text) = nullptr;  // a text as it is shown, where not as it is
    bool as_text = false;      // a number that nobody computes with, such as a hash
    bool where_known = false;  // only where some row knows it
};

// The columns of `looks`, in their order; those that a text table would not have are left out. `swatches`: of
// the rows, or none.
std::shared_ptr<CellTable> result_model(const traces::ResultTable& result, std::span<const ColumnLook> looks,
                                        const std::vector<Color>& swatches = {});

}  // namespace shardscope::viewer
