// A result of an analysis (traces/analysis/base/result_table.h) as a table of the viewer: title, unit, help
// and cells come from the result; width, priority and bar from the viewer. No Dear ImGui; any thread.
#pragma once

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traces/analysis/base/result_table.h"
#include "viewer/tables/table_model.h"

namespace shardscope::viewer::tables {

struct ColumnLook {
    std::string_view key;  // the result's column
    float width = 6;       // this and the next three as in TableColumn
    int priority = 10;
    theme::Color bar = 0;
    std::string_view id = {};     // replaces the key
    std::string_view title = {};  // replaces the result's title
    std::string_view unit = {};   // replaces the result's unit
    float least = 0;
    std::string (*write)(std::string_view text) = nullptr;  // how a text is displayed, if not unchanged
    bool as_text = false;                                   // a number that is not a quantity, such as a hash
    bool where_known = false;                               // only if some row has a value
};

// The columns of `looks`, in their order; those that a text table would not have are omitted. `swatches`: of
// the rows, or empty.
std::shared_ptr<CellTable> result_model(const traces::analysis::ResultTable& result,
                                        std::span<const ColumnLook> looks,
                                        const std::vector<theme::Color>& swatches = {});

// The columns that a text table has and that some row knows, in the result's order; numbers of `bars` have a
// bar, and are hidden last.
std::shared_ptr<CellTable> whole_model(const traces::analysis::ResultTable& result,
                                       std::initializer_list<std::string_view> bars = {});

}  // namespace shardscope::viewer::tables
