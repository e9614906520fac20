// shardscope-train JOB.toml --generate TEXT: a checkpoint's model continues texts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/job/job.h"

namespace shardscope::trainer::cli {

struct GenerateOptions {
    std::vector<std::string> texts;  // continued together
    std::int64_t tokens = 400;       // of each
    bool cache = true;               // keys and values of earlier tokens are kept
    std::string weights = "fp32";    // of linear layers; or "int8"
    bool json = false;
    bool dry_run = false;  // prints the Plans, and no text
};

// Prints on standard output the text and what follows it, each token as soon as it is drawn (next_token.h,
// with run.seed); of several texts, each as a whole at the end; as JSON, texts and figures in one object. The
// time of prefill and decode goes to standard error. The model sees the last model.context tokens. Returns
// the exit status. Throws JobError (no checkpoint.load, or a model that does not generate text),
// CheckpointError, RunError (outputs, or weights for int8, that are not finite), StoreError.
int generate(const job::Job& job, const GenerateOptions& options);

}  // namespace shardscope::trainer::cli
