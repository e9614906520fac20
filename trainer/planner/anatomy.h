// The memory of training by formula, as in tutorials and papers: four parts by ZeRO stage. The formulas
// ignore the schedule; they are shown next to the simulated peak so that a user sees what they omit.
//
// p parameters, d devices that shard, s tokens of context, b samples of a micro-batch, h features, L blocks,
// a heads, k bytes per value in the precision of the parameters:
//
//   model       k p            / d at stage 3
//   gradients   k p            / d at stage 2 and 3
//   optimizer   K p            / d at stage 1 and beyond. K: 4 bytes for each value that the optimizer
//                              keeps per parameter (Adam and its kin 2, momentum 1, plain SGD 0), and 4 for
//                              the fp32 parameters if k is 2
//   activations s b h L ((16 k + 2) + (2 k + 1) a s / h); the part with a s / h only if the attention's
//                              probabilities are kept; checkpointed blocks keep k s b h L and one block's
//
// S. Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models" (2020),
// section 3.1 and figure 1, for the first three (2, 2 and K = 12 bytes with Adam in 16 bits); V. Korthikanti
// et al., "Reducing Activation Recomputation in Large Transformer Models" (2022), section 4.1, equation 1,
// for the activations: 34 + 5 a s / h with k = 2. The 16 k + 2 count masks of dropout (2 of the 34 bytes),
// which a model without dropout does not keep.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "trainer/planner/row.h"
#include "trainer/sim/cluster.h"

namespace shardscope::trainer::planner {

inline constexpr int kZeroStages = 4;

struct Anatomy {
    int stage = 0;           // ZeRO stage of the configuration
    int devices = 1;         // number of devices that share one shard group
    bool offloaded = false;  // model, gradients and optimizer are on the host: `here` is 0
    std::int64_t parameters = 0;
    struct Part {
        std::string name;                         // "model"
        std::array<double, kZeroStages> bytes{};  // bytes per device, by stage
        double here = 0;                          // in this configuration
        double simulated = 0;                     // bytes of its categories, at the peak
        std::string categories;                   // "parameters, unsharded_parameters, communication"
        bool known = true;                        // a formula exists
    };
    std::array<Part, 4> parts;  // model, gradients, optimizer, activations
};

// The number of values that an optimizer keeps for each parameter.
int states_of(const job::OptimizerSection& optimizer);

// The anatomy of a configuration whose peak is known.
Anatomy anatomy_of(const Row& row, const sim::Cluster& cluster);

}  // namespace shardscope::trainer::planner
