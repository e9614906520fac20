// See checks.h.
#include "trainer/job/checks.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <fmt/core.h>

#include "trainer/job/strategy.h"

namespace shardscope::trainer::job {

void Checks::device() const {
    const RunSection& run = job_.run;
    if (run.comm == CommKind::nccl && run.device != DeviceKind::cuda) {
        refuse("run.comm", "run.device",
               "NCCL runs collectives only between GPUs; set run.device to \"cuda\", or run.comm to "
               "\"local\"");
    }
    if (run.device != DeviceKind::sim && run.ranks > kMostRanks) {
        refuse("run.ranks", "run.device",
               fmt::format("{} is out of range; use 1 to {}, or set run.device to \"sim\"", run.ranks,
                           kMostRanks));
    }
    if (run.ranks_per_device > 1) shared_devices();
    if (run.device == DeviceKind::sim) return simulation();
    if (!run.trace_parts.empty() && run.processes == 0) {
        refuse("run.trace_parts", "run.processes",
               "ranks that are threads record one trace; omit the key, or start the ranks as processes");
    }
    const bool messages =
        run.comm == CommKind::mpi || run.comm == CommKind::gloo || run.comm == CommKind::tcp;
    const std::string comm = run.comm == CommKind::mpi ? "mpi" : run.comm == CommKind::gloo ? "gloo" : "tcp";
    if (messages && run.device != DeviceKind::cpu) {
        refuse("run.comm", "run.device",
               fmt::format("\"{}\" runs collectives only between processors; on GPUs use \"nccl\"", comm));
    }
    if (messages && run.processes == 0 && run.ranks > 1) {
        refuse("run.comm", "run.ranks",
               fmt::format("\"{}\" is for ranks that are processes; start them with {}--run.processes={}, or "
                           "set run.comm to \"local\"",
                           comm, run.comm == CommKind::mpi ? "mpirun, or give " : "torchrun, or give ",
                           run.ranks));
    }
    if (run.comm == CommKind::local && run.processes > 1) {
        refuse(
            "run.comm", "run.processes",
            fmt::format("\"local\" is for ranks that are threads of one process, but there are {} processes; "
                        "omit the key",
                        run.processes));
    }
    if (run.sums == SumOrder::ring && (run.processes == 0 || run.device != DeviceKind::cpu)) {
        refuse("run.sums", "run.comm",
               "\"ring\" applies to mpi, gloo and tcp, between CPU processes; omit the key");
    }
}

void Checks::shared_devices() const {
    const RunSection& run = job_.run;
    if (run.ranks % run.ranks_per_device != 0) {
        refuse("run.ranks_per_device", "run.ranks",
               fmt::format("{} ranks cannot be divided among devices of {} ranks each; choose a divisor of "
                           "run.ranks",
                           run.ranks, run.ranks_per_device));
    }
    if (run.device == DeviceKind::cpu && run.processes == 0) {
        refuse("run.ranks_per_device", "run.device",
               "ranks that are threads share all cores of their process; start them as processes, with "
               "run.processes, or omit the key");
    }
    if (run.device == DeviceKind::cpu && run.workers > 0) {
        refuse("run.ranks_per_device", "run.workers",
               "run.workers also says on how many cores a process works; omit one of the two keys");
    }
    if (run.device == DeviceKind::cuda && (run.comm == CommKind::nccl || run.processes > 1)) {
        refuse("run.ranks_per_device", "run.comm",
               "NCCL, which connects processes, refuses two ranks on one GPU; start the ranks as threads of "
               "one process with run.comm = \"local\", or omit the key");
    }
}

// Refuses settings that need real collectives or processes: a simulation has neither.
void Checks::simulation() const {
    const RunSection& run = job_.run;
    if (run.comm != CommKind::automatic) {
        refuse("run.comm", "run.device",
               "the cost model decides how the collectives of a simulation run; omit the key");
    }
    if (run.processes > 0) {
        refuse("run.processes", "run.device",
               "simulated ranks are not processes; omit the key and set run.ranks, without a launcher");
    }
    if (!run.trace_parts.empty()) {
        refuse("run.trace_parts", "run.device", "a simulation records one trace; omit the key");
    }
    if (run.sums != SumOrder::ordered) {
        refuse("run.sums", "run.device", "a simulation sums nothing; omit the key");
    }
    for (const SlowRank& slow : job_.sim.slow_ranks) {
        if (slow.rank < run.ranks) continue;
        refuse("sim.slow_rank", "run.ranks",
               fmt::format("there is no rank {}; use 0 to {}", slow.rank, run.ranks - 1));
    }
}

void Checks::data() {
    const bool text = job_.data.type == DataType::text;
    if (job_.model.type == ModelType::mlp && text) {
        refuse("data.type", "model.type",
               "an mlp trains on \"synthetic\" data; set data.type to \"synthetic\", or "
               "model.type to \"gpt\"");
    }
    if (has_tokens(job_.model.type) && !text) {
        refuse("data.type", "model.type",
               fmt::format("a {} trains on \"text\"; set data.type to \"text\" and data.path to a file or "
                           "folder",
                           word_of(job_.model.type)));
    }
    if (text && job_.data.path.empty() && job_.run.device != DeviceKind::sim) {  // a simulation opens no data
        refuse("data.path", "data.type", "\"text\" data needs a path; set data.path to a file or folder");
    }
    const bool files = job_.reads_images() && !job_.data.path.empty();
    for (const auto& [key, share] :
         {std::pair{"data.validation", job_.data.validation}, std::pair{"data.test", job_.data.test}}) {
        if (text || files || share == 0) continue;
        refuse(key, "data.type",
               job_.reads_images()
                   ? "generated images are endless, so none can be held out; set data.path, or omit the key"
                   : "only \"text\" and \"images\" can be held out; omit the key");
    }
    epochs();
    if (job_.train.validate_every && !job_.validates()) {
        refuse("train.validate_every", "data.validation",
               "nothing is held out to validate on; set data.validation, 0.1 for a tenth of the data");
    }
    if (job_.train.gradient_norm && job_.train.clip_norm > 0) {
        refuse("train.gradient_norm", "train.clip_norm",
               "clipping computes the norm, and its metric is recorded anyway; omit the key");
    }
}

// How long the run is, in steps or in epochs: the command line outweighs the file.
void Checks::epochs() {
    const auto by_command = [&](const char* key) { return given(key) && origins_.at(key) == kCommandLine; };
    if (job_.train.epochs > 0 && given("run.steps")) {
        if (by_command("run.steps") == by_command("train.epochs")) {
            refuse("train.epochs", "run.steps",
                   "run.steps also says how long the run is; omit one of the two keys");
        }
        if (by_command("run.steps")) job_.train.epochs = 0;
    }
    if (!job_.data.path.empty() || !job_.counts_epochs()) return;
    const char* key = job_.train.epochs > 0              ? "train.epochs"
                      : job_.train.validate_every.epochs ? "train.validate_every"
                                                         : "checkpoint.every";
    refuse(key, "data.type",
           job_.data.type == DataType::text
               ? "how many samples an epoch has follows from the text; set data.path, or count steps"
               : "samples that are made do not repeat, so there are no epochs; count steps, with run.steps, "
                 "or set data.path to files");
}

// The sizes of the axes divide the ranks.
void Checks::mesh() const {
    const ParallelSection& parallel = job_.parallel;
    const int ranks = job_.run.ranks, tensor = parallel.tensor, pipeline = parallel.pipeline;
    if (ranks % tensor != 0) {
        refuse("parallel.tensor", "run.ranks",
               fmt::format("{} ranks cannot be cut into tensor groups of {}; choose a divisor of run.ranks",
                           ranks, tensor));
    }
    const auto nearest = [](int most, int all) {
        while (all % most != 0) --most;
        return most;
    };
    const std::string in_groups = tensor > 1 ? fmt::format(" in tensor groups of {}", tensor) : "";
    const int left = ranks / tensor / parallel.context;
    if (ranks / tensor % parallel.context != 0) {
        refuse("parallel.context", "run.ranks",
               fmt::format(
                   "{} ranks{} cannot be cut into context groups of {}; the nearest number of ranks that "
                   "works is {}",
                   ranks, in_groups, parallel.context, nearest(parallel.context, ranks / tensor)));
    }
    if (left % pipeline != 0) {
        refuse("parallel.pipeline", "run.ranks",
               fmt::format(
                   "{} ranks{}{} cannot be cut into {} places of a pipeline; the nearest number of places "
                   "that works is {}",
                   ranks, in_groups,
                   parallel.context > 1
                       ? fmt::format("{} context groups of {}", tensor > 1 ? " and" : " in", parallel.context)
                       : "",
                   pipeline, nearest(pipeline, left)));
    }
    const int axes = (tensor > 1 ? 1 : 0) + (parallel.context > 1 ? 1 : 0) + (pipeline > 1 ? 1 : 0) +
                     (left > pipeline ? 1 : 0);
    if (parallel.order != ParallelSection().order && axes < 2) {
        refuse("parallel.order", "run.ranks",
               "only one axis has more than one rank, so that there is nothing to order; omit the key");
    }
}

void Checks::context() const {
    const int ranks = job_.parallel.context;
    const bool ring = job_.parallel.context_exchange == ContextExchange::ring;
    if (ring && ranks == 1) {
        refuse("parallel.context_exchange", "parallel.context",
               "only the ranks of a context group exchange keys and values; set parallel.context above 1, or "
               "omit "
               "the key");
    }
    if (ranks == 1) return;
    if (job_.model.type == ModelType::mlp)
        refuse("parallel.context", "model.type", "an mlp has no tokens to divide; omit the key");
    if (job_.parallel.mode == ParallelMode::none) {
        refuse("parallel.mode", "parallel.context",
               "the ranks of a context group add up their gradients; set it to \"ddp\" or \"fsdp\"");
    }
    const int chunks = job_.is_causal() ? 2 : 1;  // of each rank
    if (job_.model.context % (chunks * ranks) == 0) return;
    const int most = job_.run.ranks / (job_.parallel.tensor * job_.parallel.pipeline);
    int nearest = ranks;
    while (nearest > 1 && (job_.model.context % (chunks * nearest) != 0 || most % nearest != 0)) --nearest;
    refuse(
        "parallel.context", "model.context",
        fmt::format("{} tokens cannot be cut into {} chunks{}; the nearest number of ranks that works is {}",
                    job_.model.context, chunks * ranks,
                    chunks == 2 ? fmt::format(", two for each of {} ranks", ranks) : "", nearest));
}

void Checks::strategy() {
    const int ranks = job_.run.ranks;
    const int tensor = job_.parallel.tensor, pipeline = job_.parallel.pipeline;
    if (pipeline > 1) {
        if (given("train.accumulation_sync") && job_.train.accumulation_sync) {
            refuse("train.accumulation_sync", "parallel.pipeline",
                   "the stages of a pipeline reduce their gradients once per step; omit the key");
        }
        job_.train.accumulation_sync = false;
        const FsdpSection defaults;
        const auto by_schedule = [&](const char* key, bool is_set) {
            if (is_set && job_.parallel.mode == ParallelMode::fsdp) {
                refuse(key, "parallel.pipeline",
                       "the schedule of a pipeline says when units are gathered and freed; omit the key");
            }
        };
        by_schedule("fsdp.forward_prefetch", job_.fsdp.forward_prefetch);
        by_schedule("fsdp.backward_prefetch", job_.fsdp.backward_prefetch != defaults.backward_prefetch);
        by_schedule("fsdp.unit", !job_.fsdp.unit.empty());
        by_schedule("fsdp.reshard_after_forward",
                    job_.fsdp.reshard_after_forward != defaults.reshard_after_forward);
    } else {
        if (job_.parallel.virtual_stages > 1) {
            refuse(
                "parallel.virtual_stages", "parallel.pipeline",
                "only the places of a pipeline have stages; set parallel.pipeline above 1, or omit the key");
        }
        if (job_.parallel.schedule != ParallelSection().schedule) {
            refuse("parallel.schedule", "parallel.pipeline",
                   "only a pipeline has a schedule; set parallel.pipeline above 1, or omit the key");
        }
        if (job_.parallel.stages != ParallelSection().stages) {
            refuse("parallel.stages", "parallel.pipeline",
                   "only a pipeline has stages; set parallel.pipeline above 1, or omit the key");
        }
    }
    if (job_.parallel.sequence && tensor == 1) {
        refuse("parallel.sequence", "parallel.tensor",
               "only the ranks of a tensor group divide the tokens; set parallel.tensor above 1, or omit the "
               "key");
    }
    if (job_.parallel.sequence && job_.model.type == ModelType::mlp) {
        refuse("parallel.sequence", "model.type", "an mlp has no tokens to divide; omit the key");
    }
    if (job_.parallel.mode == ParallelMode::none && job_.data_ranks() > 1) {
        refuse("parallel.mode", "run.ranks",
               fmt::format("\"none\" trains with one {}, but run.ranks is {}; set run.ranks to {}, or "
                           "parallel.mode to \"fsdp\" or \"ddp\"",
                           pipeline > 1 ? fmt::format("copy of the model on {} ranks", job_.model_ranks())
                           : tensor > 1 ? fmt::format("tensor group of {} ranks", tensor)
                                        : "rank",
                           ranks, job_.model_ranks()));
    }
    FsdpSection& fsdp = job_.fsdp;
    if (job_.parallel.mode == ParallelMode::fsdp) {
        fsdp.sharding_strategy = traits(fsdp.sharding_strategy).meant;
        if (fsdp.sharding_strategy == ShardingStrategy::zero_1) {
            if (fsdp.cpu_offload) {
                refuse("fsdp.cpu_offload", "fsdp.sharding_strategy",
                       "ZERO_1 keeps the parameters on the device; use FULL_SHARD or SHARD_GRAD_OP");
            }
            fsdp.sharding_strategy = ShardingStrategy::full_shard;
            job_.parallel.mode = ParallelMode::ddp;
            job_.ddp.shard_optimizer = true;
        }
    }
    if (job_.parallel.mode != ParallelMode::fsdp) {
        if (fsdp.cpu_offload) {
            refuse("fsdp.cpu_offload", "parallel.mode", "only \"fsdp\" offloads; set parallel.mode to it");
        }
        return;
    }
    const StrategyTraits& row = traits(fsdp.sharding_strategy);
    if (row.in_groups) {
        if (fsdp.shard_group == 0) {
            refuse("fsdp.shard_group", "fsdp.sharding_strategy",
                   "HYBRID_SHARD needs the number of ranks that shard among themselves; set it to a divisor "
                   "of run.ranks");
        }
        if (job_.data_ranks() % fsdp.shard_group != 0) {
            refuse(
                "fsdp.shard_group", "run.ranks",
                fmt::format(
                    "{} ranks{} cannot be cut into groups of {}; choose a divisor of {}", job_.data_ranks(),
                    job_.model_ranks() > 1 ? fmt::format(" (run.ranks / {})", job_.model_ranks()) : "",
                    fsdp.shard_group, job_.model_ranks() > 1 ? "that" : "run.ranks"));
        }
    } else if (fsdp.shard_group != 0) {
        refuse("fsdp.shard_group", "fsdp.sharding_strategy",
               "only HYBRID_SHARD has shard groups; set fsdp.sharding_strategy to it, or omit the key");
    }
    if (fsdp.layout == FsdpLayout::fsdp2) {
        if (given("fsdp.limit_all_gathers") && fsdp.limit_all_gathers) {
            refuse(
                "fsdp.limit_all_gathers", "fsdp.layout",
                "fully_shard has no limiter, so the layout \"fsdp2\" has none; set it to false or omit it");
        }
        fsdp.limit_all_gathers = false;
    }
    if (fsdp.reshard_after_forward != Reshard::automatic && fsdp.layout != FsdpLayout::fsdp2) {
        refuse("fsdp.reshard_after_forward", "fsdp.layout",
               "only fully_shard, the layout \"fsdp2\", has it; omit the key, or choose FULL_SHARD or "
               "SHARD_GRAD_OP as fsdp.sharding_strategy");
    }
    if (fsdp.reshard_after_forward == Reshard::yes && !row.frees_after_forward) {
        refuse("fsdp.reshard_after_forward", "fsdp.sharding_strategy",
               fmt::format("{} frees nothing after the forward; omit one of the two keys", row.name));
    }
    if (!row.shards) {
        if (!fsdp.unit.empty()) {
            refuse("fsdp.unit", "fsdp.sharding_strategy",
                   "NO_SHARD frees no unit; use FULL_SHARD or SHARD_GRAD_OP");
        }
        if (fsdp.cpu_offload) {
            refuse("fsdp.cpu_offload", "fsdp.sharding_strategy",
                   "NO_SHARD cannot be offloaded, as no shard leaves the device; use FULL_SHARD or "
                   "SHARD_GRAD_OP");
        }
        if (fsdp.layout != FsdpLayout::fsdp1) {
            refuse("fsdp.layout", "fsdp.sharding_strategy",
                   "NO_SHARD exists only in the layout fsdp1; set fsdp.layout to \"fsdp1\"");
        }
    }
}

void Checks::comm_hook() const {
    const DdpSection &ddp = job_.ddp, defaults;
    const CommHookTraits& hook = traits(ddp.comm_hook.kind);
    const bool compresses = ddp.comm_hook.kind != CommHookKind::none;
    if (compresses && job_.parallel.mode != ParallelMode::ddp) {
        refuse("ddp.comm_hook", "parallel.mode",
               "only \"ddp\" reduces buckets of gradients; set parallel.mode to it, or omit the key");
    }
    if (job_.run.device == DeviceKind::cuda && !hook.on_gpu) {
        refuse("ddp.comm_hook", "run.device",
               fmt::format("{} has no kernels for a GPU; use \"powersgd:4\" or \"bf16\"", hook.name));
    }
    if (hook.keeps_error && job_.train.accumulation > 1 && job_.train.accumulation_sync) {
        refuse("ddp.comm_hook", "train.accumulation_sync",
               fmt::format("{} would compress again what it has reduced after the micro-batch before; set "
                           "train.accumulation_sync to false",
                           hook.name));
    }
    if (ddp.comm_hook_start != defaults.comm_hook_start && !hook.keeps_error) {
        refuse("ddp.comm_hook_start", "ddp.comm_hook",
               "only powersgd and topk begin later than the run; omit the key");
    }
    if (hook.keeps_error && job_.train.epochs == 0 && job_.run.steps <= ddp.comm_hook_start) {
        refuse("ddp.comm_hook_start", "run.steps",
               fmt::format("the first {} steps are reduced whole, and the run has {}; raise run.steps",
                           ddp.comm_hook_start, job_.run.steps));
    }
    if (ddp.orthogonalization_epsilon != 0 && ddp.comm_hook.kind != CommHookKind::powersgd) {
        refuse("ddp.orthogonalization_epsilon", "ddp.comm_hook",
               "only powersgd makes columns orthogonal; omit the key");
    }
}

void Checks::precision() {
    PrecisionSection& precision = job_.precision;
    if (!given("precision.reduce")) precision.reduce = precision.param;
    if (!given("precision.buffer")) precision.buffer = precision.param;
    if (precision.tf32 && job_.run.device == DeviceKind::cpu) {
        refuse("precision.tf32", "run.device",
               "TF32 exists only on a GPU; set run.device to \"cuda\" or omit the key");
    }
    loss_scale();
    if (job_.parallel.mode == ParallelMode::fsdp) return;
    for (const auto& [key, value] :
         {std::pair{"precision.param", precision.param}, std::pair{"precision.reduce", precision.reduce}}) {
        if (value == Precision::fp32) continue;
        refuse(key, "parallel.mode",
               fmt::format("\"{}\" needs the fp32 shards of FSDP; set parallel.mode to \"fsdp\", or the key "
                           "to \"fp32\"",
                           value == Precision::bf16 ? "bf16" : "fp16"));
    }
}

void Checks::loss_scale() {
    PrecisionSection& precision = job_.precision;
    const auto uses = [&](Precision type) {
        return precision.param == type || precision.reduce == type || precision.buffer == type;
    };
    if (uses(Precision::bf16) && uses(Precision::fp16)) {
        refuse(
            "precision.param", "precision.reduce",
            "bf16 and fp16 are not mixed in a job; give precision.param, reduce and buffer the same one, or "
            "\"fp32\"");
    }
    const bool deepspeed = precision.scale_rule == ScaleRule::deepspeed;
    const std::int64_t interval = deepspeed ? 1000 : 2000;
    if (!given("precision.growth_interval")) precision.growth_interval = interval;
    const PrecisionSection defaults;
    const std::array<std::pair<const char*, bool>, 6> set = {
        {{"precision.loss_scale", precision.loss_scale != defaults.loss_scale},
         {"precision.scale_rule", deepspeed},
         {"precision.initial_scale", precision.initial_scale != defaults.initial_scale},
         {"precision.growth_interval", precision.growth_interval != interval},
         {"precision.hysteresis", precision.hysteresis != defaults.hysteresis},
         {"precision.min_scale", precision.min_scale != defaults.min_scale}}};
    for (std::size_t i = 0; i < set.size(); ++i) {
        const auto& [key, wanted] = set[i];
        if (!wanted) continue;
        if (!precision.scales_loss()) {
            refuse(key, key,
                   "only gradients in fp16 are scaled; set precision.param to \"fp16\", or omit the key");
        }
        if (i > 0 && precision.loss_scale > 0)
            refuse(key, key, "precision.loss_scale is constant; set it to 0 (dynamic), or omit the key");
        if (i > 3 && !deepspeed) {
            refuse(key, key,
                   "the rule of torch has none; set precision.scale_rule to \"deepspeed\", or omit the key");
        }
    }
    if (deepspeed && precision.initial_scale < precision.min_scale)
        refuse("precision.min_scale", "precision.initial_scale",
               "it is above precision.initial_scale; lower it");
}

void Checks::optimizer() {
    OptimizerSection& optimizer = job_.optimizer;
    const OptimizerType type = warm_up_of(optimizer.type);
    const bool decays = optimizer.type == OptimizerType::adamw || type == OptimizerType::lamb;
    if (decays && !given("optimizer.weight_decay")) optimizer.weight_decay = 0.01;
    if (type == OptimizerType::lamb && !given("optimizer.eps")) optimizer.eps = 1e-6;
    if (type == OptimizerType::lars && !given("optimizer.momentum")) optimizer.momentum = 0.9;
    if (type == OptimizerType::novograd && !given("optimizer.betas")) optimizer.betas = {0.95, 0.98};
    if (job_.parallel.expert > 1 && needs_norms(type)) {
        refuse(
            "optimizer.type", "parallel.expert",
            "lars, lamb and novograd need the norm of a whole parameter, which an expert group cuts; choose "
            "adamw or sgd, or set parallel.expert to 1");
    }
    if (optimizer.nesterov && type != OptimizerType::sgd && type != OptimizerType::lars) {
        refuse("optimizer.nesterov", "optimizer.type", "only sgd and lars have momentum of this kind");
    }
    if (optimizer.momentum > 0 && type != OptimizerType::sgd && type != OptimizerType::lars) {
        refuse("optimizer.momentum", "optimizer.type",
               "only sgd and lars have it, the others have optimizer.betas; omit the key");
    }
    if (optimizer.trust_coefficient != OptimizerSection().trust_coefficient && type != OptimizerType::lars) {
        refuse("optimizer.trust_coefficient", "optimizer.type",
               "only lars has it; set optimizer.type to \"lars\", or omit the key");
    }
    if (optimizer.nesterov && optimizer.momentum == 0) {
        refuse("optimizer.nesterov", "optimizer.momentum",
               "Nesterov momentum needs momentum; set optimizer.momentum above 0");
    }
    if (given("optimizer.warmup") && optimizer.warmup == Warmup::constant &&
        optimizer.lr_scaling == LrScaling::none) {
        refuse("optimizer.warmup", "optimizer.lr_scaling",
               "\"constant\" stays at the unscaled rate, and nothing is scaled here; set "
               "optimizer.lr_scaling, or omit the key");
    }
    if (optimizer.lr_batch > 0 && optimizer.lr_scaling == LrScaling::none) {
        refuse("optimizer.lr_batch", "optimizer.lr_scaling",
               "it is the batch that optimizer.lr is meant for, and nothing is scaled here; set "
               "optimizer.lr_scaling, or omit the key");
    }
    if (optimizer.schedule == LrSchedule::step && optimizer.milestones.empty()) {
        refuse("optimizer.schedule", "optimizer.milestones",
               "\"step\" needs the steps at which the rate drops; set optimizer.milestones = [30, 60]");
    }
    if (!optimizer.milestones.empty() && optimizer.schedule != LrSchedule::step) {
        refuse("optimizer.milestones", "optimizer.schedule",
               "only the schedule \"step\" has milestones; set optimizer.schedule to it");
    }
    if (optimizer.power != OptimizerSection().power && optimizer.schedule != LrSchedule::polynomial) {
        refuse("optimizer.power", "optimizer.schedule",
               "only the schedule \"polynomial\" has a power; set optimizer.schedule to it, or omit the key");
    }
}

void Checks::rest() const {
    if (job_.checkpoint.every && job_.checkpoint.save.empty()) {
        refuse("checkpoint.every", "checkpoint.save",
               "there is no folder to save in; set checkpoint.save to one");
    }
    if (!job_.checkpoint.initial_load.empty() && !job_.checkpoint.load.empty()) {
        refuse("checkpoint.initial_load", "checkpoint.load",
               "a run that continues takes its parameters from checkpoint.load; omit one of the two");
    }
    if (!job_.checkpoint.keep.all() && job_.checkpoint.save.empty()) {
        refuse("checkpoint.keep", "checkpoint.save",
               "this job saves no checkpoints; set checkpoint.save to a folder");
    }
    if (job_.checkpoint.names == CheckpointNames::huggingface) {
        const ModelType type = job_.model.type;
        if (type != ModelType::gpt && type != ModelType::llama && type != ModelType::bert) {
            refuse("checkpoint.names", "model.type",
                   "only a gpt, llama or bert has a class in transformers; omit the key");
        }
        if (job_.model.experts > 0) {
            refuse("checkpoint.names", "model.experts",
                   "there are no names for experts; omit one of the two");
        }
        if (job_.checkpoint.format != CheckpointFormat::safetensors) {
            refuse("checkpoint.names", "checkpoint.format",
                   "transformers reads safetensors; set checkpoint.format to \"safetensors\"");
        }
    }
    if (job_.checkpoint.keep.best && !job_.validates()) {
        refuse("checkpoint.keep", "data.validation",
               "\"best\" needs a validation loss; set data.validation, for example to 0.1, a tenth of the "
               "data");
    }
}

void finish(Job& job, const std::string& file, const Origins& origins) {
    Checks(job, file, origins).run();
}

}  // namespace shardscope::trainer::job
