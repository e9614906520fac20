// The SQL that was run, newest first, without repetitions; restored next time. Pure; frame thread.
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

}  // namespace shardscope::viewer::panels
