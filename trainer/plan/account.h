// The memory account: walks a Plan's allocations and frees in host program order and knows, before anything
// runs, what PyTorch would report as allocated bytes, by category.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/plan/plan.h"

namespace shardscope::trainer {

using CategoryBytes = std::array<std::int64_t, traces::kMemoryCategories>;

struct MemoryPeak {
    std::int64_t bytes = 0;
    CategoryBytes at_peak{};  // sums to bytes
    std::string where;        // "first step, backward, allocating net.0 flat_param.grad (unsharded)"
};

class MemoryAccount {
  public:
    // Continues with what earlier Plans left allocated. Device memory only; set-up does not make the peak.
    void walk(const Plan& plan);

    const MemoryPeak& peak() const { return peak_; }
    std::int64_t live_bytes() const { return live_; }
    const CategoryBytes& live_by_category() const { return by_category_; }

  private:
    std::int64_t live_ = 0;
    CategoryBytes by_category_{};
    MemoryPeak peak_;
};

}  // namespace shardscope::trainer
