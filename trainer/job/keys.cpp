// The table itself, and what follows from a row of it.
#include "trainer/job/keys.h"

#include <algorithm>
#include <concepts>
#include <type_traits>

#include <fmt/core.h>

#include "traces/schema/joined.h"
#include "trainer/job/nearest.h"

namespace shardscope::trainer {

namespace {

constexpr double kMaxInteger = 9007199254740992.0;  // 2^53: every integer up to this is a double

template <class Section>
using In = Section Job::*;

Key base(std::string_view section, std::string_view name, ValueType type, std::string_view help) {
    Key key;
    key.section = section;
    key.name = name;
    key.type = type;
    key.help = help;
    return key;
}

template <class S, std::integral Field>
Key integer(std::string_view section, std::string_view name, In<S> in, Field S::*field, double low,
            double high, std::string_view help) {
    Key key = base(section, name, ValueType::integer, help);
    key.low = low;
    key.high = high;
    key.set = [=](Job& job, const Value& v) {
        job.*in.*field = static_cast<Field>(std::get<std::int64_t>(v));
    };
    key.get = [=](const Job& job) { return Value(std::int64_t{job.*in.*field}); };
    return key;
}

template <class S>
Key number(std::string_view section, std::string_view name, In<S> in, double S::*field, double low,
           double high, std::string_view help) {
    Key key = base(section, name, ValueType::number, help);
    key.low = low;
    key.high = high;
    key.set = [=](Job& job, const Value& v) { job.*in.*field = std::get<double>(v); };
    key.get = [=](const Job& job) { return Value(job.*in.*field); };
    return key;
}

template <class S>
Key boolean(std::string_view section, std::string_view name, In<S> in, bool S::*field,
            std::string_view help) {
    Key key = base(section, name, ValueType::boolean, help);
    key.set = [=](Job& job, const Value& v) { job.*in.*field = std::get<bool>(v); };
    key.get = [=](const Job& job) { return Value(job.*in.*field); };
    return key;
}

template <class S>
Key text(std::string_view section, std::string_view name, In<S> in, std::string S::*field,
         std::string_view help) {
    Key key = base(section, name, ValueType::text, help);
    key.set = [=](Job& job, const Value& v) { job.*in.*field = std::get<std::string>(v); };
    key.get = [=](const Job& job) { return Value(job.*in.*field); };
    return key;
}

// `choices` in the order of the enum.
template <class S, class Enum>
requires std::is_enum_v<Enum> Key choice(std::string_view section, std::string_view name, In<S> in,
                                         Enum S::*field, std::vector<std::string_view> choices,
                                         std::string_view help) {
    Key key = base(section, name, ValueType::text, help);
    key.choices = std::move(choices);
    key.set = [=, names = key.choices](Job& job, const Value& v) {
        const auto place = std::find(names.begin(), names.end(), std::get<std::string>(v));
        job.*in.*field = static_cast<Enum>(place - names.begin());
    };
    key.get = [=, names = key.choices](const Job& job) {
        return Value(std::string(names[static_cast<std::size_t>(job.*in.*field)]));
    };
    return key;
}

template <class S>
Key module_classes(std::string_view section, std::string_view name, In<S> in, ModuleClasses S::*field,
                   std::string_view help) {
    Key key = base(section, name, ValueType::text, help);
    key.set = [=](Job& job, const Value& v) {
        job.*in.*field = parse_module_classes(std::get<std::string>(v));
    };
    key.get = [=](const Job& job) { return Value(to_text(job.*in.*field)); };
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

Key milestones_key() {
    Key key = base("optimizer", "milestones", ValueType::numbers,
                   "step: steps at which the learning rate is multiplied by gamma");
    key.low = 1;
    key.high = 1e9;
    key.set = [](Job& job, const Value& v) {
        job.optimizer.milestones.clear();
        for (const double step : std::get<std::vector<double>>(v))
            job.optimizer.milestones.push_back(static_cast<std::int64_t>(step));
    };
    key.get = [](const Job& job) {
        return Value(std::vector<double>(job.optimizer.milestones.begin(), job.optimizer.milestones.end()));
    };
    return key;
}

Key wrap_key() {
    Key key = base("fsdp", "wrap", ValueType::text,
                   "which modules are units: root, module:NAME[,NAME] (by class), size:N (parameters)");
    key.set = [](Job& job, const Value& v) { job.fsdp.wrap = parse_wrap(std::get<std::string>(v)); };
    key.get = [](const Job& job) { return Value(to_text(job.fsdp.wrap)); };
    return key;
}

Key slow_ranks_key() {
    Key key = base("sim", "slow_rank", ValueType::text,
                   "none, or RANK:FACTOR[,RANK:FACTOR]: ranks whose kernels take so many times as long");
    key.set = [](Job& job, const Value& v) {
        job.sim.slow_ranks = parse_slow_ranks(std::get<std::string>(v));
    };
    key.get = [](const Job& job) { return Value(to_text(job.sim.slow_ranks)); };
    return key;
}

Key slow_links_key() {
    Key key = base("sim", "slow_link", ValueType::text,
                   "none, or inter:SHARE, intra:SHARE, inter@NODE:SHARE: links that have a share of their "
                   "bandwidth left");
    key.set = [](Job& job, const Value& v) {
        job.sim.slow_links = parse_slow_links(std::get<std::string>(v));
    };
    key.get = [](const Job& job) { return Value(to_text(job.sim.slow_links)); };
    return key;
}

Key betas_key() {
    Key key = base("optimizer", "betas", ValueType::numbers,
                   "adam, adamw, lamb: decay of the first and second moment");
    key.low = 0;
    key.high = 1;
    key.high_open = true;
    key.count = 2;
    key.set = [](Job& job, const Value& v) {
        const auto& numbers = std::get<std::vector<double>>(v);
        job.optimizer.betas = {numbers[0], numbers[1]};
    };
    key.get = [](const Job& job) {
        return Value(std::vector<double>(job.optimizer.betas.begin(), job.optimizer.betas.end()));
    };
    return key;
}

std::vector<Key> make_keys() {
    return {
        integer("run", "steps", &Job::run, &RunSection::steps, 1, 1e9, "optimizer steps"),
        integer("run", "seed", &Job::run, &RunSection::seed, 0, kMaxInteger,
                "of the weights and the samples"),
        integer("run", "ranks", &Job::run, &RunSection::ranks, 1, 65536,
                "ranks: threads of this process or, with run.processes or under a launcher, processes (up to "
                "256); any number of simulated ones"),
        integer(
            "run", "processes", &Job::run, &RunSection::processes, 0, 256,
            "start so many processes of one rank each on this machine; 0: ranks are threads. mpirun, srun "
            "and torchrun start them themselves"),
        choice(
            "run", "device", &Job::run, &RunSection::device, {"cpu", "cuda", "sim"},
            "what carries the job out: this machine's processor, its NVIDIA GPUs, or nobody: sim tells what "
            "it would take on sim.cluster"),
        choice("run", "comm", &Job::run, &RunSection::comm, {"auto", "local", "mpi", "gloo", "tcp", "nccl"},
               "collectives: local (ranks are threads, and may share a GPU); between processes mpi, gloo or "
               "tcp; nccl "
               "(a GPU for each rank); auto: what fits the launcher and the device"),
        choice("run", "sums", &Job::run, &RunSection::sums, {"ordered", "ring"},
               "mpi, gloo, tcp: sums in the order of ranks, with the bits of local, or along a ring"),
        own(number("run", "timeout", &Job::run, &RunSection::timeout, 0, 1e6,
                   "seconds after which a collective that does not end, on a GPU or between processes, or a "
                   "process that "
                   "gives no sign of life ends the job; 0: never")),
        own(integer("run", "workers", &Job::run, &RunSection::workers, 0, 1024,
                    "threads that do the ranks' work on the cpu device; 0: one per core")),
        integer("run", "blas_threads", &Job::run, &RunSection::blas_threads, 1, 1024,
                "threads inside one matrix product of the cpu device"),
        own(integer("run", "memory_limit", &Job::run, &RunSection::memory_limit, 0, kMaxInteger,
                    "bytes of device memory that a rank may allocate; 0: no limit")),
        own(integer("run", "memory_reserve", &Job::run, &RunSection::memory_reserve, -1, kMaxInteger,
                    "bytes of a simulated device that are not the allocator's: the CUDA context, NCCL; -1: "
                    "what sim.cluster says")),
        own_path(text("run", "trace", &Job::run, &RunSection::trace,
                      "write the trace here (as --trace); empty: none")),
        own(text("run", "trace_parts", &Job::run, &RunSection::trace_parts,
                 "folder where each process records its part of the trace, on its own host; empty: beside "
                 "run.trace")),
        own(boolean("run", "overwrite", &Job::run, &RunSection::overwrite,
                    "replace an existing trace (as --overwrite)")),

        choice("model", "type", &Job::model, &ModelSection::type, {"mlp", "gpt", "llama", "bert"},
               "mlp: Linear layers with ReLU between; gpt, llama: language models; bert: an encoder that "
               "fills gaps"),
        text("model", "name", &Job::model, &ModelSection::name,
             "a published shape, such as gpt2, llama-8b or bert-large; other keys of [model] replace its "
             "values"),
        integer("model", "width", &Job::model, &ModelSection::width, 1, 65536, "features of a layer"),
        integer("model", "layers", &Job::model, &ModelSection::layers, 1, 4096,
                "mlp: Linear layers; gpt, llama, bert: blocks"),
        boolean("model", "bias", &Job::model, &ModelSection::bias, "mlp: Linear layers have a bias"),
        integer("model", "heads", &Job::model, &ModelSection::heads, 1, 4096,
                "gpt, llama, bert: attention heads"),
        integer("model", "kv_heads", &Job::model, &ModelSection::kv_heads, 0, 4096,
                "llama: heads of keys and values; 0: as many as heads"),
        integer("model", "context", &Job::model, &ModelSection::context, 1, 65536,
                "gpt, llama, bert: tokens of a sample"),
        integer("model", "vocabulary", &Job::model, &ModelSection::vocabulary, 0, 1000000,
                "gpt, llama, bert: tokens; 0: the 256 bytes; more: byte pairs, learned from the text; bert: "
                "and the "
                "mask, which is the last"),
        number("model", "dropout", &Job::model, &ModelSection::dropout, 0, 0.99,
               "gpt, llama, bert: share of activations set to 0 in training"),
        boolean("model", "tied_embeddings", &Job::model, &ModelSection::tied_embeddings,
                "gpt, llama, bert: the head uses the token embedding's weight"),
        boolean("model", "fused_activation", &Job::model, &ModelSection::fused_activation,
                "mlp, gpt, bert: the matrix product in front of a ReLU or GELU computes that, too, in one "
                "kernel"),
        choice("model", "attention", &Job::model, &ModelSection::attention, {"auto", "plain", "fused"},
               "gpt, llama, bert: plain keeps the probabilities of every pair of tokens, fused computes them "
               "again; "
               "auto: fused on a GPU (bert: plain), plain on the CPU"),

        choice("data", "type", &Job::data, &DataSection::type, {"synthetic", "text"},
               "synthetic: made from the seed (mlp); text: from data.path (gpt, llama, bert)"),
        own(text("data", "path", &Job::data, &DataSection::path, "text: a file, or a folder of files")),
        integer("data", "batch", &Job::data, &DataSection::batch, 1, 1048576,
                "samples per rank and micro-batch"),
        own(integer("data", "workers", &Job::data, &DataSection::workers, 0, 64,
                    "threads per rank that prepare batches ahead; 0: the rank does it itself")),
        number("data", "validation", &Job::data, &DataSection::validation, 0, 0.5,
               "text: share of it, its end, that is held out for the validation loss"),

        choice("parallel", "mode", &Job::parallel, &ParallelSection::mode, {"fsdp", "ddp", "none"},
               "fsdp: parameters sharded; ddp: replicated; none: one rank"),

        choice("fsdp", "sharding_strategy", &Job::fsdp, &FsdpSection::sharding_strategy,
               {"FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "_HYBRID_SHARD_ZERO2", "ZERO_1",
                "ZERO_2", "ZERO_3"},
               "what is sharded, as PyTorch names it; ZERO_3 is FULL_SHARD, ZERO_2 SHARD_GRAD_OP, ZERO_1 ddp "
               "with ddp.shard_optimizer"),
        wrap_key(),
        choice("fsdp", "layout", &Job::fsdp, &FsdpSection::layout, {"fsdp1", "fsdp2", "lean"},
               "buffers of a unit: as FullyShardedDataParallel has them, as fully_shard has them, or lean: "
               "gradients are written straight into what is reduced"),
        integer("fsdp", "shard_group", &Job::fsdp, &FsdpSection::shard_group, 0, 65536,
                "HYBRID_SHARD: ranks that shard among themselves; groups replicate"),
        boolean("fsdp", "cpu_offload", &Job::fsdp, &FsdpSection::cpu_offload,
                "parameters, gradients and optimizer live on the host"),
        boolean("fsdp", "forward_prefetch", &Job::fsdp, &FsdpSection::forward_prefetch,
                "gather the next unit before this unit's forward"),
        choice("fsdp", "backward_prefetch", &Job::fsdp, &FsdpSection::backward_prefetch,
               {"BACKWARD_PRE", "BACKWARD_POST", "NONE"},
               "gather the next unit before (PRE) or after (POST) this unit's gradients, or when needed"),
        boolean("fsdp", "limit_all_gathers", &Job::fsdp, &FsdpSection::limit_all_gathers,
                "the host waits before it gathers a third unit; fsdp2 has no such limit"),
        boolean("fsdp", "sync_module_states", &Job::fsdp, &FsdpSection::sync_module_states,
                "broadcast the weights of rank 0 at the start"),

        number("ddp", "bucket_cap_mb", &Job::ddp, &DdpSection::bucket_cap_mb, 1e-3, 1e6,
               "gradient bytes reduced together, MB"),
        number("ddp", "first_bucket_mb", &Job::ddp, &DdpSection::first_bucket_mb, 1e-3, 1e6,
               "the same for the first bucket"),
        boolean("ddp", "gradient_as_bucket_view", &Job::ddp, &DdpSection::gradient_as_bucket_view,
                "gradients are views of the buckets"),
        boolean("ddp", "static_graph", &Job::ddp, &DdpSection::static_graph,
                "the first step reduces after its backward, as the order is only then known"),
        boolean("ddp", "shard_optimizer", &Job::ddp, &DdpSection::shard_optimizer,
                "each rank keeps and updates its part of the optimizer state (ZeRO stage 1)"),

        integer("train", "accumulation", &Job::train, &TrainSection::accumulation, 1, 65536,
                "micro-batches per step"),
        boolean("train", "accumulation_sync", &Job::train, &TrainSection::accumulation_sync,
                "reduce gradients after every micro-batch; false: after the last one (no_sync)"),
        number("train", "clip_norm", &Job::train, &TrainSection::clip_norm, 0, 1e9,
               "largest norm of all gradients together; 0: not clipped"),
        integer("train", "validate_every", &Job::train, &TrainSection::validate_every, 0, 1e9,
                "steps between validation losses; 0: at the end only (with data.validation)"),
        module_classes("train", "freeze", &Job::train, &TrainSection::freeze,
                       "none, or module:NAME[,NAME]: classes whose parameters are not trained"),

        choice("precision", "param", &Job::precision, &PrecisionSection::param, {"fp32", "bf16"},
               "of gathered parameters and activations; shards stay fp32"),
        choice("precision", "reduce", &Job::precision, &PrecisionSection::reduce, {"fp32", "bf16"},
               "of gradients while they are reduced; follows precision.param unless it is given"),
        choice(
            "precision", "buffer", &Job::precision, &PrecisionSection::buffer, {"fp32", "bf16"},
            "of tables that are no parameters (llama: rotary); follows precision.param unless it is given"),
        boolean("precision", "tf32", &Job::precision, &PrecisionSection::tf32,
                "on a GPU: products of fp32 in TF32, which rounds their operands to 10 bits of fraction"),

        module_classes("memory", "activation_checkpointing", &Job::memory,
                       &MemorySection::activation_checkpointing,
                       "none, or module:NAME[,NAME]: classes whose activations are computed again"),
        integer("memory", "gemm_workspace_bytes", &Job::memory, &MemorySection::gemm_workspace_bytes, 0, 1e12,
                "bytes of the workspace of each of the two product handles (forward, backward)"),

        choice("optimizer", "type", &Job::optimizer, &OptimizerSection::type,
               {"sgd", "adam", "adamw", "lars", "lamb"}, "update rule"),
        number("optimizer", "lr", &Job::optimizer, &OptimizerSection::lr, 0, 1e3, "learning rate"),
        number("optimizer", "momentum", &Job::optimizer, &OptimizerSection::momentum, 0, 1,
               "sgd, lars: 0 keeps no momentum buffer; lars: 0.9 unless given"),
        boolean("optimizer", "nesterov", &Job::optimizer, &OptimizerSection::nesterov,
                "sgd, lars: Nesterov momentum"),
        betas_key(),
        number("optimizer", "eps", &Job::optimizer, &OptimizerSection::eps, 1e-30, 1,
               "adam, adamw, lamb: added to the root of the second moment; lamb: 1e-6 unless given"),
        number("optimizer", "weight_decay", &Job::optimizer, &OptimizerSection::weight_decay, 0, 1e3,
               "sgd, adam, lars: added to the gradient; adamw, lamb: decoupled, 0.01 unless given"),
        number("optimizer", "trust_coefficient", &Job::optimizer, &OptimizerSection::trust_coefficient, 1e-9,
               1e3, "lars: the local rate is this times |w| / (|g| + weight_decay |w|)"),
        choice("optimizer", "lr_scaling", &Job::optimizer, &OptimizerSection::lr_scaling,
               {"none", "linear", "sqrt"}, "multiply the rate by the number of ranks, or by its root"),
        integer("optimizer", "warmup_steps", &Job::optimizer, &OptimizerSection::warmup_steps, 0, 1e9,
                "steps before the scaled rate is reached"),
        choice("optimizer", "warmup", &Job::optimizer, &OptimizerSection::warmup, {"gradual", "constant"},
               "for warmup_steps, rise evenly from the unscaled rate (from 0 without lr_scaling), or stay at "
               "it"),
        choice("optimizer", "schedule", &Job::optimizer, &OptimizerSection::schedule,
               {"constant", "step", "cosine"}, "after the warm-up"),
        milestones_key(),
        number("optimizer", "gamma", &Job::optimizer, &OptimizerSection::gamma, 1e-9, 1,
               "step: factor at each milestone"),

        own_path(text("checkpoint", "save", &Job::checkpoint, &CheckpointSection::save,
                      "folder to save checkpoints in; empty: none")),
        own_path(text("checkpoint", "load", &Job::checkpoint, &CheckpointSection::load,
                      "folder of the checkpoint to go on from; empty: none")),
        integer("checkpoint", "every", &Job::checkpoint, &CheckpointSection::every, 0, 1e9,
                "steps between checkpoints; 0: at the end, and at a stop, only"),
        choice("checkpoint", "format", &Job::checkpoint, &CheckpointSection::format, {"sharded", "full"},
               "a file per rank, or one file with everything"),

        text("sim", "cluster", &Job::sim, &SimSection::cluster,
             "cost model: laptop, a100, h100_ib, h200_nvlink, v100_pcie, or the path of a .toml file"),
        slow_ranks_key(),
        slow_links_key(),
        integer("sim", "trace_ranks", &Job::sim, &SimSection::trace_ranks, 1, 1024,
                "ranks that a trace shows, from rank 0 on, beside one of each kind that is not among them"),
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
        {"train", "what a step is"},
        {"precision", "element types"},
        {"memory", "what is kept"},
        {"optimizer", "how parameters are updated"},
        {"checkpoint", "saving and going on"},
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
    if (key.choices.empty()) return "a text";
    return fmt::format("\"{}\"", traces::joined(key.choices, "\" or \""));
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
                        : fmt::format("{} does not fit; use {}", to_text(value), allowed(key));
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
    if (guess.empty()) guess = fmt::format("the sections are {}", traces::joined(names, ", "));
    return fmt::format("there is no section [{}]; {}", section, guess);
}

std::string unknown_key(std::string_view section, std::string_view name) {
    std::string guess = did_you_mean(name, key_names(section));
    if (guess.empty()) {
        for (const Key& key : keys()) {  // a right name in the wrong section
            if (key.name == name) guess = fmt::format("did you mean {}?", key.full_name());
        }
    }
    if (guess.empty()) guess = fmt::format("its keys are {}", traces::joined(key_names(section), ", "));
    return fmt::format("there is no key {} in [{}]; {}", name, section, guess);
}

}  // namespace shardscope::trainer
