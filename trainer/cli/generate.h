// shardscope-train JOB.toml --generate TEXT: a checkpoint's model continues a text.
#pragma once

#include <string>

#include "trainer/job/job.h"

namespace shardscope::trainer::cli {

// Prints on standard output only the text and the 400 tokens that follow it, each as soon as it is drawn
// (next_token.h, with run.seed). The model sees the last model.context tokens. Returns the exit status, 0.
// Throws JobError (no checkpoint.load, or a model that does not generate text), CheckpointError, RunError
// (outputs that are not finite).
int generate(const job::Job& job, const std::string& text);

}  // namespace shardscope::trainer::cli
