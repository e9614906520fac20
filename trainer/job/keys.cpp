// The table of keys, and what is derived from its rows.
#include "trainer/job/keys.h"

#include <algorithm>
#include <array>
#include <concepts>
#include <type_traits>

#include <fmt/core.h>

#include "traces/schema/joined.h"
#include "trainer/job/nearest.h"
#include "trainer/job/strategy.h"

namespace shardscope::trainer::job {

namespace {

constexpr double kMaxInteger = 9007199254740992.0;  // 2^53: every integer up to this is a double

// Makes the keys of one section of the job.
template <class S>
class KeysOf {
  public:
    KeysOf(std::string_view section, S Job::*in) : section_(section), in_(in) {}

    // `read` converts the key's value to the field's, `write` the reverse.
    template <class Field, class Read, class Write>
    Key key(std::string_view name, ValueType type, Field S::*field, Read read, Write write,
            std::string_view help) const {
        Key made;
        made.section = section_;
        made.name = name;
        made.type = type;
        made.help = help;
        made.set = [in = in_, field, read](Job& job, const Value& v) { job.*in.*field = read(v); };
        made.get = [in = in_, field, write](const Job& job) { return Value(write(job.*in.*field)); };
        return made;
    }
    template <std::integral Field>
    Key integer(std::string_view name, Field S::*field, double low, double high,
                std::string_view help) const {
        return between(key(
                           name, ValueType::integer, field,
                           [](const Value& v) { return static_cast<Field>(std::get<std::int64_t>(v)); },
                           [](Field value) { return std::int64_t{value}; }, help),
                       low, high);
    }
    Key number(std::string_view name, double S::*field, double low, double high,
               std::string_view help) const {
        return between(plain(name, ValueType::number, field, help), low, high);
    }
    Key boolean(std::string_view name, bool S::*field, std::string_view help) const {
        return plain(name, ValueType::boolean, field, help);
    }
    Key text(std::string_view name, std::string S::*field, std::string_view help) const {
        return plain(name, ValueType::text, field, help);
    }
    // `choices` in the order of the enum.
    template <class Enum>
    requires std::is_enum_v<Enum> Key choice(std::string_view name, Enum S::*field,
                                             std::vector<std::string_view> choices, std::string_view help)
    const {
        const auto read = [choices](const Value& v) {
            const auto place = std::find(choices.begin(), choices.end(), std::get<std::string>(v));
            return static_cast<Enum>(place - choices.begin());
        };
        const auto write = [choices](Enum value) {
            return std::string(choices[static_cast<std::size_t>(value)]);
        };
        Key made = key(name, ValueType::text, field, read, write, help);
        made.choices = std::move(choices);
        return made;
    }
    // Text in a format of its own, which `parse` reads and to_text() writes.
    template <class Field>
    Key parsed(std::string_view name, Field S::*field, Field (*parse)(const std::string&),
               std::string_view help) const {
        return key(
            name, ValueType::text, field, [parse](const Value& v) { return parse(std::get<std::string>(v)); },
            [](const Field& value) { return to_text(value); }, help);
    }

  private:
    // A field whose type is that of the value.
    template <class Field>
    Key plain(std::string_view name, ValueType type, Field S::*field, std::string_view help) const {
        return key(
            name, type, field, [](const Value& v) { return std::get<Field>(v); },
            [](const Field& value) { return value; }, help);
    }
    static Key between(Key key, double low, double high) {
        key.low = low;
        key.high = high;
        return key;
    }

