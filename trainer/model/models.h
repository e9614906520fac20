// The models that a job can name, and what surrounds them: the batch's shape and the loss.
#pragma once

#include <cstdint>
#include <memory>

#include "trainer/model/module.h"

namespace shardscope::trainer {

struct Job;

// One rank's micro-batch: bytes of the input and of the target, and what both are made of.
struct BatchShape {
    std::int64_t input_bytes = 0, target_bytes = 0;
    std::int64_t samples = 0;
    std::int64_t tokens = 0;    // 0: the model does not count tokens
    DType dtype = DType::fp32;  // int32: tokens
};

// The model of the job: the shape of [model], train.freeze's classes frozen, the classes of
// memory.activation_checkpointing checkpointed. JobError for a class that it has not.
std::unique_ptr<Module> make_model(const Job& job);
BatchShape batch_shape(const Job& job);
int vocabulary(const Job& job);  // of language models: tokens; bert: with the mask, which is the last

// Mean squared error or cross-entropy over the rank's rows, by the model's kind, in fp32; leaves its tape
// node. The result's first 8 bytes are the loss as a double. As in PyTorch a mean-squared-error scalar keeps
// the storage of its unreduced form (rows x features), which is why its size is that of the output.
Tensor loss(Graph& graph, const Job& job, const Tensor& output, const Tensor& target);

}  // namespace shardscope::trainer
