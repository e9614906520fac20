// The lists of queries to choose from (saved, built in, run before), and saving the editor's SQL under a
// name. Drawing layer (Dear ImGui); frame thread only.
#pragma once

#include <string>
#include <string_view>

#include "viewer/panels/query/query_history.h"
#include "viewer/panels/query/sql_editor.h"

namespace shardscope::viewer::panels {

class QueryLists {
  public:
    // Draws the choosers and the button in one line; a choice is written into the editor. For scripts:
    // "query.shipped", "query.shipped.<name>", "query.saved.<name>", "query.history", "query.save".
    void draw(SqlEditor& editor);
    void was_run(const std::string& sql) { history_.add(sql); }
    // A JSON object, or empty; earlier versions wrote the history alone, which is read, too.
    std::string saved() const;
    void restore(std::string_view saved);

  private:
    void draw_queries(SqlEditor& editor);
    void draw_saved(SqlEditor& editor);
    void draw_history(SqlEditor& editor);
    void draw_save(SqlEditor& editor);

    QueryHistory history_;
    SavedQueries queries_;
    std::string save_name_, save_refusal_;
};

}  // namespace shardscope::viewer::panels
