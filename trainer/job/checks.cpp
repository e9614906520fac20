// Checks that span several keys of a job, defaults that depend on another key, and names that stand for
// several keys.
#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>

#include "trainer/job/keys.h"
#include "trainer/job/loading.h"
#include "trainer/job/shapes.h"
#include "trainer/job/strategy.h"

namespace shardscope::trainer::job {

namespace {

std::string_view word_of(ModelType type) {
    return find_key("model", "type")->choices[static_cast<std::size_t>(type)];
}

class Checks {
  public:
    Checks(Job& job, const std::string& file, const Origins& origins)
        : job_(job), file_(file), origins_(origins) {}

    void run() {
        device();
        shape();
        images();
        model();
        experts();
        attention();
        data();
        mesh();
        context();
        strategy();
        expert_groups();
        precision();
        optimizer();
        rest();
    }

  private:
    bool given(const std::string& key) const { return origins_.contains(key); }

    // Throws JobError. Its place is where `key` was given, else (the key has its default) where `other` was,
    // else the file.
    [[noreturn]] void refuse(const std::string& key, const std::string& other, const std::string& why) const {
        auto origin = origins_.find(key);
        if (origin == origins_.end()) origin = origins_.find(other);
        throw JobError(
            fmt::format("{}: {}: {}", origin == origins_.end() ? file_ : origin->second, key, why));
    }

    void device() const;
    void simulation() const;
    void shape();
    void images() const;
    void model() const;
    void experts() const;
    void expert_groups() const;
    void attention();
    void data() const;
    void mesh() const;
    void context() const;
    void strategy();
    void precision();
    void optimizer();
    void rest() const;

