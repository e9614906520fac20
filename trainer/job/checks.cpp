// Checks that span several keys of a job.
#include <fmt/format.h>

#include "trainer/job/loading.h"

namespace shardscope::trainer {

void finish(Job& job, const std::string& file, const Origins& origins) {
    // Where `key` was given, else where `other` was (the key is at its default), else the file.
    const auto refuse = [&](const std::string& key, const std::string& other, const std::string& why) {
        auto origin = origins.find(key);
        if (origin == origins.end()) origin = origins.find(other);
        throw JobError(fmt::format("{}: {}: {}", origin == origins.end() ? file : origin->second, key, why));
    };

    if (job.parallel.mode == ParallelMode::none && job.run.ranks != 1) {
        refuse("parallel.mode", "run.ranks",
               fmt::format("\"none\" trains with one rank, but run.ranks is {}; set run.ranks to 1, or "
                           "parallel.mode to \"fsdp\" or \"ddp\"",
                           job.run.ranks));
    }
    if (job.model.type == ModelType::mlp && job.data.type != DataType::synthetic) {
        refuse("data.type", "model.type",
               "an mlp trains on \"synthetic\" data; set data.type to \"synthetic\", or "
               "model.type to \"gpt\"");
    }
    if (job.model.type == ModelType::gpt) {
        if (job.data.type != DataType::text) {
            refuse("data.type", "model.type",
                   "a gpt trains on \"text\"; set data.type to \"text\" and data.path to "
                   "a file or folder");
        }
        if (job.model.width % job.model.heads != 0) {
            refuse(
                "model.heads", "model.width",
                fmt::format("{} heads do not divide model.width {}; choose a width that is a multiple of the "
                            "heads",
                            job.model.heads, job.model.width));
        }
    }
    if (job.data.type == DataType::text && job.data.path.empty()) {
        refuse("data.path", "data.type", "\"text\" data needs a path; set data.path to a file or folder");
    }
    if (job.optimizer.type == OptimizerType::adamw && !origins.contains("optimizer.weight_decay")) {
        job.optimizer.weight_decay = 0.01;
    }
}

}  // namespace shardscope::trainer
