// The tables and views of a database as a tree with their columns and their meaning. Drawing layer (Dear
// ImGui); frame thread only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "traces/query/database_schema.h"

namespace shardscope::viewer::panels {

class SchemaBrowser {
  public:
    // Fills the window. Returns the table that was double-clicked. For scripts: "query.schema.filter",
    // "query.schema.<table>".
    std::optional<std::string> draw(const std::vector<traces::query::SchemaObject>& objects);

  private:
    std::string filter_;
};

}  // namespace shardscope::viewer::panels
