// What a World's thread reports to those who call the World: whether all have joined, the results of
// collective calls, the job's first failure, the end. Any thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "trainer/world/world.h"

namespace shardscope::trainer::world {

class Board {
  public:
    using Texts = std::vector<std::string>;
    // The number of a collective call; the processes' calls with the same number are one.
    using Call = std::int64_t;

    // --- reports; each but put() is made once -------------------------------------------------------------
    void joined();
    void refused(const std::string& sentence);
    void put(Call call, Texts texts);
    void failed(const Failure& failure);
    void failure_told();  // all handlers have been called: only now do callers learn of it
    void farewell();

    // --- state --------------------------------------------------------------------------------------------
    bool is_joining() const;
    bool said_farewell() const;
    std::optional<Failure> failure() const;
    // Nothing can fail the job any more.
    bool over() const { return said_farewell() || failure(); }

    // --- callers wait -------------------------------------------------------------------------------------
    void wait_for_all() const;   // throws WorldError: they cannot join
    Texts wait_for(Call call);   // throws WorldFailure
    void throw_failure() const;  // if there is one
    void wait_for_end() const;

  private:
    enum class State : std::uint8_t { joining, joined, refused };

    template <class Change>
    void change(Change make) {
        const std::scoped_lock lock(mutex_);
        make();
        changed_.notify_all();
    }

    mutable std::mutex mutex_;
    mutable std::condition_variable changed_;
    State state_ = State::joining;
    std::string sentence_;  // why they cannot join
    std::map<Call, Texts> results_;
    std::optional<Failure> failure_;
    bool failure_told_ = false, farewell_ = false;
};

}  // namespace shardscope::trainer::world
