// What the ranks of this process are doing now, for a run that is watched (--status): written by the threads
// that do it, a few relaxed stores each time, and read by the thread that serves the status.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/base/clock.h"
#include "traces/schema/enums.h"
#include "traces/status/hang.h"
#include "trainer/plan/mesh.h"

namespace shardscope::trainer::executor {

struct StepReport;

// One rank at an instant.
struct LiveRank {
    std::int64_t steps_done = -1;  // -1: it is still being set up
    std::int64_t memory_bytes = 0, peak_bytes = 0;
    std::int64_t waited_ns = 0;  // in collectives, since the run began
    std::vector<traces::status::GroupProgress> groups;

    // To send to rank 0's process. Throws world::MessageError.
    std::string text() const;
    static LiveRank from_text(std::string_view text);
};

// What is known of the run's steps, in the process that hears the losses.
struct LiveSteps {
    std::int64_t done = -1;       // -1: none
    double loss = 0, step_s = 0;  // step_s 0: unknown
    double mean_step_s = 0;       // without this run's first
    std::optional<double> epoch;
};

// A rank's progress in one group. It has a cache line of its own, as other threads tell of other groups.
class alignas(64) LiveGroup {
  public:
    // A group's collectives are entered in order, by one thread at a time.
    void enter(std::int64_t number, traces::schema::Operation operation, profiler::Ticks now) {
        operation_.store(operation, kRelaxed);
        entered_at_.store(now.count, kRelaxed);
        entered_.store(number + 1, kRelease);  // whoever reads it reads this time, or a later one
    }
    void leave(std::int64_t number, profiler::Ticks now) {
        // Another core's counter may have been a few ticks ahead.
        const std::uint64_t entered = entered_at_.load(kRelaxed);
        const std::uint64_t waited = now.count > entered ? now.count - entered : 0;
        waited_.store(waited_.load(kRelaxed) + waited, kRelaxed);
        left_at_.store(now.count, kRelaxed);
        if (left_.load(kRelaxed) <= number) left_.store(number + 1, kRelease);
    }

  private:
    friend class LiveBoard;
    static constexpr auto kRelaxed = std::memory_order_relaxed, kRelease = std::memory_order_release;
    std::atomic<std::int64_t> entered_{0}, left_{0};
    std::atomic<std::uint64_t> entered_at_{0}, left_at_{0}, waited_{0};  // ticks
    std::atomic<traces::schema::Operation> operation_{};
};

// A rank's part in one collective, as the board is told of it.
struct LiveCollective {
    LiveGroup* group = nullptr;  // null: nobody can watch the run
    std::int64_t number = 0;
    traces::schema::Operation operation{};

    void enter(profiler::Ticks now) const {
        if (group) group->enter(number, operation, now);
    }
    void leave(profiler::Ticks now) const {
        if (group) group->leave(number, now);
    }
};

class LiveBoard {
  public:
    // `ranks`: of this process, in increasing order.
    explicit LiveBoard(const std::vector<int>& ranks);

    // --- by the ranks' threads, any of them --------------------------------------------------------------
    void stepped(int rank, std::int64_t steps_done, std::int64_t memory_bytes, std::int64_t peak_bytes);
    // To be told when the rank enters it and leaves it.
    LiveCollective collective(int rank, plan::CommunicatorId group, std::int64_t number,
                              traces::schema::Operation operation);
    void known(const StepReport& step);
    // False: nothing of what the ranks do is taken down until true, to measure what that costs.
    void listen(bool listens) { listens_.store(listens, std::memory_order_relaxed); }

    // --- by the thread that serves them ------------------------------------------------------------------
    const std::vector<int>& ranks() const { return ranks_; }
    LiveRank of(int rank) const;
    LiveSteps steps() const;

  private:
    static constexpr std::size_t kGroups = 16;  // of a rank; further ones are not shown
    static constexpr std::int64_t kNone = -1;

    template <class Value>
    using Cell = std::atomic<Value>;
    struct alignas(64) Rank {
        Cell<std::int64_t> steps_done{-1}, memory{0}, peak{0};
        alignas(64) std::array<Cell<std::int64_t>, kGroups> ids;  // rarely written; kNone: not used yet
        std::array<LiveGroup, kGroups> groups;
    };

    Rank& rank(int rank) const { return own_[static_cast<std::size_t>(rank - ranks_.front())]; }
    static LiveGroup* find(Rank& rank, plan::CommunicatorId group);
    double ns_per_tick() const;

    const profiler::Ticks start_ = profiler::ticks();
    const std::int64_t start_ns_ = profiler::monotonic_ns();
    const std::vector<int> ranks_;
    std::unique_ptr<Rank[]> own_;
    Cell<bool> listens_{true};
    Cell<std::int64_t> done_{-1};
    Cell<std::int64_t> first_done_{-1};                                             // by the first report
    Cell<double> loss_{0}, step_s_{0}, first_seconds_{0}, seconds_{0}, epoch_{-1};  // epoch -1: it has none
};

}  // namespace shardscope::trainer::executor
