// Matches the communication of one rank with that of the others, for every analysis of several ranks.
// Definition: docs/definitions.md, "Distributed". Times in nanoseconds.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "traces/analysis/communication/messages.h"
#include "traces/schema/enums.h"
#include "traces/store/columns/names.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

// One rank's part of a collective: a row of Trace::collectives, or a communication kernel without one (an
// export without NCCL's ranges, Kineto before 2022).
struct Communication {
    std::int32_t row = -1;    // index into Collectives, -1 none
    std::int32_t event = -1;  // index into DeviceEvents, -1 none
    std::int32_t match = -1;  // index into Communications::matches
    std::uint16_t rank = 0;   // index into Trace::ranks
    schema::Operation operation = schema::Operation::other;
};

// The parts of all ranks in one collective.
struct CollectiveMatch {
    std::size_t begin = 0, end = 0;  // in Communications::parts, sorted by rank; a message's sender first
    std::int64_t transfer_ns = -1;   // the shortest duration among the ranks; -1: no rank has a device event
    bool unmatched = false;  // fewer ranks took part than the group has, or matching by order is impossible
    bool bytes_differ = false;  // among its parts
    MessageEnds ends = {};      // of a message whose both ends are known
};

struct Communications {
    std::vector<Communication> parts;  // sorted by match
    std::vector<CollectiveMatch> matches;

    std::span<const Communication> of(const CollectiveMatch& match) const {
        return std::span(parts).subspan(match.begin, match.end - match.begin);
    }
};

// Matches by (group, operation, sequence number), and by order if a rank has several parts with one number;
// by order within (group, operation) if there are no sequence numbers. Matching by order requires that the
// ranks' counts agree. Kernels without metadata are matched by order within their operation. A send and its
// receive are one match, if both ends are known (messages.h). A part that cannot be matched is a match of its
// own.
Communications match_communications(const store::Trace& trace);

// A part's duration on the device, -1 without a device event.
std::int64_t duration(const store::Trace& trace, const Communication& part);

// The operations of communication kernels without metadata: from the kernel's name or, if that does not
// identify it (SendRecv, Generic), from the ranges around its launch: PyTorch's "nccl:all_to_all",
// "c10d::_allgather_base_", "FSDP::all_gather (layers.3)", NCCL's "ncclAllGather".
class KernelOperations {
  public:
    explicit KernelOperations(const store::Trace& trace);
    schema::Operation of_event(std::size_t device_event) const;

  private:
    const store::Trace& trace_;
    mutable std::vector<std::int8_t> by_kernel_, by_range_;  // by StringId; -1 not evaluated yet
};

// The communication operation that a range's name contains, `other` if none.
schema::Operation operation_of_range(std::string_view name);

// The innermost host range around the launch of a device event, -1 unknown.
std::int32_t launching_range(const store::Trace& trace, std::size_t device_event);

}  // namespace shardscope::traces::analysis
