// 1-bit Adam and 1-bit LAMB after their warm-up of optimizer.freeze_step steps, which is that of Adam or LAMB
// under DDP. Then the variance v stays as it is, and no gradient is reduced: of the N numbers of its own
// momentum, m <- beta1 m + (1 - beta1) g, a rank sends the signs. With the error of the step before added,
// that is one bit for each number, and for each of the S parameters the root of the mean square. n ranks
// average them as servers:
//
//   all_to_all   bits        each rank gets all ranks' bits of its part of N / n numbers
//   all_gather   scales      n S, fp32
//                            it averages its part, adds its own error and makes bits and scales of it again
//   all_gather   bits        all parts
//   all_gather   scales      n S, fp32
//
// Then all ranks have the same momentum and update with it. Bytes of the full buffers: 2 N / 8 + 2 * 4 n S;
// an all-reduce of gradients has 4 N and sends twice as much of it, so bits are 1/32 of its bytes. Sources:
// Tang et al., "1-bit Adam", arXiv 2102.02888, algorithm 1; Li et al., "1-bit LAMB", arXiv 2104.06069,
// algorithm 1; what is sent, and that errors have two sides, as in DeepSpeed
// (deepspeed/runtime/comm/nccl.py).
#pragma once

#include <vector>

#include "trainer/job/job.h"
#include "trainer/plan/builder.h"

namespace shardscope::trainer::sharding {

struct OptimizerSlot;

class Onebit {
  public:
    // Declares the errors in `persistent`. The slot holds the whole sequence of elements.
    Onebit(job::OptimizerType type, const job::OptimizerSection& options, int micro_batches,
           const plan::Mesh& mesh, std::vector<plan::Buffer>& persistent, const OptimizerSlot& slot);

    bool begins_at(std::int64_t step) const { return step >= options_.freeze_step; }
    bool has_begun() const { return has_begun_; }
    // The optimizer's step, with the gradients of this rank alone; `number`: of the step since the first one.
    void step(plan::PlanBuilder& builder, const OptimizerSlot& slot, std::int64_t number);

  private:
    // What all ranks know of the momentum, or each of its own part.
    struct Signs {
        plan::Tensor words, scales;
    };
    std::int64_t words() const { return ranks_ * part_ / 32; }
    plan::Arg own(const plan::Tensor& whole, std::int64_t elements) const;
    Signs new_signs(plan::PlanBuilder& builder, std::int64_t words) const;
    void begin(plan::PlanBuilder& builder, const OptimizerSlot& slot, std::int64_t number);
    plan::Op& kernel(plan::PlanBuilder& builder, plan::Kernel kernel, const char* name,
                     std::vector<plan::Arg> args, std::array<std::int64_t, 6> dims, std::int64_t flops) const;
    void collective(plan::PlanBuilder& builder, plan::Operation operation, const plan::Tensor& output,
                    const plan::Arg& input) const;
    plan::Tensor serve(plan::PlanBuilder& builder, const OptimizerSlot& slot) const;
    void update(plan::PlanBuilder& builder, const OptimizerSlot& slot, const plan::Tensor& last) const;

    bool is_lamb_;
    job::OptimizerSection options_;
    double share_;  // of the sum of a rank's gradients: they are those of several micro-batches
    plan::Group group_;
    std::int64_t ranks_;
    std::int64_t elements_, part_;  // of the sequence; of a rank, a multiple of 32
    std::vector<plan::Segment> segments_;
    plan::BufferId worker_error_ = -1, server_error_ = -1;
    plan::BufferId factors_ = -1;  // 1-bit LAMB: of each segment
    bool has_begun_ = false;
};

}  // namespace shardscope::trainer::sharding
