// Decides which device work belongs to the recorded part of a run: work that was launched while recording
// was on, whenever it ran. CUPTI numbers calls in the order in which they begin (correlation ids) and
// reports the time of each. So each turn of the recording on or off is a position in that order, which is
// known more exactly with each call that is seen. One thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "profiler/base/clock.h"

namespace shardscope::profiler::inject {

class CudaLaunches {
  public:
    enum class Verdict : std::uint8_t { keep, drop, unknown };

    // Sets the state before any turn().
    void begin(bool on) {
        before_ = on;
        count_ = 0;
    }

    // Reports that recording was turned on or off at that time, which is later than all before.
    void turn(RealTime time, bool on) {
        if (on == is_on() || (count_ > 0 && time < turns_[count_ - 1].time)) return;
        if (count_ == kMost) {  // the oldest is forgotten
            before_ = turns_[0].on;
            for (std::size_t i = 1; i < kMost; ++i) turns_[i - 1] = turns_[i];
            --count_;
        }
        Turn& added = turns_[count_++];
        added = {};
        added.time = time;
        added.on = on;
        if (seen_ && latest_start_ < time) {
            added.has_below = true;
            added.below = latest_;
        }
    }

    bool is_on() const { return count_ == 0 ? before_ : turns_[count_ - 1].on; }
    bool always_on() const { return count_ == 0 && before_; }

    // Whether recording was on at that time.
    bool was_on(RealTime time) const {
        for (std::size_t i = count_; i-- > 0;) {
            if (time >= turns_[i].time) return turns_[i].on;
        }
        return before_;
    }

    // Reports that the call with that number began at `start`.
    void saw_call(std::uint32_t correlation, RealTime start) {
        if (!seen_ || is_after(correlation, latest_)) {
            latest_ = correlation;
            latest_start_ = start;
            seen_ = true;
        }
        for (std::size_t i = 0; i < count_; ++i) {
            Turn& turn = turns_[i];
            if (start < turn.time) {
                if (!turn.has_below || is_after(correlation, turn.below)) turn.below = correlation;
                turn.has_below = true;
            } else {
                if (!turn.has_above || is_after(turn.above, correlation)) turn.above = correlation;
                turn.has_above = true;
            }
        }
    }

    // The verdict on work that the call with that number launched.
    Verdict of_launch(std::uint32_t correlation) const {
        for (std::size_t i = count_; i-- > 0;) {
            const Turn& turn = turns_[i];
            if (turn.has_above && !is_after(turn.above, correlation)) return verdict(turn.on);
            if (!turn.has_below || is_after(correlation, turn.below)) return Verdict::unknown;
        }
        return verdict(before_);
    }

  private:
    static constexpr std::size_t kMost = 64;

    struct Turn {
        RealTime time{0};
        bool on = false;
        bool has_below = false, has_above = false;
        std::uint32_t below = 0;  // the last call that is known to have begun before it
        std::uint32_t above = 0;  // the first that is known to have begun after it
    };

    static Verdict verdict(bool on) { return on ? Verdict::keep : Verdict::drop; }
    // The numbers wrap after 2^32 calls.
    static bool is_after(std::uint32_t a, std::uint32_t b) { return static_cast<std::int32_t>(a - b) > 0; }

    bool before_ = true, seen_ = false;
    std::uint32_t latest_ = 0;
    RealTime latest_start_{0};
    std::size_t count_ = 0;
    Turn turns_[kMost] = {};
};

}  // namespace shardscope::profiler::inject
