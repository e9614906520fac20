// Joins the runtime calls and device events of a trace with the operations of the Plans that its ranks
// walked.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/calibrate/measured.h"

namespace shardscope::trainer::calibrate {

inline double seconds(std::int64_t ns) {
    return static_cast<double>(ns) * 1e-9;
}

// A step of one rank: the runtime call and the device work of each operation of the Plan.
struct JoinedStep {
    std::int64_t number = 0;
    const plan::Plan* plan = nullptr;
    bool used = false;               // the figures use it; earlier steps are warm-up
    std::vector<std::int32_t> call;  // index into Trace::runtime; -1: no call
    std::vector<std::int32_t> work;  // index into MeasuredRun::work; -1: none, or its end was not recorded
};

class Walk {
  public:
    Walk(const traces::store::Trace& trace, MeasuredRun& run);

    // Fills MeasuredRun::work, host_work, gaps, the calls and the waits. Throws CalibrationError.
    void run();

  private:
    using Time = std::int64_t;
    struct DeviceSpan {
        Time start = 0, end = -1;
        std::int32_t collective = -1;
    };

    void find_calls();
    void find_device_spans();
    std::vector<JoinedStep> join_rank(traces::store::RankIndex rank);
    bool join_step(traces::store::RankIndex rank, const traces::store::Step& step, JoinedStep& joined);
    void add_work(const JoinedStep& step, const plan::Op& op, traces::store::RankIndex rank,
                  std::int32_t call);
    void read_host(traces::store::RankIndex rank, const traces::store::Step& step, const JoinedStep& joined);
    void read_calls(const JoinedStep& joined);
    void read_host_work(traces::store::RankIndex rank, const traces::store::Step& step,
                        const JoinedStep& joined);
    void find_ready(const std::vector<JoinedStep>& steps);
    void find_busy();
    void drop_unused();

    const traces::store::Trace& trace_;
    MeasuredRun& run_;
    std::vector<std::vector<std::int32_t>> calls_;   // by rank index: its thread's calls, in order
    std::vector<std::vector<std::int32_t>> ranges_;  // by rank index: its thread's ranges
    std::vector<DeviceSpan> spans_;                  // by runtime call
    struct Meeting {
        Time last_arrival = 0, end = 0;
    };
    std::map<std::pair<std::int64_t, std::int64_t>, Meeting> meetings_;  // by group and sequence
    std::vector<char> used_;                                             // by work
    struct HostInterval {
        traces::store::RankIndex rank;
        Time start = 0, end = 0;
    };
    std::vector<HostInterval> host_intervals_;  // the host's own work
};

}  // namespace shardscope::trainer::calibrate
