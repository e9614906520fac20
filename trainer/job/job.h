// A training job: what is trained, on what, sharded how. Plain values, complete and checked once load_job has
// returned them; nothing here opens the data or the trace. Sizes are counts of elements, bucket sizes MiB.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "trainer/job/comm_hook.h"
#include "trainer/kernels/activation_kinds.h"

namespace shardscope::trainer::job {

// The message is one sentence for the user: where, which key, what is wrong, what to do. The tool exits
// with 2.
class JobError : public std::runtime_error {
  public:
    explicit JobError(const std::string& sentence) : std::runtime_error(one_line(sentence)) {}

  private:
    static std::string one_line(std::string sentence);  // control characters of quoted input become '?'
};

enum class ModelType : std::uint8_t { mlp, gpt, llama, bert, resnet, vgg, vit };
// How attention is computed. load_job resolves `automatic`; for a simulation, the caller that knows the
// cluster does.
enum class AttentionKind : std::uint8_t { automatic, plain, fused };
inline constexpr int kMostFusedHeadWidth = 256;
enum class DataType : std::uint8_t { synthetic, text, images };
inline constexpr int kImageChannels = 3;
// Which part of a training image is used: the middle, a random place, or a random part in a random size
// (RandomResizedCrop). Validation always uses the middle.
enum class ImageCrop : std::uint8_t { center, random, resized };
enum class ParallelMode : std::uint8_t { fsdp, ddp, none, server };
// How the ranks of a context group see each other's keys and values: gathered, or passed on in a ring.
enum class ContextExchange : std::uint8_t { allgather, ring };
// The last three are names that load_job resolves: ZERO_3 is FULL_SHARD, ZERO_2 SHARD_GRAD_OP, and ZERO_1 ddp
// with ddp.shard_optimizer.
enum class ShardingStrategy : std::uint8_t {
    full_shard,
    shard_grad_op,
    no_shard,
    hybrid_shard,
    hybrid_shard_zero2,
    zero_1,
    zero_2,
    zero_3
};
enum class FsdpLayout : std::uint8_t { fsdp1, fsdp2, lean };
enum class BackwardPrefetch : std::uint8_t { pre, post, none };
enum class OptimizerType : std::uint8_t { sgd, adam, adamw, lars, lamb, novograd, onebit_adam, onebit_lamb };
// 1-bit Adam and 1-bit LAMB are AdamW (without decay: Adam) and LAMB until optimizer.freeze_step; then their
// ranks exchange momentum.
constexpr bool is_onebit(OptimizerType type) {
    return type == OptimizerType::onebit_adam || type == OptimizerType::onebit_lamb;
}
constexpr OptimizerType warm_up_of(OptimizerType type) {
    if (!is_onebit(type)) return type;
    return type == OptimizerType::onebit_adam ? OptimizerType::adamw : OptimizerType::lamb;
}
// Whether it needs the norms of whole parameters or of their gradients.
constexpr bool needs_norms(OptimizerType type) {
    return type == OptimizerType::lars || type == OptimizerType::lamb || type == OptimizerType::novograd;
}
// automatic: as the strategy says, and the root stays, as reshard_after_forward=None.
enum class Reshard : std::uint8_t { automatic, yes, no };
enum class Precision : std::uint8_t { fp32, bf16, fp16 };
// How the loss scale changes: torch.amp.GradScaler, or DeepSpeed's DynamicLossScaler.
enum class ScaleRule : std::uint8_t { torch, deepspeed };
enum class LrScaling : std::uint8_t { none, linear, sqrt };
enum class Warmup : std::uint8_t { gradual, constant };
enum class LrSchedule : std::uint8_t { constant, step, cosine, polynomial };
enum class CheckpointFormat : std::uint8_t { sharded, full, safetensors, dcp };
// Whose names the tensors have: of our modules, or of Hugging Face's transformers.
enum class CheckpointNames : std::uint8_t { modules, huggingface };

// Some modules of a model: "none", "module:NAME[,NAME]" (by class), "path:PATTERN[,PATTERN]" (by path; * and
// ? stand for characters of one part of a path, ** for any) or "every:K,NAME[,NAME]" (the first of every K
// modules of a class).
struct ModuleSelection {
    enum class Kind : std::uint8_t { module, path, every };
    Kind kind = Kind::module;
    std::vector<std::string> names;  // classes, or patterns; empty: none
    int every = 1;

