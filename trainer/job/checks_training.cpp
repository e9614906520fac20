// Checks of what ranks do instead of reducing gradients in each step, and of where the optimizer is.
#include <utility>

#include <fmt/core.h>

#include "trainer/job/checks.h"
#include "trainer/job/strategy.h"

namespace shardscope::trainer::job {

// No group of ranks shares the model; `key` is why, and `who` the subject and verb of a sentence.
void Checks::whole_model(const char* key, const char* who) const {
    const ParallelSection& parallel = job_.parallel;
    for (const auto& [group, ranks] :
         {std::pair{"parallel.tensor", parallel.tensor}, std::pair{"parallel.context", parallel.context},
          std::pair{"parallel.expert", parallel.expert}, std::pair{"parallel.pipeline", parallel.pipeline}}) {
        if (ranks > 1)
            refuse(group, key, fmt::format("{} the whole model on each rank; set the key to 1", who));
    }
}

// What 1-bit optimizers need: every rank has all parameters of the model, its own momentum of them, and no
// one but its optimizer reduces anything.
void Checks::onebit() const {
    const OptimizerSection& optimizer = job_.optimizer;
    if (!is_onebit(optimizer.type)) {
        if (optimizer.freeze_step != 0) {
            refuse("optimizer.freeze_step", "optimizer.type",
                   "only onebit_adam and onebit_lamb have a warm-up of this kind; omit the key");
        }
        return;
    }
    const auto no = [&](bool is_set, const char* key, const char* why) {
        if (is_set) refuse(key, "optimizer.type", fmt::format("1-bit optimizers {}", why));
    };
    no(job_.parallel.mode != ParallelMode::ddp, "parallel.mode",
       "replace the all-reduce of \"ddp\"; set the key to it, or optimizer.type to adamw or lamb");
    no(optimizer.freeze_step == 0, "optimizer.freeze_step",
       "begin with steps that find the variance; set it to their number, for example a fifth of run.steps");
    no(job_.run.device == DeviceKind::cuda, "run.device",
       "have no kernels for a GPU; choose another optimizer.type, or set the key to \"cpu\"");
    no(job_.ddp.shard_optimizer, "ddp.shard_optimizer", "need the whole momentum on each rank; omit the key");
    no(job_.ddp.gradient_as_bucket_view, "ddp.gradient_as_bucket_view",
       "keep gradients in one buffer of their own; omit the key");
    no(job_.ddp.comm_hook.kind != CommHookKind::none, "ddp.comm_hook",
       "compress on their own; omit one of the two");
    no(job_.train.reports_norm(), job_.train.clip_norm > 0 ? "train.clip_norm" : "train.gradient_norm",
       "never see the mean of all gradients after their warm-up; omit the key");
    whole_model("optimizer.type", "1-bit optimizers need");
}

// Local SGD: what a rank does between two means needs no other rank.
void Checks::local_steps() const {
    const TrainSection &train = job_.train, defaults;
    if (train.local_steps == 0) {
        if (train.has_outer_step()) {
            refuse(train.outer_lr != defaults.outer_lr ? "train.outer_lr" : "train.outer_momentum",
                   "train.local_steps",
                   "only local steps end in a mean of parameters; set train.local_steps, or omit the key");
        }
        return;
    }
    const auto no = [&](bool is_set, const char* key, const char* why) {
        if (is_set) refuse(key, "train.local_steps", fmt::format("local steps {}", why));
    };
    no(job_.parallel.mode != ParallelMode::ddp, "parallel.mode",
       "replace the all-reduce of \"ddp\"; set the key to it, or omit train.local_steps");
    no(is_onebit(job_.optimizer.type), "optimizer.type",
       "have momentum of their own, which 1-bit optimizers exchange; choose adamw or lamb");
    no(job_.memory.offload.optimizer, "memory.offload",
       "average the parameters where the optimizer is; omit \"optimizer\"");
    no(job_.ddp.shard_optimizer, "ddp.shard_optimizer",
       "need the whole optimizer on each rank; omit the key");
    no(job_.ddp.gradient_as_bucket_view, "ddp.gradient_as_bucket_view", "have no buckets; omit the key");
    no(job_.ddp.comm_hook.kind != CommHookKind::none, "ddp.comm_hook",
       "reduce no gradients that a hook could compress; omit one of the two");
    no(train.reports_norm(), train.clip_norm > 0 ? "train.clip_norm" : "train.gradient_norm",
       "have as many gradients as ranks, and no norm of all; omit the key");
    whole_model("train.local_steps", "local steps need");
}

// A parameter server: workers have samples and gradients, servers the parameters, and no group is both.
void Checks::server() const {
    const TrainSection& train = job_.train;
    const OptimizerType type = job_.optimizer.type;
    if (job_.parallel.mode != ParallelMode::server) {
        const bool several = job_.parallel.servers != ParallelSection().servers;
        if (several || train.staleness != 0) {
            refuse(several ? "parallel.servers" : "train.staleness", "parallel.mode",
                   "only a parameter server has it; set parallel.mode to \"server\", or omit the key");
        }
        return;
    }
    const auto no = [&](bool is_set, const char* key, const char* why) {
        if (is_set) refuse(key, "parallel.mode", fmt::format("a parameter server {}", why));
    };
    no(job_.run.ranks <= job_.parallel.servers, "run.ranks",
       "has workers, too; raise the key above parallel.servers");
    no(job_.run.device == DeviceKind::cuda, "run.device",
       "has no streams on a GPU that wait for their turn; set the key to \"cpu\"");
    whole_model("parallel.mode", "a parameter server has workers with");
    no(job_.memory.offload.optimizer, "memory.offload",
       "has workers without an optimizer; omit \"optimizer\"");
    no(job_.parallel.sync_batch_norm, "parallel.sync_batch_norm",
       "has workers that do not meet; set the key to false");
    no(train.reports_norm(), train.clip_norm > 0 ? "train.clip_norm" : "train.gradient_norm",
       "has a part of the gradients, or those of one worker, and no norm of all; omit the key");
    const bool takes_norms = needs_norms(type) || type == OptimizerType::novograd;
    no(takes_norms && (train.staleness != 0 || job_.parallel.servers > 1), "optimizer.type",
       "takes norms of parameters only alone and in step; set the key to \"sgd\", \"adam\" or \"adamw\", or "
       "parallel.servers to 1 and train.staleness to 0");
}

// What keeps its gradients or parameters on the device cannot have its optimizer on the host.
void Checks::offload() const {
    if (!job_.memory.offload.optimizer) return;
    const char* const kKey = "memory.offload";
    if (job_.fsdp.cpu_offload) {
        refuse(kKey, "fsdp.cpu_offload",
               "with fsdp.cpu_offload the optimizer is on the host already; omit \"optimizer\", or "
               "fsdp.cpu_offload");
    }
    if (job_.parallel.mode == ParallelMode::fsdp && !traits(job_.fsdp.sharding_strategy).shards) {
        refuse(kKey, "fsdp.sharding_strategy",
               "NO_SHARD sums its gradients where they stay, on the device; use FULL_SHARD or SHARD_GRAD_OP");
    }
    if (is_onebit(job_.optimizer.type)) {
        refuse(kKey, "optimizer.type",
               "1-bit optimizers exchange their momentum on the device; use \"adam\" or \"lamb\"");
    }
    if (job_.parallel.mode != ParallelMode::ddp) return;
    if (job_.ddp.shard_optimizer) {
        refuse(kKey, "ddp.shard_optimizer",
               "a sharded optimizer keeps all parameters in one buffer on the device; set parallel.mode to "
               "\"fsdp\"");
    }
    if (job_.ddp.gradient_as_bucket_view) {
        refuse(kKey, "ddp.gradient_as_bucket_view",
               "gradients that are views of a bucket cannot leave the device without it; set it to false");
    }
}

// Files have what the hosts update, one unit or parameter after another.
void Checks::nvme() const {
    if (job_.memory.nvme.empty()) return;
    const char* const kKey = "memory.nvme";
    const OptimizerType type = job_.optimizer.type;
    if (!job_.memory.offload.optimizer && !job_.fsdp.cpu_offload) {
        refuse(kKey, "memory.offload",
               "files hold what the hosts update, which is nothing here; set memory.offload to "
               "\"optimizer\", or "
               "fsdp.cpu_offload");
    }
    if (needs_norms(type) || type == OptimizerType::novograd) {
        refuse(
            kKey, "optimizer.type",
            "it takes norms of all parameters before it updates the first, and would read the files twice; "
            "use \"adamw\", \"adam\" or \"sgd\"");
    }
}

}  // namespace shardscope::trainer::job
