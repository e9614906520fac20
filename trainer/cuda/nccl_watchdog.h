// Watches the collectives of one NCCL communicator on a thread of its own. If a collective fails or does not
// end, it ends the run: it aborts the communicator, so that no stream waits for ever, and reports a sentence
// that names the collective and the rank that did not arrive.
//
// In a job of several processes, each watches its own members. It asks the others how many collectives they
// have begun before it names a rank, and holds back a failure that NCCL itself reports for a moment: if a
// process has died, those connected to it only see a broken connection, and the job knows better which one
// died.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "trainer/cuda/nccl_library.h"
#include "trainer/cuda/progress.h"
#include "trainer/device/bootstrap.h"
#include "trainer/device/device.h"

namespace shardscope::trainer::cuda {

// What the groups of one process need from the other processes.
struct NcclPeers {
    std::vector<NcclId> ids;  // of the communicators, by Mesh::id
    std::shared_ptr<device::Bootstrap> bootstrap;
    std::shared_ptr<Progress> progress;
};

class NcclWatchdog {
  public:
    // `ranks`: the members' ranks, by place. `peers` is null if all members are in this process. `timeout_s`:
    // the longest time of a collective; 0: no limit.
    NcclWatchdog(const NcclLibrary& nccl, plan::CommunicatorId id, std::vector<int> ranks, double timeout_s,
                 const NcclPeers* peers);
    ~NcclWatchdog();
    NcclWatchdog(const NcclWatchdog&) = delete;
    NcclWatchdog& operator=(const NcclWatchdog&) = delete;

    // Adds a member of this process; the watchdog owns its communicator from now on.
    void adopt(std::size_t place, NcclComm* comm, int gpu);
    // Starts watching. `on_failure` receives, on the watchdog's thread, the error that every call throws. It
    // may be empty.
    void start(std::function<void(std::exception_ptr)> on_failure);
    // Stops watching. Idempotent.
    void stop();

    // Encloses the NCCL calls for a member's part in a collective, on its host thread, from construction to
    // the end of the scope. Meanwhile the communicator is not aborted, unless the calls do not return. The
    // constructor throws the failure, if there was one.
    class Call {
      public:
        Call(NcclWatchdog& watchdog, const device::CollectiveLaunch& collective)
            : watchdog_(watchdog), collective_(collective), comm_(watchdog.begin(collective)) {}
        ~Call() { watchdog_.end_call(collective_); }
        Call(const Call&) = delete;
        Call& operator=(const Call&) = delete;
        NcclComm* comm() const { return comm_; }

      private:
        NcclWatchdog& watchdog_;
        const device::CollectiveLaunch& collective_;
        NcclComm* comm_;
    };
    // To be called after a Call, when all of the collective's work is on the stream.
    void issued(const device::CollectiveLaunch& collective, cudaStream_t stream);
    // To be called if NCCL refused the call. Throws `error`, or the job's failure that caused it.
    [[noreturn]] void refused(const std::exception_ptr& error);

    // May be called on any thread.
    void fail(std::exception_ptr error);
    // The oldest collective that a member waits in, as a clause; empty if there is none.
    std::string waiting();

  private:
    using Clock = std::chrono::steady_clock;
    struct InFlight {
        device::CollectiveLaunch launch;
        Clock::time_point since;
        cudaEvent_t over = nullptr;  // null while NCCL is being called
    };
    struct Member {
        int gpu = 0;
        bool here = false;
        bool called = false;       // an NCCL call for its communicator is under way
        NcclComm* comm = nullptr;  // also null once it is aborted
        std::int64_t begun = 0;
        std::deque<InFlight> in_flight;  // oldest first
        std::vector<cudaEvent_t> spare;
    };
    // Which collective has failed, and whose fault it is.
    struct CollectiveFailure {
        std::string sentence;
        int rank = 0;         // the rank at fault, as far as this process knows
        std::string reason;   // a clause that can follow "rank 2 "
        bool certain = true;  // no other process could know better
    };

    NcclComm* begin(const device::CollectiveLaunch& collective);
    void end_call(const device::CollectiveLaunch& collective);
    Member& member_of(const device::CollectiveLaunch& collective);
    std::string text_of(const InFlight& collective) const;
    void watch();
    bool confirmed(const CollectiveFailure& failure);
    void give_up(std::unique_lock<std::mutex>& lock, const CollectiveFailure& failure);
    std::optional<CollectiveFailure> find_failure();
    void forget_what_is_over(Member& member);
    CollectiveFailure late(std::size_t place, const InFlight& collective) const;
    std::optional<std::int64_t> begun(std::size_t place) const;
    void abort_communicators();

    const NcclLibrary& nccl_;
    const plan::CommunicatorId id_;
    const std::vector<int> ranks_;
    const double timeout_s_;
    const std::shared_ptr<device::Bootstrap> bootstrap_;  // null: all members are in this process
    const std::shared_ptr<Progress> progress_;
    std::function<void(std::exception_ptr)> on_failure_;

    std::mutex mutex_;             // guards everything below
    std::vector<Member> members_;  // by place
    std::exception_ptr error_;
    std::optional<Clock::time_point> failing_since_;  // when the others were asked about it
    bool ends_ = false;
    std::condition_variable changed_;
    std::thread thread_;
};

}  // namespace shardscope::trainer::cuda
