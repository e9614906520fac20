// Jobs of networks for images, and the arithmetic of their matmuls.
#pragma once

#include <cstdint>
#include <string>

#include "tests/trainer/model_testing.h"

namespace shardscope::trainer::testing {

inline job::Job job_of_images(const std::string& keys, const std::string& data = "") {
    return job::parse_job("[model]\n" + keys + "\n[data]\ntype = 'images'\n" + data, "job.toml");
}

inline std::int64_t matmul_flops(const testing::Pass& pass, plan::Phase phase) {
    std::int64_t flops = 0;
    for (const plan::Op* op : pass.kernels(phase)) {
        const plan::Kernel kernel = op->kernel().kernel;
        if (kernel >= plan::Kernel::linear_forward && kernel <= plan::Kernel::linear_backward_weight)
            flops += op->flops;
        if (kernel >= plan::Kernel::convolution_forward &&
            kernel <= plan::Kernel::convolution_backward_weight)
            flops += op->flops;
    }
    return flops;
}

}  // namespace shardscope::trainer::testing
