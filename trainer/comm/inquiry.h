// Finds out whom the ranks of a job wait for, by asking their processes. Nothing is sent until a collective
// is stuck. Similar to the NCCL watchdog's Progress (trainer/cuda/progress.h), which asks for less.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace shardscope::trainer::world {
class World;
}

namespace shardscope::trainer::comm {

// A rank's answer to an inquiry.
struct Standing {
    int waits_for = -1;         // a rank; -1: none, it computes or is stuck
    bool waited_began = false;  // whether that rank has begun the collective, too
    std::string collective;     // the one that waits, as a clause: "all_gather number 12 of ..."; empty: none
};

class Inquiry {
  public:
    Inquiry() = default;
    virtual ~Inquiry() = default;
    Inquiry(const Inquiry&) = delete;
    Inquiry& operator=(const Inquiry&) = delete;

    // `asked` is called on any thread whenever a rank asks, and must not block; never after stop_listening().
    virtual void listen(std::function<void()> asked) = 0;
    virtual void stop_listening() = 0;
    // Asks all ranks; earlier answers are discarded.
    virtual void ask() = 0;
    // Sends this rank's answer to all.
    virtual void answer(const Standing& standing) = 0;
    // The rank's answer; nullopt: it has not answered.
    virtual std::optional<Standing> of(int rank) const = 0;
};

// Over the World's connections: the question goes to rank 0, which passes it and every answer on to all. The
// World outlives it.
std::unique_ptr<Inquiry> make_world_inquiry(world::World& world);

// A collective that will never end, in one sentence: the step, the collective with its unit, what is wrong
// with which rank. `rank`: the rank at fault; -1: unknown.
struct CollectiveTrouble {
    int rank = -1;
    std::string reason;  // a clause that can follow "rank 2 ": "has not begun all_gather number 12 ..."
    bool lost = false;   // the rank cannot be reached any more
};

// Finds the rank at fault if `rank`, whose own answer is `own`, waits too long: not one that itself only
// waits for another. Follows the chain of waiting ranks to the first that waits for none or has not answered.
// In a cycle no rank is at fault. `asked` null: only `own` is known.
CollectiveTrouble end_of_chain(int rank, const Standing& own, double timeout_s, const Inquiry* asked);

}  // namespace shardscope::trainer::comm
