// A text field for SQL: coloured, with completion of names from the schema, and a mark where the SQL is
// wrong. Dear ImGui edits the text and shows the selection; the letters and the caret are drawn here, over
// its place. Drawing layer (Dear ImGui); frame thread only.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <imgui.h>

#include "viewer/panels/query/sql_text.h"

namespace shardscope::viewer::panels {

class SqlEditor {
  public:
    explicit SqlEditor(std::string sql) : sql_(std::move(sql)) {}
    const std::string& sql() const { return sql_; }
    // Another text, which gets the keyboard unless it was restored.
    void set(std::string sql, bool restored = false);
    void take_keyboard() { wants_keyboard_ = kTries; }

    // Fills the width. Returns true on Ctrl+Enter; the keyboard stays here. `schema`: nullptr if it is not
    // known; `error`: the place to mark. For scripts: "query.sql", "query.sql.keyboard",
    // "query.sql.completions", "query.sql.completion.<n>", "query.sql.error".
    bool draw(float height, const std::shared_ptr<const Schema>& schema, std::optional<std::size_t> error);

  private:
    static constexpr int kTries = 4;  // frames in which the keyboard is asked for
    struct Keys {
        bool run = false, complete = false, choose = false, close = false;
        int step = 0;  // through the completions
    };
    Keys read_keys() const;
    bool input(float height, const Keys& keys);
    static int on_edit(ImGuiInputTextCallbackData* data);
    void tokenize(const std::shared_ptr<const Schema>& schema);
    void update_completions(const Keys& keys, bool edited);
    void choose(std::size_t item);
    void paint(std::optional<std::size_t> error);
    void paint_line(ImDrawList& draw, std::size_t from, std::size_t to, ImVec2 at,
                    std::optional<std::size_t> error) const;
    void draw_completions();

    std::string sql_;
    std::size_t cursor_ = 0;  // byte
    bool active_ = false;     // has the keyboard
    int wants_keyboard_ = 0;
    bool swallow_ = false;  // Enter and Tab of this frame are not text
    bool hold_ = false;     // the arrow keys of this frame do not move the cursor
    std::optional<std::string> next_sql_;
    std::optional<std::size_t> next_cursor_;

    std::shared_ptr<const Schema> schema_;
    std::optional<std::string> tokens_of_;
    std::vector<SqlToken> tokens_;

    Completions completions_;
    std::size_t chosen_ = 0;
    bool scroll_to_chosen_ = false;
    bool no_match_ = false;  // Ctrl+Space found nothing, which is said until the next key
    ImVec2 caret_ = {};      // its upper end
};

}  // namespace shardscope::viewer::panels