    bool operator==(const ModuleSelection&) const = default;
};
// JobError for anything else.
ModuleSelection parse_modules(const std::string& text);
std::string to_text(const ModuleSelection& modules);

// Which modules become FSDP units of their own; the root is always one and takes what is left.
struct Wrap {
    enum class Kind : std::uint8_t { root, modules, size };
    Kind kind = Kind::root;
    ModuleSelection modules;
    std::int64_t threshold = 0;  // size: a module with at least this many unwrapped parameters is a unit

    bool operator==(const Wrap&) const = default;
};
// "root", "size:N" or a selection; JobError for anything else.
Wrap parse_wrap(const std::string& text);
std::string to_text(const Wrap& wrap);

// Units that are treated otherwise than fsdp.sharding_strategy says: "none" or "SELECTION=true" (freed after
// the forward) or "SELECTION=false" (kept until the backward), several separated by spaces; a later one wins.
struct UnitRule {
    ModuleSelection units;
    bool reshard_after_forward = true;

    bool operator==(const UnitRule&) const = default;
};
using UnitRules = std::vector<UnitRule>;
UnitRules parse_unit_rules(const std::string& text);
std::string to_text(const UnitRules& rules);

// The axes of the mesh of ranks as Megatron abbreviates them, outermost first: pipeline, data, context,
// expert, tensor. ep does not multiply the ranks: it is the inner part of dp and cp.
enum class MeshAxis : std::uint8_t { pp, dp, cp, ep, tp };
using MeshOrder = std::vector<MeshAxis>;
inline constexpr std::array kDefaultOrder = {MeshAxis::pp, MeshAxis::dp, MeshAxis::cp, MeshAxis::ep,
                                             MeshAxis::tp};
// "pp-dp-cp-ep-tp" or without ep, which is then added; JobError for anything else.
MeshOrder parse_order(const std::string& text);
std::string to_text(const MeshOrder& order);

// A rank whose kernels take `factor` times as long.
struct SlowRank {
    int rank = 0;
    double factor = 1;
    bool operator==(const SlowRank&) const = default;
};
// Links that have only a share of their bandwidth: those inside nodes or between them.
struct SlowLink {
    bool between_nodes = true;
    int node = -1;  // only this node's; -1: all
    double share = 1;
    bool operator==(const SlowLink&) const = default;
};
// "none", "3:1.5,7:2"; "none", "inter:0.5,intra@2:0.25". JobError for anything else.
std::vector<SlowRank> parse_slow_ranks(const std::string& text);
std::vector<SlowLink> parse_slow_links(const std::string& text);
std::string to_text(const std::vector<SlowRank>& ranks);
std::string to_text(const std::vector<SlowLink>& links);

inline constexpr std::int64_t kMostSteps = 1'000'000'000;  // of a run

// How often something is done: after so many steps, or epochs of the data; 0: never.
struct Every {
    // NOLINTNEXTLINE(google-explicit-constructor): a plain number is one of steps
    constexpr Every(std::int64_t of = 0, bool in_epochs = false) : count(of), epochs(in_epochs) {}
    std::int64_t count;
    bool epochs;
    explicit operator bool() const { return count > 0; }
    bool operator==(const Every&) const = default;
};
// "100", "1 epoch", "2 epochs"; JobError for anything else.
Every parse_every(const std::string& text);
std::string to_text(const Every& every);

// sim: nothing is computed; a cost model predicts the time and memory on a cluster (trainer/sim).
enum class DeviceKind : std::uint8_t { cpu, cuda, sim };
inline constexpr int kMostRanks = 256;  // of a real run; a simulation can have more
// What carries out collectives: threads of one process (local), or processes of one rank each.
enum class CommKind : std::uint8_t { automatic, local, mpi, gloo, tcp, nccl };
enum class SumOrder : std::uint8_t { ordered, ring };

struct RunSection {
    std::int64_t steps = 20;  // with train.epochs they follow from the data (data/epochs.h)
    std::int64_t seed = 1;
    int ranks = 1;
    DeviceKind device = DeviceKind::cpu;
    CommKind comm = CommKind::automatic;
    int processes = 0;  // one rank each; 0: the ranks are threads of one process
    int ranks_per_device = 1;
    SumOrder sums = SumOrder::ordered;
    double timeout = 600;  // seconds that a collective on a GPU or between processes may take; 0: no limit
    int workers = 0;       // threads that carry out the ranks' streams; 0: one per core
    int blas_threads = 1;
    std::int64_t memory_limit = 0;     // bytes of device memory that a rank may reserve; 0: no limit
    std::int64_t memory_reserve = -1;  // bytes of a simulated device that others use; -1: the cluster's value
    std::string trace;                 // empty: none is written
    std::string trace_parts;           // folder of the processes' parts; empty: next to the trace
    bool overwrite = false;
    bool counters = true;  // a trace has samples of processes, hosts and devices
};

struct ModelSection {
    ModelType type = ModelType::mlp;
    std::string name;  // a published shape ("gpt2", "resnet50"); keys that are given override its values
    int width = 256;   // resnet, vgg: channels of the first stage
    int layers = 8;    // mlp: Linear layers; resnet, vgg: the depth, which model.name says; else blocks
    bool bias = true;  // mlp
    // gpt, llama and bert
    int heads = 4;
    int kv_heads = 0;    // llama: heads of keys and values; 0: as many as heads
    int context = 128;   // tokens per sample
    int vocabulary = 0;  // tokens; 0: the 256 bytes (bert: and the mask); more: byte pairs from the text
    double dropout = 0;
    bool tied_embeddings = false;
    // mlp, gpt, bert; none: ReLU in an mlp, GELU in the others
    kernels::ActivationKind activation = kernels::ActivationKind::none;
    bool fused_activation = false;  // mlp, gpt, bert: the matmul before an activation computes it too
    AttentionKind attention = AttentionKind::automatic;
    // gpt, llama
    int experts = 0;  // feed-forward parts of a block, of which each token uses some; 0: one, for all
    int experts_per_token = 1;
    double capacity_factor = 0;  // times the mean number of tokens: how many an expert takes; 0: all
    double balance_loss = 0;     // coefficient
};

struct DataSection {
    DataType type = DataType::synthetic;
    std::string path;
    int batch = 8;          // samples per rank and micro-batch
    int workers = 0;        // threads per rank that prepare batches ahead; 0: none
    double validation = 0;  // share of the text that is held out, at its end; of the images, at random
    double test = 0;        // the same for the test at the end; of a text what comes last
    // Of images.
    std::string validation_path;  // images that are only validated on
    std::string test_path;        // images that are only tested on
    int image = 224;              // pixels of a side
    int classes = 1000;
    int resize = 0;  // pixels of the shorter side before the crop; 0: those of `image`
    ImageCrop crop = ImageCrop::center;
    int padding = 0;    // crop random: black pixels that are added at each border
    bool flip = false;  // mirrors half of the training images
    int cache = 0;      // MiB of decoded pictures that each process keeps
    std::array<double, kImageChannels> mean = {0.5, 0.5, 0.5}, deviation = {0.5, 0.5, 0.5};
};

struct ParallelSection {
    ParallelMode mode = ParallelMode::fsdp;
    int tensor = 1;                // ranks that share the arithmetic of each layer
    bool sequence = false;         // they also divide the rows between the shared matmuls
    bool sync_batch_norm = false;  // batch norms use the images of all ranks
    int context = 1;               // ranks that divide the tokens of each sequence
    ContextExchange context_exchange = ContextExchange::allgather;
    int servers = 1;                // server: ranks that hold the parameters
    int pipeline = 1;               // places of the pipeline, each with other layers
    std::string schedule = "1f1b";  // of the micro-batches through it: a name, or a file (pipeline/csv.h)
    int virtual_stages = 1;         // stages of each place
    MeshOrder order = {kDefaultOrder.begin(), kDefaultOrder.end()};
    int expert = 1;                 // ranks that divide the experts, among those that read different samples
    std::string stages = "blocks";  // how the layers are dealt to them (sharding/stages.h)
};

struct FsdpSection {
    ShardingStrategy sharding_strategy = ShardingStrategy::full_shard;
    Wrap wrap;
    ModuleSelection exclude;  // modules that are not units, whatever `wrap` says
    UnitRules unit;
    Reshard reshard_after_forward = Reshard::automatic;
    FsdpLayout layout = FsdpLayout::fsdp1;
    int shard_group = 0;  // HYBRID_SHARD: ranks of a shard group; 0 for other strategies
    bool cpu_offload = false;
    bool forward_prefetch = false;
    BackwardPrefetch backward_prefetch = BackwardPrefetch::pre;
    bool limit_all_gathers = true;
    bool sync_module_states = false;
};

struct DdpSection {
    double bucket_cap_mb = 25;
    double first_bucket_mb = 1;
    bool gradient_as_bucket_view = false;
    bool static_graph = false;
    bool shard_optimizer = false;  // ZeRO stage 1
    bool broadcast_buffers = true;
    CommHook comm_hook;
    std::int64_t comm_hook_start = 2;      // powersgd, topk: steps of a run that are reduced whole before it
    double orthogonalization_epsilon = 0;  // powersgd
};

struct TrainSection {
    int accumulation = 1;           // micro-batches per step
    bool accumulation_sync = true;  // reduce gradients after each; false: only after the last (no_sync)
    double clip_norm = 0;           // 0: gradients are not clipped
    bool gradient_norm = false;     // the norm is computed for its metric alone; clipping computes it anyway
    bool reports_norm() const { return clip_norm > 0 || gradient_norm; }
    std::int64_t local_steps = 0;  // ddp: ranks average parameters after so many; 0: gradients, in each
    std::int64_t staleness = 0;    // server: steps that a worker may be ahead of another; -1: any number
    double outer_lr = 1, outer_momentum = 0;  // of the step from one average to the next
    bool has_outer_step() const { return outer_lr != 1 || outer_momentum != 0; }
    std::int64_t epochs = 0;     // 0: run.steps says how long
    Every validate_every;        // 0: only at the end, if there is something to validate on
    ModuleSelection freeze;      // modules whose parameters are not trained
    double label_smoothing = 0;  // images
    double diverged_above = 10;  // times the first loss; 0: no loss is too large
};

struct PrecisionSection {
    Precision param = Precision::fp32, reduce = Precision::fp32, buffer = Precision::fp32;
    bool tf32 = false;  // fp32 matmuls on a GPU round their operands to 10 bits of fraction
    // fp16: the gradients are those of the loss times a scale, so that small ones do not become 0.
    double loss_scale = 0;  // 0: dynamic
    ScaleRule scale_rule = ScaleRule::torch;
    double initial_scale = 65536;
    std::int64_t growth_interval = 2000;  // steps without overflow; 1000 for deepspeed unless it is given
    int hysteresis = 2;                   // deepspeed: overflows until the scale is lowered
    double min_scale = 1;                 // deepspeed
    bool scales_loss() const { return param == Precision::fp16 || reduce == Precision::fp16; }
};

// What is in host memory while the device does not need it.
struct Offload {
    bool optimizer = false;    // the state, the parameters that it updates, and their gradients
    bool activations = false;  // what the forward saves for the backward
    bool operator==(const Offload&) const = default;
};

// "none", "optimizer", "activations" or both, joined by "+"; JobError for anything else.
Offload parse_offload(const std::string& text);
std::string to_text(const Offload& offload);

struct MemorySection {
    ModuleSelection activation_checkpointing;
    Offload offload;
    std::string nvme;  // folder of the files that hold what the hosts update; empty: it stays in memory
    std::int64_t gemm_workspace_bytes = 0;  // for each of the two matmul handles (forward, backward)
};

struct OptimizerSection {
    OptimizerType type = OptimizerType::sgd;
    double lr = 0.01;
    double momentum = 0.0;                       // sgd, lars (0.9 unless it is given)
    bool nesterov = false;                       // sgd, lars
    std::array<double, 2> betas = {0.9, 0.999};  // adam, adamw, lamb, novograd (0.95, 0.98 unless given)
    double eps = 1e-8;                           // as betas; lamb: 1e-6 unless it is given
    double weight_decay = 0.0;               // load_job makes it 0.01 for adamw and lamb unless it is given
    double trust_coefficient = 1e-3;         // lars
    std::int64_t freeze_step = 0;            // onebit_adam, onebit_lamb: steps before momentum is compressed
    LrScaling lr_scaling = LrScaling::none;  // by the samples of a step
    std::int64_t lr_batch = 0;               // samples of a step that lr is meant for; 0: data.batch
    std::int64_t warmup_steps = 0;
    Warmup warmup = Warmup::gradual;
    LrSchedule schedule = LrSchedule::constant;
    std::vector<std::int64_t> milestones;  // steps where schedule `step` multiplies the rate by gamma
    double gamma = 0.1;
    double power = 2;  // of the polynomial
};

struct SimSection {
    std::string cluster = "laptop";  // a shipped cost model, or the path of one
    std::vector<SlowRank> slow_ranks;
    std::vector<SlowLink> slow_links;
    int trace_ranks = 8;  // ranks that a trace shows, from rank 0 on
};

// The checkpoints of a run that stay in its folder.
struct KeptCheckpoints {
    bool best = false;      // the newest, and the one with the lowest validation loss
    std::int64_t last = 0;  // so many of the newest; 0: all, unless `best`
    bool all() const { return !best && last == 0; }
    bool operator==(const KeptCheckpoints&) const = default;
};

// "all", "best", "last:3"; JobError for anything else.
KeptCheckpoints parse_kept(const std::string& text);
std::string to_text(const KeptCheckpoints& kept);

struct CheckpointSection {
    std::string save, load;    // folders; empty: none
    std::string initial_load;  // a folder or file from which only the parameters are taken; empty: none
    Every every;               // between saves; 0: at the end only
    KeptCheckpoints keep;
    CheckpointFormat format = CheckpointFormat::sharded;
    CheckpointNames names = CheckpointNames::modules;
};

// "section.key" -> "FILE:LINE" or "command line"; keys that were not given are absent.
using Origins = std::map<std::string, std::string>;

struct Job {
    RunSection run;
    ModelSection model;
    DataSection data;
    ParallelSection parallel;
    FsdpSection fsdp;
    DdpSection ddp;
    TrainSection train;
    PrecisionSection precision;
    MemorySection memory;
    OptimizerSection optimizer;
    CheckpointSection checkpoint;
    SimSection sim;

