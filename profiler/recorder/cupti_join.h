// Brings together what CUPTI tells in separate records: what ran on a device, which names the call that
// launched it, and which piece of work that call belonged to. The two come in any order and in different
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

// Where a piece of work belongs, in the 64 bits that CUPTI carries along: the device in 20, the stream in 12,
// the rest of the correlation in 32.
struct WorkPlace {
    static constexpr int kMostDevices = 1 << 20, kMostStreams = 1 << 12;

    int device = 0, stream = 0;
    std::int64_t correlation = 0;  // device << 32 | a count

    // Throws std::logic_error where the work has another correlation than that, or does not fit.
    static std::uint64_t pack(const DeviceWork& work);
    static WorkPlace unpack(std::uint64_t id);
};

class CuptiJoin {
  public:
    // How many wait for their counterpart at most; the oldest go.
    static constexpr std::size_t kMostWaiting = 1 << 16, kMostKnown = 1 << 18;

    CuptiJoin(const cupti::Cupti& cupti, std::int64_t global_pid, CuptiRows& rows)
        : cupti_(cupti), global_pid_(global_pid), rows_(rows) {}

    // CUPTI's clock, to be told before the buffers that were filled until then.
    CudaClock& clock() { return clock_; }

    // All records of a buffer.
    void read(std::uint8_t* buffer, std::size_t valid);

    struct Counts {
        std::int64_t placed = 0;    // in rows
        std::int64_t unplaced = 0;  // belong to no piece of work that was told
        std::int64_t untimed = 0;   // without valid times
    };
    // Nothing more comes: what still waits is unplaced.
    Counts finish();

  private:
    void read_one(const void* record);
    template <typename Row, typename Record>
    void take(const Record& record);
    void take_kernel(const cupti::Kernel& kernel);
    void keep(std::uint32_t correlation, const CuptiWork& work);
    void learn(const cupti::ExternalCorrelation& external);
    void place(CuptiWork work, std::uint64_t id);
    template <typename Row, typename Record>
    bool fill(const Record& record, Row& row);

    const cupti::Cupti& cupti_;
    const std::int64_t global_pid_;
    CuptiRows& rows_;
    CudaClock clock_;
    std::unordered_map<std::uint32_t, std::uint64_t> known_;  // calls to WorkPlace::pack()
    std::deque<std::uint32_t> known_order_;
    std::unordered_map<std::uint32_t, std::vector<CuptiWork>> waiting_;  // by call
    std::deque<std::uint32_t> waiting_order_;                            // one for each in waiting_
    Counts counts_;
};

}  // namespace shardscope::profiler
