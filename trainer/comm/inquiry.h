// Whom the ranks of a job wait for: asked around among its processes when a collective does not go on, and
// only then is anything sent. As the NCCL watchdog's Progress, which asks for less.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace shardscope::trainer {

class World;

// What a rank says when it is asked.
struct Standing {
    int waits_for = -1;         // a rank; -1: nobody, it computes or stands still
    bool waited_began = false;  // the collective in which it waits, as this one has
    std::string collective;     // in which it waits, as a clause: "all_gather number 12 of ..."; empty: none
};

class Inquiry {
  public:
    Inquiry() = default;
    virtual ~Inquiry() = default;
    Inquiry(const Inquiry&) = delete;
    Inquiry& operator=(const Inquiry&) = delete;

    // `asked` is called on any thread whenever a rank asks, and must not block; none after stop_listening().
    virtual void listen(std::function<void()> asked) = 0;
    virtual void stop_listening() = 0;
    // Asks all ranks; what they said before is forgotten.
    virtual void ask() = 0;
    // This rank's answer, to all.
    virtual void answer(const Standing& standing) = 0;
    // What the rank has answered; nothing: it has not.
    virtual std::optional<Standing> of(int rank) const = 0;
};

// Over the World's connections: the question goes to rank 0, which passes it and every answer on to all. The
// World outlives it.
std::unique_ptr<Inquiry> make_world_inquiry(World& world);

// A collective that will never end; one sentence: the step, the collective with its unit, what is wrong with
// which rank. `rank`: whose fault it is, -1 where nobody can say.
struct CollectiveTrouble {
    int rank = -1;
    std::string reason;  // a clause that can follow "rank 2 ": "has not begun all_gather number 12 ..."
    bool lost = false;   // the rank cannot be reached any more
};

// Whose fault it is that `rank`, which stands so itself, waits too long: not that of one who only waits for
// the next. Follows who waits for whom to the first that waits for nobody or has not answered. A circle is
// nobody's fault. `asked` may be null: then the rank itself is all that is known.
CollectiveTrouble end_of_chain(int rank, const Standing& own, double timeout_s, const Inquiry* asked);

}  // namespace shardscope::trainer
