// Whom the ranks of a job wait for: asked around among its processes when a collective does not go on, and
// only then is anything sent. As the NCCL watchdog's Progress, which asks for less.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace shardscope::trainer {

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

}  // namespace shardscope::trainer
