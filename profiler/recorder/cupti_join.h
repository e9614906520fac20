// Joins what CUPTI reports in separate records: what ran on a device, with the number of the call that
// launched it, and the piece of work that the call belonged to. The two arrive in any order and in different
// buffers, so each waits for the other. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "profiler/cupti/library.h"
#include "profiler/log/thread_log.h"
#include "profiler/recorder/cuda_clock.h"
#include "profiler/recorder/cupti_rows.h"

namespace shardscope::profiler {

// The place of a piece of work, in the 64 bits that CUPTI passes along: 20 bits for the device, 12 for the
// stream, 32 for the rest of the correlation.
struct WorkPlace {
    static constexpr int kMostDevices = 1 << 20, kMostStreams = 1 << 12;

    int device = 0, stream = 0;
    std::int64_t correlation = 0;  // device << 32 | a count

    // Throws std::logic_error if the work's correlation has another form, or does not fit.
    static std::uint64_t pack(const DeviceWork& work);
    static WorkPlace unpack(std::uint64_t id);
};

class CuptiJoin {
  public:
    // Limits on entries that wait for their counterpart; beyond them, the oldest are dropped.
    static constexpr std::size_t kMostWaiting = 1 << 16, kMostKnown = 1 << 18;

    CuptiJoin(const cupti::Cupti& cupti, std::int64_t global_pid, CuptiRows& rows)
        : cupti_(cupti), global_pid_(global_pid), rows_(rows) {}

    // CUPTI's clock; add a pair to it before reading the buffers that were filled until then.
    CudaClock& clock() { return clock_; }

    void read(const cupti::Kernel& kernel);
    void read(const cupti::Memcpy& copy);
    void read(const cupti::MemcpyPeer& copy);
    void read(const cupti::Memset& set);
    void read(const cupti::ExternalCorrelation& external);
    template <typename Other>
    void read(const Other&) {}  // calls: their numbers come with the external correlation

    struct Counts {
        std::int64_t placed = 0;    // became rows
        std::int64_t unplaced = 0;  // belong to no known piece of work
        std::int64_t untimed = 0;   // without valid times
    };
    // Ends the input: what still waits is unplaced.
    Counts finish();

  private:
    template <typename Row, typename Record>
    void take(const Record& record);
    void keep(std::uint32_t correlation, const CuptiWork& work);
    void place(CuptiWork work, std::uint64_t id);
    template <typename Row, typename Record>
    bool fill(const Record& record, Row& row);

    const cupti::Cupti& cupti_;
    const std::int64_t global_pid_;
    CuptiRows& rows_;
    CudaClock clock_;
    std::unordered_map<std::uint32_t, std::uint64_t> known_;  // WorkPlace::pack(), by call
    std::deque<std::uint32_t> known_order_;
    std::unordered_map<std::uint32_t, std::vector<CuptiWork>> waiting_;  // by call
    std::deque<std::uint32_t> waiting_order_;                            // one for each in waiting_
    Counts counts_;
};

}  // namespace shardscope::profiler
