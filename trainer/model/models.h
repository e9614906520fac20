// The models that a job can name, with the shape of their batch and their loss.
#pragma once

#include <cstdint>
#include <memory>

#include "trainer/model/module.h"

namespace shardscope::trainer::job {
struct Job;
}

namespace shardscope::trainer::model {

// A micro-batch: its samples and tokens, and the bytes of the input and of the target that one rank reads,
// which of a context group are those of its tokens.
struct BatchShape {
    std::int64_t input_bytes = 0, target_bytes = 0;
    std::int64_t samples = 0;
    std::int64_t tokens = 0;                // of all samples; 0: the model has none
    plan::DType dtype = plan::DType::fp32;  // of the input; int32: tokens
    plan::DType target_dtype = plan::DType::fp32;
};

// The model of the job: the shape of [model], with train.freeze's classes frozen and the classes of
// memory.activation_checkpointing checkpointed. Throws JobError for a class that the model does not have.
std::unique_ptr<Module> make_model(const job::Job& job);
// Elements of the tensor that a rank's micro-batch has between two layers.
std::int64_t elements_between_layers(const job::Job& job);
BatchShape batch_shape(const job::Job& job);
int vocabulary(
    const job::Job& job);  // tokens of a language model; bert: including the mask, which is the last

// Mean squared error or cross-entropy over the rank's rows, depending on the model, in fp32; records its tape
// node. The result's first 8 bytes are the loss as a double. As in PyTorch a mean-squared-error scalar keeps
// the storage of its unreduced form (rows x features), so it has the size of the output.
plan::Tensor loss(Graph& graph, const job::Job& job, const plan::Tensor& output, const plan::Tensor& target);
// The share of the rank's samples whose class is found, an fp64; none: the model finds no classes.
plan::Tensor accuracy(Graph& graph, const job::Job& job, const plan::Tensor& output,
                      const plan::Tensor& target);

}  // namespace shardscope::trainer::model
