// What idle streams wait for, which rank a collective waits for, and why communication and copies are
// exposed. Definition: docs/definitions.md, "Waits". Times in nanoseconds.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "traces/analysis/base/intervals.h"
#include "traces/analysis/base/step_windows.h"
#include "traces/analysis/communication/matching.h"
#include "traces/analysis/time/stream_walk.h"
#include "traces/analysis/waits/ended_work.h"
#include "traces/store/columns/index.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

enum class WaitFor : std::uint8_t {
    host,        // the host had not launched the work: CPU-bound
    data,        // the same, while the host waited for the data loader
    device,      // the same, while the host waited for work of the device (a limiter, a synchronisation)
    rank,        // a collective waits for the last rank, alone or with what needs its result
    collective,  // communication of another stream
    copy,        // a copy or fill of another stream
    kernel,      // a kernel of another stream
    queue,       // the communicator was busy with an earlier collective
    start,       // nothing: the device needs this time to start launched work
    unknown,     // the trace does not say
};
inline constexpr int kWaitsFor = 10;
inline constexpr std::array<std::string_view, kWaitsFor> kWaitForNames = {
    "host", "data", "device", "rank", "collective", "copy", "kernel", "queue", "start", "unknown"};

// A time for which a device event waited: before its start or, for a rank, after it.
struct Wait {
    WaitFor what = WaitFor::unknown;
    std::int64_t from = 0, to = 0;
    std::int32_t event = -1;  // the device event that waits; -1: the host waits in `call`
    std::int32_t on = -1;  // the device event that is waited for; for `rank` the own part or the last rank's
    std::int32_t call = -1;  // the launching call or, for `device`, the call in which the host waits
    store::RankIndex rank;   // the last rank, for `rank`
    std::int64_t length() const { return to - from; }
};

enum class ExposureCause : std::uint8_t {
    late_rank,    // a rank of the collective had not arrived
    queued,       // it could have been hidden, had its queue not been busy with other communication or copies
    host_waited,  // ... had the host not waited for the device before it launched it
    issued_late,  // ... had the host launched it earlier
    too_long,     // it is longer than the compute that hides or could have hidden a part of it
    nothing,      // no compute hides or could have hidden a quarter of it
};
inline constexpr int kExposureCauses = 6;
inline constexpr std::array<std::string_view, kExposureCauses> kExposureCauseNames = {
    "late_rank", "queued", "host_waited", "issued_late", "too_long", "nothing_to_hide_it"};

// The part of a collective or copy in which no kernel of its rank runs.
struct Exposure {
    std::int64_t ns = 0;
    std::array<std::int64_t, kExposureCauses> causes{};  // sum to `ns`
    std::int32_t behind = -1;                            // of `queued`: the device event ahead of it
    std::int32_t call = -1;      // of `host_waited`: the call in which the host waited longest
    std::int32_t waited = -1;    // ... and the device event that it waited for
    store::RankIndex late;       // of `late_rank`: that rank
    ExposureCause main() const;  // the cause with the most time
};

// Holds nine bytes for each device event; a question about one event takes a few binary searches. The
// trace must outlive it. Any thread.
class WaitFinder {
  public:
    explicit WaitFinder(const store::Trace& trace);

    // What a device event waited for from `from` to its start, in order of time, without holes.
    std::vector<Wait> before(std::size_t event, std::int64_t from) const;
    // The same for the gap before it on its own stream; empty: it followed at once, or is the first.
    std::vector<Wait> gap_before(std::size_t event) const;
    // The wait of a collective for its last rank: from its start, as long as it is longer than the shortest
    // part. Without length: it does not wait, or has no counterparts.
    Wait for_last_rank(std::size_t event) const;
    // A call's wait for device work; `on` -1: it does not wait.
    Wait host_wait(std::size_t call) const;
    // Of a collective or copy; nothing for a kernel.
    Exposure exposure(std::size_t event) const;
    // The waits whose end is the end (for other ranks' parts: the start) of this event.
    std::vector<Wait> waiting_for(std::size_t event) const;

  private:
    struct Communicating {  // what is known about a communication event
        std::int32_t event = -1;
        std::int32_t ahead = -1;  // the one of its communicator that ended last before it
        std::int32_t match = -1;  // -1: no comparable counterparts
    };
    struct StreamWait {
        std::int32_t call = -1;
        std::int32_t on =
            -1;  // the event launched last before the recording that this call follows; -1 unknown
    };
    struct HostWait {
        std::int32_t call = -1, stream = -1;  // stream -1: unknown, or all
    };

    void follow_streams();
    void match_ranks();
    void read_calls();

    std::span<const std::uint32_t> stream(std::size_t s) const;
    std::size_t place(std::size_t event) const;  // in its stream
    std::int32_t last_before(std::size_t event) const;
    const Communicating* communicating(std::size_t event) const;
    std::int32_t ahead_of(std::size_t event) const;
    const CollectiveMatch* match_of(std::size_t event) const;
    std::int32_t launch_of(std::size_t event) const;
    std::int64_t launched(std::size_t event) const;  // start of the launching call, else the event's own
    std::int32_t dependency(std::size_t event, bool binding = false) const;
    std::int32_t awaited_by(const HostWait& wait) const;
    void add_host(std::vector<Wait>& waits, std::size_t event, std::int64_t from, std::int64_t to) const;
    void add_loading(std::vector<Wait>& waits, const Wait& host) const;
    void add_device(std::vector<Wait>& waits, std::size_t event, std::int32_t on, std::int64_t from,
                    std::int64_t to) const;
    std::int64_t compute_within(std::size_t event, std::int64_t from, std::int64_t to) const;
    std::int64_t blame(std::size_t event, std::int64_t most, Exposure& exposure) const;

    const store::Trace& trace_;
    EventsByStream streams_;
    std::vector<RankSteps> steps_;  // by rank
    Communications communications_;
    std::vector<IntervalSet> compute_;                 // by rank
    std::vector<EndedWork> ended_;                     // by rank
    std::vector<std::vector<std::uint16_t>> of_rank_;  // the streams of each rank
    // By stream and place in it: the event that ended last before; empty: always the one before.
    std::vector<std::vector<std::int32_t>> before_;
    std::vector<Communicating> communicating_;           // by event
    std::vector<std::vector<StreamWait>> stream_waits_;  // by stream, by time
    std::vector<std::vector<HostWait>> host_waits_;      // by thread, by time
    std::vector<std::vector<std::int32_t>> loading_;     // by thread: ranges of the data loader, by time
};

}  // namespace shardscope::traces::analysis
