// Watches the collectives of one NCCL communicator, a thread for each: a run whose collectives fail or do not
// end is ended, by aborting the communicator, so that no stream waits for ever, and with a sentence that
// names the collective and the rank that did not come.
//
// Where the job has several processes, each watches its own members. The others are asked how far they have
// come before anybody is named, and a failure that NCCL itself reports waits for a moment first: where a
// process has died, those that talk to it hear of it as a broken connection, and the job knows better who.
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

// What the groups of one process need of the others.
struct NcclPeers {
    std::vector<NcclId> ids;  // of the communicators, by Mesh::id
    std::shared_ptr<Bootstrap> bootstrap;
    std::shared_ptr<Progress> progress;
};

class NcclWatchdog {
  public:
    // `ranks`: of the members, by place. `peers` may be null: all members are here. `timeout_s` 0:
    // collectives may take as long as they like.
    NcclWatchdog(const NcclLibrary& nccl, int id, std::vector<int> ranks, double timeout_s,
                 const NcclPeers* peers);
    ~NcclWatchdog();
    NcclWatchdog(const NcclWatchdog&) = delete;
    NcclWatchdog& operator=(const NcclWatchdog&) = delete;

    // A member of this process; its communicator is the watchdog's from now on.
    void adopt(std::size_t place, NcclComm* comm, int gpu);
    // From now on; `on_failure` is told, on the watchdog's thread, what every call gets. It may be empty.
    void start(std::function<void(std::exception_ptr)> on_failure);
    // Not any more. Idempotent.
    void stop();

    // Around the calls of NCCL for a member's part in a collective, on its host thread, from construction to
    // the end of the scope: nobody aborts the communicator meanwhile, unless the calls do not return. Throws
    // the failure, if there was one.
    class Call {
      public:
        Call(NcclWatchdog& watchdog, const CollectiveLaunch& collective)
            : watchdog_(watchdog), collective_(collective), comm_(watchdog.begin(collective)) {}
        ~Call() { watchdog_.end_call(collective_); }
        Call(const Call&) = delete;
        Call& operator=(const Call&) = delete;
        NcclComm* comm() const { return comm_; }

      private:
        NcclWatchdog& watchdog_;
        const CollectiveLaunch& collective_;
        NcclComm* comm_;
    };
    // After it: the collective's work is all on the stream.
    void issued(const CollectiveLaunch& collective, cudaStream_t stream);
    // NCCL refused the call. Throws `error`, or the job's failure that it comes from.
    [[noreturn]] void refused(const std::exception_ptr& error);

    // Any thread.
    void fail(std::exception_ptr error);
    // The oldest collective that a member waits in, as a clause; empty: none.
    std::string waiting();

  private:
    using Clock = std::chrono::steady_clock;
    struct InFlight {
        CollectiveLaunch launch;
        Clock::time_point since;
        cudaEvent_t over = nullptr;  // null while NCCL is being called
    };
    struct Member {
        int gpu = 0;
        bool here = false;
        bool called = false;       // NCCL is, for its communicator
        NcclComm* comm = nullptr;  // null also once it is aborted
        std::int64_t begun = 0;
        std::deque<InFlight> in_flight;  // in their order
        std::vector<cudaEvent_t> spare;
    };
    // What has gone wrong.
    struct Trouble {
        std::string sentence;
        int rank = 0;         // whose fault it is, as far as this process knows
        std::string reason;   // a clause that can follow "rank 2 "
        bool certain = true;  // nobody could say better
    };

    NcclComm* begin(const CollectiveLaunch& collective);
    void end_call(const CollectiveLaunch& collective);
    Member& member_of(const CollectiveLaunch& collective);
    std::string text_of(const InFlight& collective) const;
    void watch();
    bool confirmed(const Trouble& trouble);
    void give_up(std::unique_lock<std::mutex>& lock, const Trouble& trouble);
    std::optional<Trouble> trouble();
    void forget_what_is_over(Member& member);
    Trouble late(std::size_t place, const InFlight& collective) const;
    std::optional<std::int64_t> begun(std::size_t place) const;
    void abort_communicators();

    const NcclLibrary& nccl_;
    const int id_;
    const std::vector<int> ranks_;
    const double timeout_s_;
    const std::shared_ptr<Bootstrap> bootstrap_;  // null: all members are here
    const std::shared_ptr<Progress> progress_;
    std::function<void(std::exception_ptr)> on_failure_;

    std::mutex mutex_;             // guards all below
    std::vector<Member> members_;  // by place
    std::exception_ptr error_;
    std::optional<Clock::time_point> troubled_;  // since when; the others have been asked
    bool ends_ = false;
    std::condition_variable changed_;
    std::thread thread_;
};

}  // namespace shardscope::trainer::cuda
