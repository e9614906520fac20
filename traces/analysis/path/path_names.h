// Names for pieces of host or device time: the innermost host range at each instant of a thread, and the
// module around it. Internal to the library.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

// The innermost range, from a range outwards, that is a module or its backward, -1 none. Caches results far
// out, so that hundreds of thousands of nested ranges take linear time.
class ModuleRanges {
  public:
    explicit ModuleRanges(const store::Trace& trace) : trace_(trace) {}
    std::int32_t of(std::int32_t range);

  private:
    const store::Trace& trace_;
    std::unordered_map<std::int32_t, std::int32_t> far_;  // range -> module's range
};

// The module's name, such as "Linear_0", of a range from ModuleRanges.
std::string module_name(const store::Trace& trace, std::int32_t range);

// The range that a thread was in at any time.
class ThreadRanges {
  public:
    explicit ThreadRanges(const store::Trace& trace);

    // Splits [from, to) of a thread (index into Trace::threads) where its innermost range changes: calls
    // `piece(range, from, to)` with -1 for none. Does not distinguish frames of the host program.
    void split(std::uint16_t thread, std::int64_t from, std::int64_t to,
               const std::function<void(std::int32_t, std::int64_t, std::int64_t)>& piece) const;

  private:
    std::int32_t open_at(std::int32_t range, std::int64_t time) const;

    const store::Trace& trace_;
    std::vector<std::vector<std::uint32_t>> ranges_;  // by thread, sorted by start
};

}  // namespace shardscope::traces::analysis
