// Which communication of one rank is which of another: one matching for every analysis of several ranks.
// Definition: docs/definitions.md, "Distributed". Times in nanoseconds.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "traces/schema/enums.h"
#include "traces/store/columns/names.h"

namespace shardscope::traces {

struct Trace;

// One rank's part of a collective: a row of Trace::collectives, or a communication kernel that has none (an
// export without NCCL's ranges, Kineto before 2022).
struct Communication {
    std::int32_t row = -1;    // index into Collectives, -1 none
    std::int32_t event = -1;  // index into DeviceEvents, -1 none
    std::int32_t match = -1;  // index into Communications::matches
    std::uint16_t rank = 0;   // index into Trace::ranks
    Operation operation = Operation::other;
};

// The parts of all ranks in one collective.
struct CollectiveMatch {
    std::size_t begin = 0, end = 0;  // in Communications::parts, sorted by rank
    std::int64_t transfer_ns = -1;   // the shortest duration among the ranks; -1: no rank has a device event
    bool unmatched = false;          // fewer ranks took part than the group has, or order means nothing
    bool bytes_differ = false;       // between its parts
};

struct Communications {
    std::vector<Communication> parts;  // sorted by match
    std::vector<CollectiveMatch> matches;

    std::span<const Communication> of(const CollectiveMatch& match) const {
        return std::span(parts).subspan(match.begin, match.end - match.begin);
    }
};

// Matched by (group, operation, sequence number), by order where a rank has several of one number; by order
// within (group, operation) where there are no sequence numbers. Order counts where the ranks' counts agree.
// Kernels without metadata are matched by order within their operation. What cannot be matched is a match of
// its own; sends and receives always are.
Communications match_communications(const Trace& trace);

// The duration of a part on the device, -1 where it has no device event.
std::int64_t duration(const Trace& trace, const Communication& part);

// What communication kernels without metadata do: as the kernel's name says or, where that is silent
// (SendRecv, Generic), the ranges around its launch: PyTorch's "nccl:all_to_all", "c10d::_allgather_base_",
// "FSDP::all_gather (layers.3)", NCCL's "ncclAllGather".
class KernelOperations {
  public:
    explicit KernelOperations(const Trace& trace);
    Operation of_event(std::size_t device_event) const;

  private:
    const Trace& trace_;
    mutable std::vector<std::int8_t> by_kernel_, by_range_;  // by StringId; -1 not looked at yet
};

// What the name of a range says that it communicates, `other` where it says nothing.
Operation operation_of_range(std::string_view name);

// The innermost host range around the launch of a device event, -1 unknown.
std::int32_t launching_range(const Trace& trace, std::size_t device_event);

}  // namespace shardscope::traces
