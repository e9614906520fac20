// Which runtime calls wait, and for what: as the trace records it, or by the call's name. Internal to the
// library. Definition: docs/definitions.md, "Critical path".
#pragma once

#include <cstdint>
#include <vector>

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

enum class CallRole : std::uint8_t {
    plain = 0,
    waits = 1,         // the host waits for an event, a stream or the device
    stream_waits = 2,  // makes a stream wait for an event
    polls = 3,         // asks whether the device is done
    records = 4,       // records an event on a stream
};

// By runtime call.
struct CallRoles {
    explicit CallRoles(const store::Trace& trace);
    std::vector<CallRole> role;
    std::vector<std::int32_t> stream;  // the stream that it waits for or makes wait; -1 unknown
};

}  // namespace shardscope::traces::analysis
