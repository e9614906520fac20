// The processes of one job and the wires between them: what they must agree on beside the tensors that the
// process group moves. A star of TCP connections around rank 0, served by one thread in each process.
//
//   World world(place, options);        // returns when all processes are here
//   world.gather(mine);                 // collective: every process's text, by rank
//   world.on("loss", ...); world.tell("loss", text);   // one way, to rank 0
//
// A process that dies, hangs or fails ends the job on all: the first failure is sent to every process, each
// gets it once through on_failure, and whoever waits here throws it as WorldFailure.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/world/place.h"

namespace shardscope::trainer {

struct WorldOptions {
    // For coming together, and for a process that gives no sign of life (its host is gone, or it is stopped);
    // 0: for ever.
    double timeout_s = 600;
    std::string version;  // of the program: all must have the same
    // Rank 0: told of each other process as it comes, on the World's thread; may be empty.
    std::function<void(int rank)> on_join;
};

struct Member {
    std::string host;
    std::int64_t pid = 0;
    int local_rank = 0;
};

// The first failure of the job.
struct Failure {
    int rank = -1;       // whose it is
    std::string reason;  // a clause that can follow "rank 2 ": "(process 4711 on host b) has ended"
    bool lost = false;   // the process is gone or silent; false: it said itself what is wrong
};

class WorldFailure : public WorldError {
  public:
    explicit WorldFailure(const Failure& failure);
    const Failure& failure() const { return failure_; }

  private:
    Failure failure_;
};

// How another clock stands to this one: what it shows = what this one shows + offset_ns, to within
// uncertainty_ns (half of the shortest round trip).
struct ClockOffset {
    std::int64_t offset_ns = 0, uncertainty_ns = 0;
    std::int64_t at_ns = 0;  // on this process's CLOCK_MONOTONIC, when it was measured
};

class World {
  public:
    // Rank 0 listens, the others connect; strangers (another token) are turned away. Throws WorldError:
    // nobody listens, somebody did not come within the timeout (it says who), another version, two with the
    // same rank.
    World(const Place& place, const WorldOptions& options);
    // Closes the connections. Without leave() before, and where nothing failed, the others see a process that
    // has ended: who knows better says so with fail() first.
    ~World();
    World(const World&) = delete;
    World& operator=(const World&) = delete;

    const Place& place() const;
    int rank() const { return place().rank; }
    int ranks() const { return place().ranks; }
    const std::vector<Member>& members() const;  // by rank; the same on all
    int hosts() const;                           // of different names
    int host_of(int rank) const;                 // numbers from 0 in the order of ranks

    // --- together: every process calls these in the same order, from one thread at a time --------------
    // What each process brings, by rank. What a process told before it has then been handed to the handlers.
    std::vector<std::string> gather(std::string_view mine);
    void barrier() { gather({}); }
    // What rank 0 brings; the others' text is not used.
    std::string broadcast(std::string_view from_rank_0);
    // Rank 0's CLOCK_MONOTONIC against this process's; rank 0 gets zeros. The processes measure one after
    // another.
    ClockOffset measure_clock();

    // --- one way -----------------------------------------------------------------------------------------
    // `handler(from, text)` is called on the World's thread, in the order of each sender; it must not block
    // nor call the members above. Set before the process's first barrier() after the construction: what
    // arrives with no handler is kept for it.
    void on(const std::string& topic, std::function<void(int from, std::string_view text)> handler);
    void tell(const std::string& topic, std::string_view text);      // rank 0, from any thread, also itself
    void tell_all(const std::string& topic, std::string_view text);  // from rank 0 to all others, any thread

    // --- failure -----------------------------------------------------------------------------------------
    // Ends the job on every process: any thread; does not block. Only the job's first failure counts.
    void fail(const Failure& failure);
    // Told once of the first failure, on the World's thread; at once where it has been already.
    void on_failure(std::function<void(const Failure&)> handler);
    bool failed() const;

    // The process has done its work: returns when all have, or after a failure. From then on a connection
    // that closes is no failure. Throws nothing.
    void leave();

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace shardscope::trainer