    Job& job_;
    const std::string& file_;
    const Origins& origins_;
};

// A published shape fills the keys of [model] that are not given.
void Checks::shape() {
    ModelSection& model = job_.model;
    if (model.name.empty()) return;
    const NamedShape* shape = find_shape(model.name);
    if (shape == nullptr) refuse("model.name", "model.name", unknown_shape(model.name));
    if (given("model.type") && model.type != shape->type) {
        refuse("model.name", "model.type",
               fmt::format("{} is a {}, but model.type differs; omit model.type", model.name,
                           word_of(shape->type)));
    }
    model.type = shape->type;
    if (!given("model.layers")) model.layers = shape->layers;
    if (!given("model.width")) model.width = shape->width;
    if (!has_tokens(shape->type)) return;
    if (!given("model.heads")) model.heads = shape->heads;
    if (!given("model.kv_heads")) model.kv_heads = shape->kv_heads;
    if (!given("model.context")) model.context = shape->context;
    if (!given("model.vocabulary")) model.vocabulary = shape->vocabulary;
    if (!given("model.tied_embeddings")) model.tied_embeddings = shape->tied;
}

// What only images have, and what a network for images does not have.
void Checks::images() const {
    if (job_.model.type != ModelType::resnet) {
        if (job_.reads_images()) {
            refuse("data.type", "model.type",
                   fmt::format("{} {} does not read images; set model.name to \"resnet50\", or omit the key",
                               job_.model.type == ModelType::mlp ? "an" : "a", word_of(job_.model.type)));
        }
        const DataSection data;
        const std::array<std::pair<const char*, bool>, 4> set = {
            {{"data.image", job_.data.image != data.image},
             {"data.classes", job_.data.classes != data.classes},
             {"train.label_smoothing", job_.train.label_smoothing > 0},
             {"ddp.broadcast_buffers", !job_.ddp.broadcast_buffers}}};
        for (const auto& [key, wanted] : set)
            if (wanted) refuse(key, key, "only networks for images have it; omit the key");
        return;
    }
    if (job_.model.name.empty()) {
        refuse("model.type", "model.type",
               "a resnet is one of the published shapes; set model.name to \"resnet50\", or to 18, 34, 101 "
               "or 152");
    }
    if (!job_.reads_images())
        refuse("data.type", "model.name", "a resnet trains on \"images\"; set data.type to \"images\"");
    const ModelSection &model = job_.model, defaults;
    const std::array<std::pair<const char*, bool>, 11> set = {
        {{"model.layers", model.layers != find_shape(model.name)->layers},
         {"model.bias", model.bias != defaults.bias},
         {"model.heads", model.heads != defaults.heads},
         {"model.kv_heads", model.kv_heads != defaults.kv_heads},
         {"model.context", model.context != defaults.context},
         {"model.vocabulary", model.vocabulary != defaults.vocabulary},
         {"model.dropout", model.dropout != defaults.dropout},
         {"model.tied_embeddings", model.tied_embeddings},
         {"model.activation", model.activation != defaults.activation},
         {"model.fused_activation", model.fused_activation},
         {"model.attention", model.attention != defaults.attention}}};
    for (const auto& [key, wanted] : set)
        if (wanted) refuse(key, key, "a resnet has none to choose; omit the key");
    if (job_.run.device == DeviceKind::cuda) {
        refuse("run.device", "model.name",
               "convolutions have no kernels for a GPU; set run.device to \"cpu\" or \"sim\"");
    }
    for (const auto& [key, ranks] : {std::pair{"parallel.tensor", job_.parallel.tensor},
                                     std::pair{"parallel.context", job_.parallel.context},
                                     std::pair{"parallel.pipeline", job_.parallel.pipeline}}) {
        if (ranks > 1)
            refuse(key, "model.name", "a resnet is not divided among ranks this way; set the key to 1");
    }
    for (const auto& [key, value] : {std::pair{"precision.param", job_.precision.param},
                                     std::pair{"precision.reduce", job_.precision.reduce},
                                     std::pair{"precision.buffer", job_.precision.buffer}}) {
        if (value != Precision::fp32)
            refuse(key, "model.name", "convolutions compute in fp32; set the key to \"fp32\"");
    }
    if (!job_.ddp.broadcast_buffers && job_.parallel.mode != ParallelMode::ddp) {
        refuse("ddp.broadcast_buffers", "parallel.mode",
               "only ddp broadcasts buffers; set parallel.mode to \"ddp\", or omit the key");
    }
}

void Checks::model() const {
    const ModelSection& model = job_.model;
    if (model.type == ModelType::resnet) return;
    if (model.fused_activation && model.activation == kernels::ActivationKind::squared_relu) {
        refuse("model.fused_activation", "model.activation",
               "cuBLASLt computes relu and gelu in a matmul, not squared_relu; omit one of the two keys");
    }
    if (model.type == ModelType::mlp) {
        const std::array<std::pair<const char*, bool>, 4> set = {
            {{"model.dropout", model.dropout > 0},
             {"model.tied_embeddings", model.tied_embeddings},
             {"model.vocabulary", model.vocabulary != 0},
             {"model.kv_heads", model.kv_heads != 0}}};
        for (const auto& [key, wanted] : set) {
            if (wanted) refuse(key, "model.type", "an mlp has none; omit the key or set model.type");
        }
        return;
    }
    if (model.width % model.heads != 0) {
        refuse("model.heads", "model.width",
               fmt::format("{} heads do not divide model.width {}; choose a width that is a multiple of the "
                           "heads",
                           model.heads, model.width));
    }
    const bool masks = model.type == ModelType::bert;
    if (model.vocabulary != 0 && model.vocabulary < (masks ? 257 : 256)) {
        refuse("model.vocabulary", "model.type",
               fmt::format("{} is less than the 256 bytes{}; use 0 for bytes or a number above {}",
                           model.vocabulary, masks ? " and the mask" : "", masks ? 257 : 256));
    }
    if (model.type != ModelType::llama) {
        if (given("model.kv_heads") && model.kv_heads != 0 && model.kv_heads != model.heads) {
            refuse("model.kv_heads", "model.type",
                   fmt::format("a {} has as many heads of keys and values as of queries; set model.type to "
                               "\"llama\"",
                               word_of(model.type)));
        }
        return;
    }
    if (model.activation != kernels::ActivationKind::none) {
        refuse("model.activation", "model.type",
               "a llama's activation is the SiLU of its SwiGLU; omit the key or set model.type");
    }
    if (model.fused_activation) {
        refuse(
            "model.fused_activation", "model.type",
            "a llama's activation multiplies the results of two matmuls, so no single matmul can compute it;"
            " omit the key");
    }
    if (model.kv_heads != 0 && model.heads % model.kv_heads != 0) {
        refuse("model.kv_heads", "model.heads",
               fmt::format("{} heads of keys and values do not divide model.heads {}; choose a divisor",
                           model.kv_heads, model.heads));
    }
    if (model.width / model.heads % 2 != 0) {
        refuse("model.width", "model.heads",
               fmt::format("a head of {} features cannot be rotated in pairs; choose width / heads even",
                           model.width / model.heads));
    }
}

void Checks::experts() const {
    const ModelSection& model = job_.model;
    if (model.experts == 0) {
        const ModelSection defaults;
        const std::array<std::pair<const char*, bool>, 3> set = {
            {{"model.experts_per_token", model.experts_per_token != defaults.experts_per_token},
             {"model.capacity_factor", model.capacity_factor > 0},
             {"model.balance_loss", model.balance_loss > 0}}};
        for (const auto& [key, wanted] : set) {
            if (wanted)
                refuse(key, "model.experts", "there are no experts; set model.experts, or omit the key");
        }
        return;
    }
    if (model.type != ModelType::gpt && model.type != ModelType::llama) {
        refuse("model.experts", "model.type",
               fmt::format("{} {} has none; set model.type to \"gpt\" or \"llama\", or omit the key",
                           model.type == ModelType::mlp ? "an" : "a", word_of(model.type)));
    }
    if (model.experts_per_token > model.experts) {
        refuse("model.experts_per_token", "model.experts",
               fmt::format("a token cannot use {} of {} experts; the nearest number that works is {}",
                           model.experts_per_token, model.experts, model.experts));
    }
    if (model.fused_activation) {
        refuse("model.fused_activation", "model.experts",
               "the matmuls of experts compute no activation; omit the key");
    }
}

// Called when the strategy has its final name.
void Checks::expert_groups() const {
    const ParallelSection& parallel = job_.parallel;
    const int ranks = parallel.expert, experts = job_.model.experts;
    if (ranks == 1) return;
    if (experts == 0) {
        refuse("parallel.expert", "model.experts",
               "there are no experts; set model.experts, or omit the key");
    }
    const bool shards = job_.parallel.mode == ParallelMode::fsdp && job_.fsdp.shard_group > 0;
    // Between the ranks that share a copy there may be others, if the context axis is outside the data axes.
    const auto axis = [&](MeshAxis wanted) {
        return std::find(parallel.order.begin(), parallel.order.end(), wanted);
    };
    const bool apart = shards && axis(MeshAxis::cp) < axis(MeshAxis::dp);
    const int divided = (shards ? job_.fsdp.shard_group : job_.data_ranks()) * (apart ? 1 : parallel.context);
    int nearest = ranks;
    while (experts % nearest != 0 || divided % nearest != 0) --nearest;
    const auto wrong = [&](const std::string& other, const std::string& what) {
        refuse("parallel.expert", other,
               fmt::format("{}; the nearest number of ranks that works is {}", what, nearest));
    };
    if (experts % ranks != 0) {
        wrong("model.experts", fmt::format("{} experts cannot be divided among {} ranks", experts, ranks));
    }
    if (divided % ranks != 0) {
        wrong(shards ? "fsdp.shard_group" : "run.ranks",
              fmt::format("{} ranks {} cannot be cut into groups of {}", divided,
                          shards ? "of a shard group" : "that have other tokens", ranks));
    }
    if (job_.parallel.mode == ParallelMode::ddp && job_.ddp.shard_optimizer) {
        refuse("parallel.expert", "ddp.shard_optimizer",
               "a sharded optimizer keeps all parameters in one buffer, of which experts would be on fewer "
               "ranks; "
               "set ddp.shard_optimizer to false, or parallel.mode to \"fsdp\"");
    }
}

// Resolves "auto". Heads with more features than the fused kernels hold in a GPU's registers need "plain".
void Checks::attention() {
    ModelSection& model = job_.model;
    if (!has_tokens(model.type)) {
        if (model.attention != AttentionKind::automatic) {
            refuse("model.attention", "model.type", "an mlp has none; omit the key or set model.type");
        }
        return;
    }
    const int head_width = model.width / model.heads;
    // Partial results are merged by the sums that fused attention keeps. A context group's attention has
    // kernels of its own, without the limits below.
    if (job_.parallel.context > 1) {
        if (model.attention == AttentionKind::plain)
            refuse(
                "model.attention", "parallel.context",
                "the ranks of a context group merge what fused attention keeps; set it to \"fused\", or omit "
                "the key");
        model.attention = AttentionKind::fused;
        return;
    }
    if (model.attention == AttentionKind::automatic && job_.run.device != DeviceKind::sim)
        model.attention = automatic_attention(model, job_.run.device == DeviceKind::cuda);
    if (model.attention == AttentionKind::fused && model.type == ModelType::bert &&
        job_.run.device == DeviceKind::cuda) {
        refuse("model.attention", "model.type",
               "on a GPU \"fused\" is causal, and a bert is bidirectional; set it to \"plain\"");
    }
    if (model.attention == AttentionKind::fused && head_width > kMostFusedHeadWidth) {
        refuse(
            "model.attention", "model.heads",
            fmt::format(
                "\"fused\" supports heads of up to {} features, not {}; set it to \"plain\" or choose more "
                "heads",
                kMostFusedHeadWidth, head_width));
    }
}

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

void Checks::data() const {
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
    if (!text && job_.data.validation > 0) {
        refuse("data.validation", "data.type", "only \"text\" can be held out; omit the key");
    }
    if (job_.train.validate_every > 0 && job_.data.validation == 0) {
        refuse("train.validate_every", "data.validation",
               "nothing is held out to validate on; set data.validation, 0.1 for a tenth of the text");
    }
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

void Checks::precision() {
    PrecisionSection& precision = job_.precision;
    if (!given("precision.reduce")) precision.reduce = precision.param;
    if (!given("precision.buffer")) precision.buffer = precision.param;
    if (precision.tf32 && job_.run.device == DeviceKind::cpu) {
        refuse("precision.tf32", "run.device",
               "TF32 exists only on a GPU; set run.device to \"cuda\" or omit the key");
    }
    if (job_.parallel.mode == ParallelMode::fsdp) return;
    for (const auto& [key, value] :
         {std::pair{"precision.param", precision.param}, std::pair{"precision.reduce", precision.reduce}}) {
        if (value == Precision::fp32) continue;
        refuse(key, "parallel.mode",
               "\"bf16\" needs the fp32 shards of FSDP; set parallel.mode to \"fsdp\", or the key to "
               "\"fp32\"");
    }
}

void Checks::optimizer() {
    OptimizerSection& optimizer = job_.optimizer;
    const OptimizerType type = optimizer.type;
    const bool decoupled = type == OptimizerType::adamw || type == OptimizerType::lamb;
    if (decoupled && !given("optimizer.weight_decay")) optimizer.weight_decay = 0.01;
    if (type == OptimizerType::lamb && !given("optimizer.eps")) optimizer.eps = 1e-6;
    if (type == OptimizerType::lars && !given("optimizer.momentum")) optimizer.momentum = 0.9;
    if (job_.parallel.expert > 1 && (type == OptimizerType::lars || type == OptimizerType::lamb)) {
        refuse(
            "optimizer.type", "parallel.expert",
            "lars and lamb need the norm of a whole parameter, which an expert group cuts; choose adamw or "
            "sgd, or set parallel.expert to 1");
    }
    if (optimizer.nesterov && type != OptimizerType::sgd && type != OptimizerType::lars) {
        refuse("optimizer.nesterov", "optimizer.type", "only sgd and lars have momentum of this kind");
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
}

void Checks::rest() const {
    if (job_.checkpoint.every > 0 && job_.checkpoint.save.empty()) {
        refuse("checkpoint.every", "checkpoint.save",
               "there is nowhere to save; set checkpoint.save to a folder");
    }
}

}  // namespace

AttentionKind automatic_attention(const ModelSection& model, bool on_gpu) {
    if (!has_tokens(model.type)) return AttentionKind::automatic;
    const bool fused =
        on_gpu && model.type != ModelType::bert && model.width / model.heads <= kMostFusedHeadWidth;
    return fused ? AttentionKind::fused : AttentionKind::plain;
}

void finish(Job& job, const std::string& file, const Origins& origins) {
    Checks(job, file, origins).run();
}

}  // namespace shardscope::trainer::job
