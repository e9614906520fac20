// Counts allocated bytes, those of the device by category. Counted over a Plan alone, in host program order,
// they predict before a run what PyTorch would report as allocated.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/plan/plan.h"

namespace shardscope::trainer::plan {

using CategoryBytes = std::array<std::int64_t, traces::schema::kMemoryCategories>;
using SpaceBytes = std::array<std::int64_t, traces::schema::kMemorySpaces>;

struct MemoryPeak {
    std::int64_t bytes = 0;
    CategoryBytes at_peak{};  // sums to bytes
    // The same bytes by FSDP unit and by module: index i + 1 for id i, index 0 for bytes that belong to none.
    std::vector<std::int64_t> units, modules;
    std::string where;  // "steady step, backward, allocating net.0 flat_param.grad (unsharded)"
    // The most bytes that each space had at a time, set-up included but for the device's.
    SpaceBytes spaces{};
};

// Of device memory, allocations of the set-up do not raise the peak.
class AllocationCounter {
  public:
    void allocated(const Plan& plan, const Op& op) { change(plan, op, 1); }
    void freed(const Plan& plan, const Op& op) { change(plan, op, -1); }

    const MemoryPeak& peak() const { return peak_; }
    // The peak since the last call, such as that of a step; the next peak starts at what is allocated now.
    std::int64_t take_peak() {
        const std::int64_t peak = recent_;
        recent_ = live_;
        return peak;
    }
    std::int64_t live_bytes() const { return live_; }
    const CategoryBytes& live_by_category() const { return by_category_; }

  private:
    void change(const Plan& plan, const Op& op, int sign);

    std::int64_t live_ = 0;
    std::int64_t recent_ = 0;
    SpaceBytes of_hosts_{};  // of the other spaces
    CategoryBytes by_category_{};
    std::vector<std::int64_t> by_unit_, by_module_;
    MemoryPeak peak_;
};

class MemoryAccount {
  public:
    // Continues with what earlier Plans left allocated.
    void walk(const Plan& plan);
    const AllocationCounter& counter() const { return counter_; }
    std::int64_t take_peak() { return counter_.take_peak(); }

  private:
    AllocationCounter counter_;
};

}  // namespace shardscope::trainer::plan
