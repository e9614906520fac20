// Trains this process's ranks of a job on the device that the job asks for.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "trainer/executor/run.h"
#include "trainer/sharding/program.h"

namespace shardscope::trainer::executor {

// Trains from options.first_step to run.steps. Throws what a rank threw first: RunError (a loss that is not
// finite, no memory), DataError; then the recorder holds all that was recorded, with the reason as a
// diagnostic, and can be finished as after a good run. DeviceError: the device cannot be used.
RunResult run_training(const sharding::Program& program, const data::Dataset& dataset,
                       const RunOptions& options = {});

// Repeats the forward of a Program made for Purpose::generate until `on_logits` returns false. `source` fills
// the input (int32 tokens of one sample), `on_logits` gets the logits [tokens, vocabulary] (fp32, row by row)
// of that input, valid until it returns. `after_setup` fills the parameters. All three are called on one
// thread. Throws as run_training does.
void run_forward(const sharding::Program& program,
                 const std::function<void(int rank, RankRunner&)>& after_setup,
                 const std::function<void(std::span<std::byte> input)>& source,
                 const std::function<bool(std::span<const float> logits)>& on_logits);

}  // namespace shardscope::trainer::executor