    Origins origins;                 // for messages about a key that is found to be wrong only later
    std::vector<std::string> notes;  // sentences about keys that a launcher overrides

    // Ranks that read different samples; the others repeat these samples with other parts of the model.
    int data_ranks() const { return (run.ranks - servers()) / model_ranks(); }
    // Of a parameter server; the last ranks.
    int servers() const { return parallel.mode == ParallelMode::server ? parallel.servers : 0; }
    // Ranks that together compute the whole model for their samples.
    int model_ranks() const { return parallel.tensor * parallel.context * parallel.pipeline; }
    bool reads_images() const { return data.type == DataType::images; }
    bool validates() const { return data.validation > 0 || !data.validation_path.empty(); }
    bool tests() const { return data.test > 0 || !data.test_path.empty(); }
    // Whether something of it counts epochs of the data.
    bool counts_epochs() const {
        return train.epochs > 0 || train.validate_every.epochs || checkpoint.every.epochs;
    }
    // Of all ranks and micro-batches.
    std::int64_t samples_per_step() const {
        return std::int64_t{data_ranks()} * train.accumulation * data.batch;
    }
    // Whether a token attends only to those before it.
    bool is_causal() const { return model.type != ModelType::bert && model.type != ModelType::vit; }
};

// Whether a sample is a sequence of tokens.
constexpr bool has_tokens(ModelType type) {
    return type == ModelType::gpt || type == ModelType::llama || type == ModelType::bert;
}

// Whether it is a network for images, of a published shape.
constexpr bool sees_images(ModelType type) {
    return type == ModelType::resnet || type == ModelType::vgg || type == ModelType::vit;
}
// A vit's attention is that of patches of its image.
constexpr bool has_attention(ModelType type) {
    return has_tokens(type) || type == ModelType::vit;
}

// The meaning of model.attention = "auto": fused on a GPU that supports it, where attention is causal.
AttentionKind automatic_attention(const ModelSection& model, bool on_gpu);

// "FILE:LINE: " for a key, or "" if it was not given.
std::string where(const Job& job, const std::string& key);

// A key given on the command line.
struct Override {
    std::string key;    // "section.key"
    std::string value;  // as typed
    bool operator==(const Override&) const = default;
};

// Takes every "--section.key=value" and "--section.key value" (a word with a dot in it) out of `arguments`,
// so that a command-line parser sees only the others. A switch (bool) without a value is true. Keys are
// checked by load_job, not here; JobError if a value is missing.
std::vector<Override> take_overrides(std::vector<std::string>& arguments);

// The processes that a launcher has started, one rank each.
struct Launched {
    int ranks = 0;         // 0: there is no launcher
    int local_ranks = 0;   // on this process's host
    std::string launcher;  // "mpirun"
};

// Reads a job file, applies the overrides in order and checks the result. JobError if anything is wrong.
Job load_job(const std::string& path, const std::vector<Override>& overrides = {},
             const Launched& launched = {});

// The same from text; `name` stands for the file in messages.
Job parse_job(const std::string& toml, const std::string& name, const std::vector<Override>& overrides = {},
              const Launched& launched = {});

// Every key ("section.key") with its value as text, in the order of --help; a trace stores them.
std::vector<std::pair<std::string, std::string>> describe(const Job& job);

// All sections and keys with type, default and meaning, for --help.
std::string job_help();

}  // namespace shardscope::trainer::job
