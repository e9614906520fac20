// The marks that a user has set on a trace: instants and ranges of time with a text. Sorted by time. Pure;
// nanoseconds since the start of the capture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardscope::viewer {

struct Mark {
    std::int64_t from = 0, to = 0;  // equal: an instant
    std::string text;
    bool is_range() const { return to > from; }
    bool operator==(const Mark&) const = default;
};

class MarkBook {
  public:
    MarkBook() = default;
    explicit MarkBook(std::vector<Mark> marks);

    const std::vector<Mark>& all() const { return marks_; }
    // Returns its index. An empty text becomes "mark 3" or "range 3", with the first free number.
    std::size_t add(Mark mark);
    void rename(std::size_t index, const std::string& text);
    void remove(std::size_t index);
    // The nearest one that starts after or before an instant; nullopt if there is none.
    std::optional<std::size_t> after(std::int64_t time) const;
    std::optional<std::size_t> before(std::int64_t time) const;
    // Starts and ends, to which a measure snaps.
    std::vector<std::int64_t> edges() const;
    bool operator==(const MarkBook&) const = default;

  private:
    std::vector<Mark> marks_;
};

}  // namespace shardscope::viewer
