// The processes of one job and the connections between them, for everything they must agree on beside the
// tensors that the process group moves. A star of TCP connections around rank 0, served by one thread in each
// process.
//
//   World world(place, options);        // returns when all processes are here
//   world.gather(mine);                 // collective: every process's text, by rank
//   world.on("loss", ...); world.tell("loss", text);   // one way, to rank 0
//
// A process that dies, hangs or fails ends the job on all: the first failure is sent to every process, each
// gets it once through on_failure, and calls that wait here throw it as WorldFailure.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/base/clock.h"
#include "trainer/world/place.h"

namespace shardscope::trainer::world {

struct WorldOptions {
    // Timeout for joining, and for a process that gives no sign of life (its host is gone, or it is stopped);
    // 0: for ever.
    double timeout_s = 600;
    std::string version;  // of the program: all must have the same
    // On rank 0: called for each other process as it joins, on the World's thread; may be empty.
    std::function<void(int rank)> on_join;
};

struct Member {
    std::string host;
    std::int64_t pid = 0;
    int local_rank = 0;
};

// The first failure of the job.
struct Failure {
    int rank = -1;       // the rank that failed
    std::string reason;  // a clause that can follow "rank 2 ": "(process 4711 on host b) has ended"
    bool lost = false;   // the process is gone or silent; false: it reported itself what is wrong
};

class WorldFailure : public WorldError {
  public:
    explicit WorldFailure(const Failure& failure);
    const Failure& failure() const { return failure_; }

  private:
    Failure failure_;
};

// The offset of another clock: its time = this clock's time + offset_ns, to within uncertainty_ns (half of
// the shortest round trip).
struct ClockOffset {
    std::int64_t offset_ns = 0, uncertainty_ns = 0;
    profiler::MonotonicTime at{0};  // on this process's clock, when it was measured
};

class World {
  public:
    // Rank 0 listens, the others connect; strangers (another token) are turned away. Throws WorldError: no
    // process listens, a process did not join within the timeout (the message says which), another version,
    // two with the same rank.
    World(const Place& place, const WorldOptions& options);
    // Closes the connections. Unless leave() was called or something failed, the others see a process that
    // has ended: a caller that knows the cause calls fail() first.
    ~World();
    World(const World&) = delete;
    World& operator=(const World&) = delete;

    const Place& place() const;
    int rank() const { return place().rank; }
    int ranks() const { return place().ranks; }
    const std::vector<Member>& members() const;  // by rank; the same on all
    int hosts() const;                           // with different names

    // --- together: every process calls these in the same order, from one thread at a time --------------
    // Returns each process's text, by rank. By then the handlers have received what the processes sent with
    // tell() before.
    std::vector<std::string> gather(std::string_view mine);
    void barrier() { gather({}); }
    // Returns rank 0's text; the others' text is not used.
    std::string broadcast(std::string_view from_rank_0);
    // Rank 0's CLOCK_MONOTONIC against this process's; rank 0 gets zeros. The processes measure one after
    // another.
    ClockOffset measure_clock();

    // --- one way -----------------------------------------------------------------------------------------
    // `handler(from, text)` is called on the World's thread, in each sender's order; it must not block or
    // call the members above. Set it before the process's first barrier() after the construction: what
    // arrives without a handler is kept for it.
    void on(const std::string& topic, std::function<void(int from, std::string_view text)> handler);
    void tell(const std::string& topic, std::string_view text);  // to rank 0, also from itself; any thread
    void tell_all(const std::string& topic, std::string_view text);  // from rank 0 to all others, any thread

    // --- failure -----------------------------------------------------------------------------------------
    // Ends the job on every process. Any thread; does not block. Only the job's first failure counts.
    void fail(const Failure& failure);
    // Called once with the first failure, on the World's thread; immediately where it has already happened.
    void on_failure(std::function<void(const Failure&)> handler);
    bool failed() const;

    // The process has done its work: returns when all have, or after a failure. From then on a connection
    // that closes is not a failure. Throws nothing.
    void leave();

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace shardscope::trainer::world