    std::string_view section_;
    S Job::*in_;
};

std::vector<std::string_view> strategy_names() {
    std::vector<std::string_view> names;
    names.reserve(kStrategies.size());
    for (const StrategyTraits& strategy : kStrategies) names.push_back(strategy.name);
    return names;
}

Key counts(Key key) {
    key.counts = true;
    return key;
}
Key own(Key key) {
    key.own = true;
    return key;
}
// A path whose presence decides what the ranks do together.
Key own_path(Key key) {
    key.own = key.all_or_none = true;
    return key;
}

Key milestones_key(const KeysOf<OptimizerSection>& optimizer) {
    using Steps = std::vector<std::int64_t>;
    Key key = optimizer.key(
        "milestones", ValueType::numbers, &OptimizerSection::milestones,
        [](const Value& v) {
            Steps steps;
            for (const double step : std::get<std::vector<double>>(v))
                steps.push_back(static_cast<std::int64_t>(step));
            return steps;
        },
        [](const Steps& steps) { return std::vector<double>(steps.begin(), steps.end()); },
        "step: steps at which the learning rate is multiplied by gamma");
    key.low = 1;
    key.high = 1e9;
    return key;
}

Key betas_key(const KeysOf<OptimizerSection>& optimizer) {
    using Betas = std::array<double, 2>;
    Key key = optimizer.key(
        "betas", ValueType::numbers, &OptimizerSection::betas,
        [](const Value& v) {
            const auto& numbers = std::get<std::vector<double>>(v);
            return Betas{numbers[0], numbers[1]};
        },
        [](const Betas& betas) { return std::vector<double>(betas.begin(), betas.end()); },
        "adam, adamw, lamb, novograd: decay of the first and second moment; novograd: [0.95, 0.98] unless "
        "given");
    key.low = 0;
    key.high = 1;
    key.high_open = true;
    key.count = 2;
    return key;
}

// One number for each of red, green and blue.
Key channels_key(const KeysOf<DataSection>& data, std::string_view name,
                 std::array<double, kImageChannels> DataSection::*field, double low, std::string_view help) {
    using Channels = std::array<double, kImageChannels>;
    Key key = data.key(
        name, ValueType::numbers, field,
        [](const Value& v) {
            const auto& numbers = std::get<std::vector<double>>(v);
            return Channels{numbers[0], numbers[1], numbers[2]};
        },
        [](const Channels& channels) { return std::vector<double>(channels.begin(), channels.end()); }, help);
    key.low = low;
    key.high = 1;
    key.count = kImageChannels;
    return key;
}

std::vector<Key> make_keys() {
    const KeysOf run("run", &Job::run);
    const KeysOf model("model", &Job::model);
    const KeysOf data("data", &Job::data);
    const KeysOf parallel("parallel", &Job::parallel);
    const KeysOf fsdp("fsdp", &Job::fsdp);
    const KeysOf ddp("ddp", &Job::ddp);
    const KeysOf train("train", &Job::train);
    const KeysOf precision("precision", &Job::precision);
    const KeysOf memory("memory", &Job::memory);
    const KeysOf optimizer("optimizer", &Job::optimizer);
    const KeysOf checkpoint("checkpoint", &Job::checkpoint);
    const KeysOf sim("sim", &Job::sim);
    return {
        run.integer("steps", &RunSection::steps, 1, kMostSteps, "optimizer steps; or give train.epochs"),
        run.integer("seed", &RunSection::seed, 0, kMaxInteger, "seed of the weights and the samples"),
        run.integer(
            "ranks", &RunSection::ranks, 1, 65536,
            "ranks: threads of this process or, with run.processes or under a launcher, processes (up to "
            "256); any number of simulated ones"),
        run.integer(
            "processes", &RunSection::processes, 0, 256,
            "start this many processes of one rank each on this machine; 0: ranks are threads. mpirun, srun "
            "and torchrun start them themselves"),
        run.integer(
            "ranks_per_device", &RunSection::ranks_per_device, 1, 1024,
            "this many consecutive ranks share a device: a simulated one, a GPU, or on the cpu device the "
            "cores that each process would otherwise have alone"),
        run.choice(
            "device", &RunSection::device, {"cpu", "cuda", "sim"},
            "what executes the job: this machine's processor, its NVIDIA GPUs, or none: sim predicts time "
            "and memory on sim.cluster"),
        run.choice("comm", &RunSection::comm, {"auto", "local", "mpi", "gloo", "tcp", "nccl"},
                   "collectives: local (ranks are threads, and may share a GPU); between processes mpi, gloo "
                   "or tcp; "
                   "nccl (a GPU for each rank); auto: what fits the launcher and the device"),
        run.choice("sums", &RunSection::sums, {"ordered", "ring"},
                   "mpi, gloo, tcp: sums in the order of ranks, with the bits of local, or along a ring"),
        own(run.number(
            "timeout", &RunSection::timeout, 0, 1e6,
            "seconds after which a collective that does not end, on a GPU or between processes, or a "
            "process that does not respond ends the job"
            "; 0: never")),
        own(run.integer("workers", &RunSection::workers, 0, 1024,
                        "threads that do the ranks' work on the cpu device; 0: one per core")),
        run.integer("blas_threads", &RunSection::blas_threads, 1, 1024,
                    "threads inside one matmul of the cpu device"),
        own(run.integer("memory_limit", &RunSection::memory_limit, 0, kMaxInteger,
                        "bytes of device memory that a rank may allocate; 0: no limit")),
        own(run.integer(
            "memory_reserve", &RunSection::memory_reserve, -1, kMaxInteger,
            "bytes of a simulated device that are not the allocator's: the CUDA context, NCCL; -1: "
            "the value in sim.cluster")),
        own_path(run.text("trace", &RunSection::trace, "write the trace here (as --trace); empty: none")),
        own(run.text(
            "trace_parts", &RunSection::trace_parts,
            "folder where each process records its part of the trace, on its own host; empty: next to "
            "run.trace")),
        own(run.boolean("overwrite", &RunSection::overwrite, "replace an existing trace (as --overwrite)")),
        own(run.boolean(
            "counters", &RunSection::counters,
            "sample processes, host, GPUs and network adapters ten times a second, into the trace")),

        model.choice(
            "type", &ModelSection::type, {"mlp", "gpt", "llama", "bert", "resnet", "vgg", "vit"},
            "mlp: Linear layers with an activation between; gpt, llama: language models; bert: an "
            "encoder that fills gaps; resnet, vgg, vit: networks for images, which model.name chooses"),
        model.text("name", &ModelSection::name,
                   "a published shape, such as gpt2, llama-8b, resnet50 or vit_b_16; other keys of [model] "
                   "replace its "
                   "values"),
        model.integer("width", &ModelSection::width, 1, 65536,
                      "features of a layer; resnet, vgg: channels of its first stage"),
        model.integer("layers", &ModelSection::layers, 1, 4096,
                      "mlp: Linear layers; gpt, llama, bert, vit: blocks"),
        model.boolean("bias", &ModelSection::bias, "mlp: Linear layers have a bias"),
        model.integer("heads", &ModelSection::heads, 1, 4096, "gpt, llama, bert, vit: attention heads"),
        model.integer("kv_heads", &ModelSection::kv_heads, 0, 4096,
                      "llama: heads of keys and values; 0: as many as heads"),
        model.integer("context", &ModelSection::context, 1, 1 << 20, "gpt, llama, bert: tokens of a sample"),
        model.integer(
            "vocabulary", &ModelSection::vocabulary, 0, 1000000,
            "gpt, llama, bert: tokens; 0: the 256 bytes; more: byte pairs, learned from the text; bert: "
            "and the "
            "mask, which is the last"),
        model.number("dropout", &ModelSection::dropout, 0, 0.99,
                     "gpt, llama, bert, vgg, vit: share of activations set to 0 in training"),
        model.boolean("tied_embeddings", &ModelSection::tied_embeddings,
                      "gpt, llama, bert: the head uses the token embedding's weight"),
        model.choice(
            "activation", &ModelSection::activation,
            {std::begin(kernels::kActivationNames), std::end(kernels::kActivationNames)},
            "mlp, gpt, bert: the function between two matmuls; gelu is its tanh form, squared_relu is "
            "max(x, 0)^2; auto: relu in an mlp, gelu in the others"),
        model.boolean("fused_activation", &ModelSection::fused_activation,
                      "mlp, gpt, bert: the matmul before a ReLU or GELU also computes the activation, in one "
                      "kernel"),
        model.choice(
            "attention", &ModelSection::attention, {"auto", "plain", "fused"},
            "gpt, llama, bert: plain keeps the probabilities of every pair of tokens, fused computes them "
            "again; "
            "auto: fused on a GPU (bert: plain), plain on the CPU"),

        model.integer("experts", &ModelSection::experts, 0, 1024,
                      "gpt, llama: feed-forward parts of a block, of which a router chooses some for each "
                      "token; 0: one, without a router"),
        model.integer("experts_per_token", &ModelSection::experts_per_token, 1, 64,
                      "experts that each token uses"),
        model.number("capacity_factor", &ModelSection::capacity_factor, 0, 1024,
                     "an expert takes this many times the mean number of tokens, and drops later ones; 0: it "
                     "takes all"),
        model.number("balance_loss", &ModelSection::balance_loss, 0, 1e6,
                     "coefficient of the loss that balances the experts; it acts on gradients, and is not in "
                     "the losses that are reported"),

        data.choice(
            "type", &DataSection::type, {"synthetic", "text", "images"},
            "synthetic: made from the seed (mlp); text: from data.path (gpt, llama, bert); images: from "
            "data.path, or without it made from the seed (resnet, vgg, vit)"),
        own(data.text(
            "path", &DataSection::path,
            "text: a file, or a folder of files; images: a folder with a folder of PNG and JPEG files for "
            "each class, or a file or folder of CIFAR or MNIST")),
        data.integer("batch", &DataSection::batch, 1, 1048576, "samples per rank and micro-batch"),
        own(data.integer("workers", &DataSection::workers, 0, 64,
                         "threads per rank that prepare batches ahead; 0: the rank prepares them")),
        data.number("validation", &DataSection::validation, 0, 0.5,
                    "text, images: share that is held out to validate on: the end of a text, some images"),
        own(data.text("validation_path", &DataSection::validation_path,
                      "images: a file or folder, as data.path, that is only validated on")),
        data.number("test", &DataSection::test, 0, 0.5,
                    "text, images: share that is held out to test on when training has ended: the very end "
                    "of a text, some images"),
        own(data.text("test_path", &DataSection::test_path,
                      "images: a file or folder, as data.path, that is only tested on")),
        data.integer("image", &DataSection::image, 1, 4096, "images: pixels of a side"),
        data.integer("classes", &DataSection::classes, 2, 1000000, "images: classes of the labels"),
        data.integer("resize", &DataSection::resize, 0, 8192,
                     "images: pixels of the shorter side before the crop; 0: those of data.image"),
        data.choice("crop", &DataSection::crop, {"center", "random", "resized"},
                    "images to train on: their middle, a random place, or a random part in a random size; "
                    "validation uses the middle"),
        data.integer("padding", &DataSection::padding, 0, 1024,
                     "images, crop random: black pixels added at each border before the crop"),
        data.boolean("flip", &DataSection::flip, "images: mirror half of those to train on"),
        own(data.integer("cache", &DataSection::cache, 0, 1 << 24,
                         "images: MiB of decoded PNG and JPEG files that each process keeps in memory")),
        channels_key(data, "mean", &DataSection::mean, 0,
                     "images: of red, green and blue as numbers from 0 to 1; it is subtracted"),
        channels_key(data, "std", &DataSection::deviation, 1e-3,
                     "images: deviation of red, green and blue; what is left is divided by it"),

        parallel.choice(
            "mode", &ParallelSection::mode, {"fsdp", "ddp", "none", "server"},
            "fsdp: parameters sharded; ddp: replicated; none: one rank; server: the last ranks hold "
            "parameters and optimizer for the others"),
        parallel.integer("servers", &ParallelSection::servers, 1, 64,
                         "server: ranks that hold the parameters, in equal parts; the others work"),
        parallel.integer("tensor", &ParallelSection::tensor, 1, 1024,
                         "ranks that share each layer's matmuls and heads (Megatron's tensor parallelism)"),
        parallel.boolean(
            "sequence", &ParallelSection::sequence,
            "these ranks also divide the tokens in norms, dropout and residuals (sequence parallelism)"),
        parallel.boolean("sync_batch_norm", &ParallelSection::sync_batch_norm,
                         "resnet: batch norms use the mean and variance of all ranks' images "
                         "(SyncBatchNorm)"),
        parallel.integer("context", &ParallelSection::context, 1, 1024,
                         "ranks that divide the tokens of each sequence (context parallelism)"),
        parallel.choice(
            "context_exchange", &ParallelSection::context_exchange, {"allgather", "ring"},
            "how they see each other's keys and values: allgather keeps those of all, ring passes "
            "them on from rank to rank while it computes (ring attention)"),
        parallel.integer("pipeline", &ParallelSection::pipeline, 1, 1024,
                         "places of a pipeline: each has some of the layers, and train.accumulation "
                         "micro-batches pass through all"),
        parallel.text("schedule", &ParallelSection::schedule,
                      "the order of their forwards and backwards: a name that the verb schedule lists, or "
                      "FILE.csv with the actions of each place"),
        parallel.integer("virtual_stages", &ParallelSection::virtual_stages, 1, 64,
                         "stages of each place; the schedule says how many it takes"),
        parallel.parsed(
            "order", &ParallelSection::order, parse_order,
            "the axes of the ranks, outermost first: pp (pipeline), dp (data, shard groups inside), cp "
            "(context), ep (expert, the inner part of dp and cp; may be omitted) and tp (tensor)"),
        parallel.text(
            "stages", &ParallelSection::stages,
            "the layers of each stage: blocks (as many in each), cost (as equal FLOPs as possible), "
            "or the first layer of each stage but the first, as blocks.3,blocks.6"),

        parallel.integer(
            "expert", &ParallelSection::expert, 1, 1024,
            "ranks that divide the experts of each block, among those that read different samples; "
            "all_to_all takes tokens there and back"),

        fsdp.choice(
            "sharding_strategy", &FsdpSection::sharding_strategy, strategy_names(),
            "what is sharded, as PyTorch names it; ZERO_3 is FULL_SHARD, ZERO_2 SHARD_GRAD_OP, ZERO_1 ddp "
            "with ddp.shard_optimizer"),
        fsdp.parsed(
            "wrap", &FsdpSection::wrap, parse_wrap,
            "which modules are units: root, module:NAME[,NAME] (by class), size:N (parameters), "
            "path:PATTERN[,PATTERN] (blocks.*.feed_forward), every:K,NAME[,NAME] (one of K of a class)"),
        fsdp.parsed(
            "exclude", &FsdpSection::exclude, parse_modules,
            "modules that are not units although fsdp.wrap chooses them: none, module:, path: or every:"),
        fsdp.parsed("unit", &FsdpSection::unit, parse_unit_rules,
                    "units that are freed after the forward (path:blocks.*=true) or kept until the backward "
                    "(=false), whatever the strategy says; also as [[fsdp.unit]]"),
        fsdp.choice(
            "reshard_after_forward", &FsdpSection::reshard_after_forward, {"auto", "true", "false"},
            "as fully_shard has it: auto: as the strategy says, and the root stays; true: the root is "
            "freed, too; false: none is"),
        fsdp.choice(
            "layout", &FsdpSection::layout, {"fsdp1", "fsdp2", "lean"},
            "buffers of a unit: as FullyShardedDataParallel has them, as fully_shard has them, or lean: "
            "gradients are written directly into the buffer that is reduced"),
        fsdp.integer("shard_group", &FsdpSection::shard_group, 0, 65536,
                     "HYBRID_SHARD: ranks that shard among themselves; groups replicate"),
        fsdp.boolean("cpu_offload", &FsdpSection::cpu_offload,
                     "parameters, gradients and optimizer are on the host"),
        fsdp.boolean("forward_prefetch", &FsdpSection::forward_prefetch,
                     "gather the next unit before this unit's forward"),
        fsdp.choice(
            "backward_prefetch", &FsdpSection::backward_prefetch, {"BACKWARD_PRE", "BACKWARD_POST", "NONE"},
            "gather the next unit before (PRE) or after (POST) this unit's gradients, or when needed"),
        fsdp.boolean("limit_all_gathers", &FsdpSection::limit_all_gathers,
                     "the host waits before it gathers a third unit; fsdp2 has no such limit"),
        fsdp.boolean("sync_module_states", &FsdpSection::sync_module_states,
                     "broadcast the weights of rank 0 at the start"),

        ddp.number("bucket_cap_mb", &DdpSection::bucket_cap_mb, 1e-3, 1e6,
                   "gradient bytes reduced together, MiB"),
        ddp.number("first_bucket_mb", &DdpSection::first_bucket_mb, 1e-3, 1e6,
                   "the same for the first bucket"),
        ddp.boolean("gradient_as_bucket_view", &DdpSection::gradient_as_bucket_view,
                    "gradients are views of the buckets"),
        ddp.boolean("static_graph", &DdpSection::static_graph,
                    "the first step reduces after its backward, as the order is only then known"),
        ddp.boolean("shard_optimizer", &DdpSection::shard_optimizer,
                    "each rank keeps and updates its part of the optimizer state (ZeRO stage 1)"),
        ddp.boolean("broadcast_buffers", &DdpSection::broadcast_buffers,
                    "resnet: before each forward that follows a reduction, all ranks get the running "
                    "statistics of the "
                    "first one"),
        ddp.parsed(
            "comm_hook", &DdpSection::comm_hook, parse_comm_hook,
            "what compresses the gradients of a bucket before they are reduced: none; bf16, fp16: half "
            "of the bits; powersgd:R: matrices of rank R; topk:F: the largest of them, a share F"),
        ddp.integer("comm_hook_start", &DdpSection::comm_hook_start, 2, 1'000'000,
                    "powersgd, topk: so many steps of a run are reduced whole before the first that is "
                    "compressed; buckets change until step 2 (PyTorch's start_powerSGD_iter is 1000)"),
        ddp.number("orthogonalization_epsilon", &DdpSection::orthogonalization_epsilon, 0, 1,
                   "powersgd: added to the norm by which a column is divided; a column of zeros stays zero"),

        train.integer("epochs", &TrainSection::epochs, 0, kMostSteps,
                      "text, images: how often each sample is trained on; run.steps follows from it; 0: "
                      "run.steps says how long"),
        train.integer("accumulation", &TrainSection::accumulation, 1, 65536, "micro-batches per step"),
        train.boolean("accumulation_sync", &TrainSection::accumulation_sync,
                      "reduce gradients after every micro-batch; false: after the last one (no_sync)"),
        train.number("clip_norm", &TrainSection::clip_norm, 0, 1e9,
                     "largest norm of all gradients together; 0: not clipped"),
        train.integer(
            "local_steps", &TrainSection::local_steps, 0, kMostSteps,
            "ddp: local SGD; ranks take so many steps with gradients of their own, then the mean of "
            "their parameters; 0: the mean of gradients in each step"),
        train.integer(
            "staleness", &TrainSection::staleness, -1, 63,
            "server: 0: the mean of all workers' gradients in each step; > 0: each gradient by itself, "
            "with workers at most so many steps ahead of the slowest; -1: without a bound"),
        train.number(
            "outer_lr", &TrainSection::outer_lr, 1e-6, 1e3,
            "local_steps: share of the way from the last mean to the next that is taken (DiLoCo: 0.7)"),
        train.number("outer_momentum", &TrainSection::outer_momentum, 0, 1,
                     "local_steps: Nesterov momentum of the means (DiLoCo: 0.9); 0: none is kept"),
        train.boolean(
            "gradient_norm", &TrainSection::gradient_norm,
            "report the norm of all gradients together as a metric; train.clip_norm reports it anyway"),
        counts(train.parsed("validate_every", &TrainSection::validate_every, parse_every,
                            "steps, or epochs, between validations; 0: at the end only (with "
                            "data.validation)")),
        train.parsed("freeze", &TrainSection::freeze, parse_modules,
                     "modules whose parameters are not trained: none, module:NAME[,NAME], path: or every:"),
        train.number("label_smoothing", &TrainSection::label_smoothing, 0, 0.99,
                     "images: share of the target that all classes get in equal parts"),
        train.number("diverged_above", &TrainSection::diverged_above, 0, 1e9,
                     "a run has diverged if at least its last three losses are above this many times its "
                     "first loss; 0: only if a loss is not finite"),

        precision.choice("param", &PrecisionSection::param, {"fp32", "bf16", "fp16"},
                         "of gathered parameters and activations; shards stay fp32"),
        precision.choice("reduce", &PrecisionSection::reduce, {"fp32", "bf16", "fp16"},
                         "of gradients while they are reduced; follows precision.param unless it is given"),
        precision.choice(
            "buffer", &PrecisionSection::buffer, {"fp32", "bf16", "fp16"},
            "of tables that are not parameters (llama: rotary); follows precision.param unless it is given"),
        precision.boolean(
            "tf32", &PrecisionSection::tf32,
            "on a GPU: matmuls of fp32 in TF32, which rounds their operands to 10 bits of fraction"),
        precision.number("loss_scale", &PrecisionSection::loss_scale, 0, 1e38,
                         "fp16: factor of the loss whose gradients are computed; 0: dynamic (scale_rule)"),
        precision.choice(
            "scale_rule", &PrecisionSection::scale_rule, {"torch", "deepspeed"},
            "dynamic loss scale: torch halves it at an overflow and doubles it after growth_interval steps "
            "without one; deepspeed has hysteresis and a minimum, too"),
        precision.number("initial_scale", &PrecisionSection::initial_scale, 1e-30, 1e38,
                         "dynamic loss scale of the first step"),
        precision.integer(
            "growth_interval", &PrecisionSection::growth_interval, 1, 1e9,
            "steps without overflow after which the scale doubles; deepspeed: 1000 unless given"),
        precision.integer("hysteresis", &PrecisionSection::hysteresis, 1, 1000,
                          "deepspeed: overflows until the scale is halved; the next ones halve it at once"),
        precision.number("min_scale", &PrecisionSection::min_scale, 1e-30, 1e38,
                         "deepspeed: smallest loss scale; an overflow at it ends the run"),

        memory.parsed("activation_checkpointing", &MemorySection::activation_checkpointing, parse_modules,
                      "modules whose activations are recomputed: none, module:NAME[,NAME], path: or every:"),
        memory.parsed(
            "offload", &MemorySection::offload, parse_offload,
            "host memory holds the optimizer (its state, and the parameters that it updates there), "
            "activations (until their backward), or both: none, optimizer, activations, "
            "optimizer+activations"),
        own_path(
            memory.text("nvme", &MemorySection::nvme,
                        "folder of files, on a fast disk, for the parameters and the state that the host's "
                        "optimizer updates (memory.offload, fsdp.cpu_offload); empty: they stay in memory")),
        memory.integer("gemm_workspace_bytes", &MemorySection::gemm_workspace_bytes, 0, 1e12,
                       "bytes of the workspace of each of the two matmul handles (forward, backward)"),

        optimizer.choice(
            "type", &OptimizerSection::type,
            {"sgd", "adam", "adamw", "lars", "lamb", "novograd", "onebit_adam", "onebit_lamb"},
            "update rule; onebit_adam, onebit_lamb: adam and lamb until freeze_step, then ranks exchange "
            "the signs of their momentum"),
        optimizer.number("lr", &OptimizerSection::lr, 0, 1e3, "learning rate"),
        optimizer.number("momentum", &OptimizerSection::momentum, 0, 1,
                         "sgd, lars: 0 keeps no momentum buffer; lars: 0.9 unless given"),
        optimizer.boolean("nesterov", &OptimizerSection::nesterov, "sgd, lars: Nesterov momentum"),
        betas_key(optimizer),
        optimizer.number(
            "eps", &OptimizerSection::eps, 1e-30, 1,
            "adam, adamw, lamb, novograd: added to the root of the second moment; lamb: 1e-6 unless given"),
        optimizer.number(
            "weight_decay", &OptimizerSection::weight_decay, 0, 1e3,
            "sgd, adam, lars: added to the gradient; novograd: to the normalized gradient; adamw, lamb: "
            "decoupled, 0.01 unless given; onebit_adam: decoupled"),
        optimizer.number("trust_coefficient", &OptimizerSection::trust_coefficient, 1e-9, 1e3,
                         "lars: the local rate is this times |w| / (|g| + weight_decay |w|)"),
        optimizer.integer(
            "freeze_step", &OptimizerSection::freeze_step, 0, kMostSteps,
            "onebit_adam, onebit_lamb: steps of adam or lamb before the variance is frozen and the "
            "momentum compressed"),
        optimizer.choice(
            "lr_scaling", &OptimizerSection::lr_scaling, {"none", "linear", "sqrt"},
            "multiply the rate by the samples of a step over optimizer.lr_batch, or by the root of that"),
        optimizer.integer("lr_batch", &OptimizerSection::lr_batch, 0, 1e12,
                          "samples of a step, of all ranks, that optimizer.lr is for; 0: data.batch"),
        optimizer.integer("warmup_steps", &OptimizerSection::warmup_steps, 0, 1e9,
                          "steps before the scaled rate is reached"),
        optimizer.choice(
            "warmup", &OptimizerSection::warmup, {"gradual", "constant"},
            "for warmup_steps, rise evenly from the unscaled rate (from 0 without lr_scaling), or stay at "
            "it"),
        optimizer.choice("schedule", &OptimizerSection::schedule,
                         {"constant", "step", "cosine", "polynomial"}, "after the warm-up"),
        milestones_key(optimizer),
        optimizer.number("gamma", &OptimizerSection::gamma, 1e-9, 1, "step: factor at each milestone"),
        optimizer.number("power", &OptimizerSection::power, 0.1, 100,
                         "polynomial: power of the share of the steps that is left; 1: a straight line"),

        own_path(
            checkpoint.text("save", &CheckpointSection::save, "folder to save checkpoints in; empty: none")),
        own_path(checkpoint.text("load", &CheckpointSection::load,
                                 "folder of the checkpoint to continue from; empty: none")),
        own_path(checkpoint.text("initial_load", &CheckpointSection::initial_load,
                                 "folder or .safetensors file of the parameters that training starts with, "
                                 "at step 0 with a new optimizer; empty: none")),
        counts(checkpoint.parsed("every", &CheckpointSection::every, parse_every,
                                 "steps, or epochs, between checkpoints; 0: only at the end and at a stop")),
        checkpoint.parsed("keep", &CheckpointSection::keep, parse_kept,
                          "which checkpoints stay after a save: all of them; \"last:2\" keeps the last 2; "
                          "\"best\" keeps the one with the lowest validation loss, and the last"),
        checkpoint.choice(
            "format", &CheckpointSection::format, {"sharded", "full", "safetensors", "dcp"},
            "a file per rank, one file with everything, or files that others read: safetensors, or "
            "PyTorch's distributed checkpoint"),
        checkpoint.choice("names", &CheckpointSection::names, {"modules", "huggingface"},
                          "safetensors: name the tensors after the job's modules, or as transformers has a "
                          "gpt (GPT-2), llama or bert"),

        sim.text("cluster", &SimSection::cluster,
                 "cost model: laptop, a100, h100_ib, h200_nvlink, v100_pcie, or the path of a .toml file"),
        sim.parsed("slow_rank", &SimSection::slow_ranks, parse_slow_ranks,
                   "none, or RANK:FACTOR[,RANK:FACTOR]: ranks whose kernels take so many times as long"),
        sim.parsed("slow_link", &SimSection::slow_links, parse_slow_links,
                   "none, or inter:SHARE, intra:SHARE, inter@NODE:SHARE: links that have a share of their "
                   "bandwidth left"),
        sim.integer("trace_ranks", &SimSection::trace_ranks, 1, 1024,
                    "ranks that a trace shows, from rank 0 on, plus one of each kind that is not among them"),
    };
}

std::string number_text(double number) {
    if (number == static_cast<double>(static_cast<std::int64_t>(number))) {
        return fmt::format("{}", static_cast<std::int64_t>(number));
    }
    return fmt::format("{}", number);
}

bool in_range(const Key& key, double number) {
    return number >= key.low && (key.high_open ? number < key.high : number <= key.high);  // false for NaN
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates) {
    const std::string_view guess = nearest(word, candidates);
    return guess.empty() ? std::string{} : fmt::format("did you mean {}?", guess);
}

std::vector<std::string_view> key_names(std::string_view section) {
    std::vector<std::string_view> names;
    for (const Key& key : keys()) {
        if (key.section == section) names.push_back(key.name);
    }
    return names;
}

}  // namespace

std::span<const Section> sections() {
    static constexpr Section kSections[] = {
        {"run", "the run itself"},
        {"model", "what is trained"},
        {"data", "what it is trained on"},
        {"parallel", "how ranks share the work"},
        {"fsdp", "with parallel.mode fsdp"},
        {"ddp", "with parallel.mode ddp"},
        {"train", "the training step"},
        {"precision", "element types"},
        {"memory", "recomputation and workspaces"},
        {"optimizer", "how parameters are updated"},
        {"checkpoint", "saving and continuing"},
        {"sim", "with run.device sim: the cluster that is simulated"},
    };
    return kSections;
}

std::span<const Key> keys() {
    static const std::vector<Key> table = make_keys();
    return table;
}

std::string Key::full_name() const {
    return fmt::format("{}.{}", section, name);
}

const Key* find_key(std::string_view section, std::string_view name) {
    const auto table = keys();
    const auto found = std::find_if(table.begin(), table.end(), [&](const Key& key) {
        return key.section == section && key.name == name;
    });
    return found == table.end() ? nullptr : &*found;
}

const Key* find_key(std::string_view full_name) {
    const auto dot = full_name.find('.');
    if (dot == full_name.npos) return nullptr;
    return find_key(full_name.substr(0, dot), full_name.substr(dot + 1));
}

std::string text_of(const Job& job, std::string_view full_name) {
    return to_text(find_key(full_name)->get(job));
}

std::string toml_of(const Key& key, const Value& value) {
    std::string text = to_text(value);
    if (key.type != ValueType::text) return text;
    return key.counts && text.find(' ') == std::string::npos ? text : toml_text(text);
}

std::string allowed(const Key& key) {
    switch (key.type) {
        case ValueType::boolean:
            return "true or false";
        case ValueType::integer:
        case ValueType::number:
            return fmt::format("{} to {}", number_text(key.low), number_text(key.high));
        case ValueType::numbers:
            return fmt::format("{} numbers from {} to {} {}",
                               key.count == 0 ? "any" : std::to_string(key.count), number_text(key.low),
                               key.high_open ? "below" : "including", number_text(key.high));
        case ValueType::text:
            break;
    }
    if (key.counts) return fmt::format("0 to {}, or \"1 epoch\"", kMostSteps);
    if (key.choices.empty()) return "a text";
    return fmt::format("\"{}\"", traces::schema::joined(key.choices, "\" or \""));
}

std::string problem(const Key& key, const Value& value) {
    switch (key.type) {
        case ValueType::boolean:
            return {};
        case ValueType::integer:
            if (in_range(key, static_cast<double>(std::get<std::int64_t>(value)))) return {};
            return fmt::format("{} is out of range; use {}", to_text(value), allowed(key));
        case ValueType::number:
            if (in_range(key, std::get<double>(value))) return {};
            return fmt::format("{} is out of range; use {}", to_text(value), allowed(key));
        case ValueType::numbers: {
            const auto& numbers = std::get<std::vector<double>>(value);
            const bool fits =
                (key.count == 0 || numbers.size() == key.count) &&
                std::all_of(numbers.begin(), numbers.end(), [&](double n) { return in_range(key, n); });
            return fits ? std::string{}
                        : fmt::format("{} is not allowed; use {}", to_text(value), allowed(key));
        }
        case ValueType::text:
            break;
    }
    const std::string& word = std::get<std::string>(value);
    if (key.choices.empty() || std::find(key.choices.begin(), key.choices.end(), word) != key.choices.end()) {
        return {};
    }
    const std::string guess = did_you_mean(word, key.choices);
    return fmt::format("\"{}\" is not known; {}use {}", word, guess.empty() ? "" : guess + " ", allowed(key));
}

std::string unknown_section(std::string_view section) {
    std::vector<std::string_view> names;
    for (const Section& known : sections()) names.push_back(known.name);
    std::string guess = did_you_mean(section, names);
    if (guess.empty()) guess = fmt::format("the sections are {}", traces::schema::joined(names, ", "));
    return fmt::format("there is no section [{}]; {}", section, guess);
}

std::string unknown_key(std::string_view section, std::string_view name) {
    std::string guess = did_you_mean(name, key_names(section));
    if (guess.empty()) {
        for (const Key& key : keys()) {  // the name exists, but in another section
            if (key.name == name) guess = fmt::format("did you mean {}?", key.full_name());
        }
    }
    if (guess.empty())
        guess = fmt::format("its keys are {}", traces::schema::joined(key_names(section), ", "));
    return fmt::format("there is no key {} in [{}]; {}", name, section, guess);
}

std::string unknown_key(std::string_view full_name) {
    const std::string_view section = full_name.substr(0, full_name.find('.'));
    const auto known = sections();
    return std::any_of(known.begin(), known.end(), [&](const Section& s) { return s.name == section; })
               ? unknown_key(section, full_name.substr(section.size() + 1))
               : unknown_section(section);
}

}  // namespace shardscope::trainer::job
