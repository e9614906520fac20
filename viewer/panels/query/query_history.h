// The SQL that was run, newest first, without repetitions; it comes back next time. Pure; frame thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardscope::viewer {

class QueryHistory {
  public:
    static constexpr std::size_t kMost = 50;             // queries
    static constexpr std::size_t kMostBytes = 64 << 10;  // of all together, kept for next time

    void add(std::string sql);  // to the front; what is blank is none
    const std::vector<std::string>& entries() const { return entries_; }

    // A JSON array; empty for none. What would exceed kMostBytes stays behind, oldest first.
    std::string to_text() const;
    // Of to_text(), or of any other text: what is no history changes nothing.
    void from_text(std::string_view text);

  private:
    std::vector<std::string> entries_;
};

}  // namespace shardscope::viewer
