// The two ends of a message: which rank sends and which receives, of the rows of Trace::collectives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
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

// The ranks of a group as a source writes them: "0-3,8" of ours, "[0, 1, 2]" of PyTorch, rising. Empty if the
// text has another form or is cut ("[0, 1, ...]").
std::vector<int> ranks_of_text(std::string_view text);

}  // namespace shardscope::traces::analysis
