// The two ends of a message: which rank sends and which receives, of the rows of Trace::collectives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

struct MessageEnds {
    int source = -1, destination = -1;  // numbers of the ranks
    bool known() const { return source >= 0; }
    bool operator==(const MessageEnds&) const = default;
    bool operator<(const MessageEnds& other) const {
        return std::tie(source, destination) < std::tie(other.source, other.destination);
    }
};

// From the group, if it has two ranks; in a larger one from the range around the launch, in which PyTorch
// names the places of both in the group: "nccl:send 0->1", "nccl:recv 1<-0".
class Messages {
  public:
    explicit Messages(const store::Trace& trace);
    // Of a row of Trace::collectives that is a send or a receive; unknown if nothing names the other end.
    MessageEnds ends_of(std::size_t row) const;

  private:
    const store::Trace& trace_;
    std::map<std::int64_t, std::vector<int>> members_;  // by group: numbers of its ranks, rising
};

}  // namespace shardscope::traces::analysis
