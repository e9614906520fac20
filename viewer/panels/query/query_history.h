// The SQL that was run, newest first, without repetitions, and the SQL that was saved under a name; both are
// restored next time. Pure; frame thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardscope::viewer::panels {

class QueryHistory {
  public:
    static constexpr std::size_t kMost = 50;             // queries
    static constexpr std::size_t kMostBytes = 64 << 10;  // total size that is saved for next time

    void add(std::string sql);  // puts it first; blank text is ignored
    const std::vector<std::string>& entries() const { return entries_; }

    // A JSON array; empty if there are none. The oldest queries beyond kMostBytes are omitted.
    std::string to_text() const;
    // Reads the output of to_text(); any other text changes nothing.
    void from_text(std::string_view text);

  private:
    std::vector<std::string> entries_;
};

struct SavedQuery {
    std::string name, sql;
    bool operator==(const SavedQuery&) const = default;
};

class SavedQueries {
  public:
    static constexpr std::size_t kMost = 200;            // queries
    static constexpr std::size_t kMostBytes = 64 << 10;  // of one query

    // Why it cannot be saved, one sentence; empty: it can.
    static std::string refusal(std::string_view name, std::string_view sql);
    // Saves a query that is not refused; the query that had the name is replaced. Sorted by name; beyond
    // kMost nothing is saved and the result is false.
    bool save(const std::string& name, const std::string& sql);
    void remove(std::string_view name);
    bool has(std::string_view name) const;
    const std::vector<SavedQuery>& entries() const { return entries_; }

    // A JSON array of names, each followed by its SQL.
    std::string to_text() const;
    // Reads the output of to_text(); any other text changes nothing.
    void from_text(std::string_view text);

  private:
    std::vector<SavedQuery> entries_;
};

}  // namespace shardscope::viewer::panels
