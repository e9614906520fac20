// The status of a training run while it lasts (--status): what rank 0's process serves for all ranks.
//
// Every process tells rank 0's what its rank is doing, several times a second, on a thread of its own; a
// process that is stopped is silent, and then rank 0's says so, and who waits for whom. Nothing in training
// waits for it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "profiler/status/status_server.h"
#include "traces/status/run_status.h"
#include "trainer/executor/live_board.h"
#include "trainer/executor/step_metrics.h"
#include "trainer/job/job.h"
#include "trainer/world/world.h"

namespace shardscope::trainer::cli {

struct LiveStatusOptions {
    std::string address;  // as --status gives it; empty: a socket beside the trace
    std::string job_file;
    world::World* world = nullptr;  // null: all ranks are threads of this process
};

// Throws JobError if the address, or the token that it needs, is wrong. Opens nothing.
void check_status_address(const std::string& address);

class LiveStatus {
  public:
    // Listens, on rank 0's process. Throws JobError: it cannot.
    LiveStatus(const job::Job& job, const plan::Mesh& mesh, const LiveStatusOptions& options);
    // Those who watch get a last line.
    ~LiveStatus();
    LiveStatus(const LiveStatus&) = delete;
    LiveStatus& operator=(const LiveStatus&) = delete;

    executor::LiveBoard& board() { return board_; }
    // "run.sqlite.status", "node1:29600"; empty if another process serves.
    std::string address() const;

    // The run is asked to end: as long as *stop is true. Until end().
    void watch_stop(const std::atomic<bool>* stop);
    // How the run has ended. `reason`: one sentence; may be empty.
    void end(traces::status::RunState state, const std::string& reason);

  private:
    using Clock = std::chrono::steady_clock;
    // What another process has said last.
    struct Heard;
    // Ranks' time in collectives at an earlier moment, for how much of the last seconds it is.
    struct Earlier {
        Clock::time_point at{};
        std::vector<std::int64_t> waited_ns;
    };

    std::string line();
    void add_steps(traces::status::RunStatus& status) const;
    void add_ranks(traces::status::RunStatus& status);
    void add_waits(traces::status::RunStatus& status, const std::vector<std::int64_t>& waited_ns);
    void find_reason(traces::status::RunStatus& status,
                     const std::vector<traces::status::RankProgress>& progress);
    void tell_rank_0();

    const std::int64_t steps_, epochs_;
    const executor::StepItems items_;
    const std::vector<std::vector<int>> members_;  // of each group, by its number
    world::World* const world_;
    const std::string job_file_, trace_;
    const Clock::time_point start_ = Clock::now();
    executor::LiveBoard board_;
    std::shared_ptr<Heard> heard_;

    // Used by the server's thread only.
    std::int64_t lines_ = 0;
    Earlier earlier_, before_;

    std::mutex mutex_;  // of what follows
    std::condition_variable ends_;
    bool over_ = false;
    const std::atomic<bool>* stop_ = nullptr;
    traces::status::RunState state_ = traces::status::RunState::running;
    std::string reason_;

    std::unique_ptr<profiler::StatusServer> server_;  // rank 0's process
    std::thread teller_;                              // the others'
};

}  // namespace shardscope::trainer::cli
