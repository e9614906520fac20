// Whether the file of a trace is still the one from which something was computed, also if it was changed
// within one tick of the file system's clock or its time was set back: SQLite counts the changes in the
// file's header.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace shardscope::traces::store {

struct TraceIdentity {
    std::int64_t bytes = 0, changed_ns = 0;
    std::uint64_t sample = 0;  // a sum over some of its bytes, among them SQLite's counter of changes
    bool operator==(const TraceIdentity&) const = default;
};

// nullopt if it is not a database, or one that is being written or was not finished: then a log or a journal
// with content lies next to it.
std::optional<TraceIdentity> identity_of(const std::string& path);

// Whether size and time are still the same and nobody writes. Without opening the file: closing it would drop
// the locks that this process has on it.
bool is_unchanged(const std::string& path, const TraceIdentity& identity);

// Whether a file with this identity has been left alone for a while, so that what was read since then is all
// of it.
bool is_settled(const TraceIdentity& identity);

// A sum over bytes that differs if any one word of them does, and in all likelihood if more do. `size` bytes
// are added at a time, a multiple of 32 except the last time.
class ByteSum {
  public:
    void add(const void* bytes, std::size_t size);
    std::uint64_t value() const;

  private:
    std::uint64_t lanes_[4] = {1, 2, 3, 4};
    std::uint64_t size_ = 0;
};

}  // namespace shardscope::traces::store
