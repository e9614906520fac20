// The device work of one rank by its end: which ended last before a time, of what had been launched by
// another. Internal to the library. Times in nanoseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

struct WorkBounds {
    std::int64_t launched_by = 0;  // its launching call started then or earlier
    std::int64_t ended_by = 0;     // it ended then or earlier, and started earlier
    std::int64_t ended_after = std::numeric_limits<std::int64_t>::min();
    int besides = -1, only = -1;  // streams
    std::int64_t group = -1;      // a communicator whose collectives do not count
};

// Five bytes for each event. A question takes time with the logarithm of the number of events, however many
// streams they are on. The trace must outlive it.
class EndedWork {
  public:
    // Events of one rank, in order of their end.
    EndedWork(const store::Trace& trace, std::vector<std::uint32_t> events);

    // The event that ended last within the bounds, of several the one of the first stream; -1: none, or none
    // among thousands of other streams or collectives that were launched in time.
    std::int32_t last(const WorkBounds& bounds) const;

  private:
    static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
    struct Launched {  // the first launch in a part of the list, and the first on any other stream
        std::int64_t first = kNever, elsewhere = kNever;
        int stream = -1;  // of `first`
        void add(std::int64_t launched, int on);
        std::int64_t besides(int other) const { return stream == other ? elsewhere : first; }
    };
    struct Search;

    std::int32_t find(Search& search, std::size_t node, std::size_t from, std::size_t to) const;
    bool counts(std::uint32_t event, const WorkBounds& bounds) const;

    const store::Trace& trace_;
    std::vector<std::uint32_t> events_;
    // A binary tree over blocks of the list: node n has the children 2n and 2n + 1, the root is 1.
    std::vector<Launched> nodes_;
    std::size_t leaves_ = 0;  // a power of two
};

std::vector<EndedWork> ended_work(const store::Trace& trace);  // by rank

}  // namespace shardscope::traces::analysis
