// A training job: what is trained, on what, sharded how. Plain values, complete and checked once load_job
// returned them; nothing here opens the data or the trace. Sizes are counts of elements, bucket sizes MB
// (2^20).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace shardscope::trainer {

// The message is one sentence for the user: where, which key, what is wrong, what to do. The tool exits
// with 2.
class JobError : public std::runtime_error {
  public:
    explicit JobError(const std::string& sentence) : std::runtime_error(one_line(sentence)) {}

  private:
    static std::string one_line(std::string sentence);  // control characters of quoted input become '?'
};

enum class ModelType : std::uint8_t { mlp, gpt };
enum class DataType : std::uint8_t { synthetic, text };
enum class ParallelMode : std::uint8_t { fsdp, ddp, none };
enum class ShardingStrategy : std::uint8_t { full_shard };
enum class FsdpLayout : std::uint8_t { fsdp1 };
enum class BackwardPrefetch : std::uint8_t { pre, post, none };
enum class OptimizerType : std::uint8_t { sgd, adamw };

// Which modules become FSDP units of their own; the root is always one and takes what is left.
struct Wrap {
    enum class Kind : std::uint8_t { root, module, size };
    Kind kind = Kind::root;
    std::vector<std::string> names;  // module: class names
    std::int64_t threshold = 0;      // size: a module with at least this many unwrapped parameters is a unit

    bool operator==(const Wrap&) const = default;
};

// "root", "module:NAME[,NAME]" or "size:N"; JobError for anything else.
Wrap parse_wrap(const std::string& text);
std::string to_text(const Wrap& wrap);

struct RunSection {
    std::int64_t steps = 20;
    std::int64_t seed = 1;
    int ranks = 1;
    int workers = 0;  // threads that carry out the ranks' streams; 0: one per core
    int blas_threads = 1;
    std::string trace;  // empty: none is written
    bool overwrite = false;
};

struct ModelSection {
    ModelType type = ModelType::mlp;
    int width = 256;
    int layers = 8;     // mlp: Linear layers; gpt: blocks
    bool bias = true;   // mlp
    int heads = 4;      // gpt
    int context = 128;  // gpt: tokens per sample
};

struct DataSection {
    DataType type = DataType::synthetic;
    std::string path;
    int batch = 8;  // samples per rank and step
};

struct ParallelSection {
    ParallelMode mode = ParallelMode::fsdp;
};

struct FsdpSection {
    ShardingStrategy sharding_strategy = ShardingStrategy::full_shard;
    Wrap wrap;
    FsdpLayout layout = FsdpLayout::fsdp1;
    BackwardPrefetch backward_prefetch = BackwardPrefetch::pre;
    bool limit_all_gathers = true;
};

struct DdpSection {
    double bucket_cap_mb = 25;
    double first_bucket_mb = 1;
};

struct OptimizerSection {
    OptimizerType type = OptimizerType::sgd;
    double lr = 0.01;
    double momentum = 0.0;                       // sgd
    std::array<double, 2> betas = {0.9, 0.999};  // adamw
    double eps = 1e-8;                           // adamw
    double weight_decay = 0.0;                   // load_job makes it 0.01 for adamw unless it is given
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
    OptimizerSection optimizer;

    Origins origins;  // for messages about a key whose fault shows only later
};

// "FILE:LINE: " of a key, or "" where it was not given.
std::string where(const Job& job, const std::string& key);

// A key given on the command line.
struct Override {
    std::string key;    // "section.key"
    std::string value;  // as typed
    bool operator==(const Override&) const = default;
};

// Takes every "--section.key=value" and "--section.key value" (a word with a dot in it) out of `arguments`,
// so that a command-line parser sees the others only. A switch (bool) may stand without a value: true. Keys
// are checked by load_job, not here; JobError if a value is missing.
std::vector<Override> take_overrides(std::vector<std::string>& arguments);

// Reads a job file, applies the overrides in their order and checks the whole. JobError if anything is wrong.
Job load_job(const std::string& path, const std::vector<Override>& overrides = {});

// The same from text; `name` stands for the file in messages.
Job parse_job(const std::string& toml, const std::string& name, const std::vector<Override>& overrides = {});

// Every key ("section.key") with its value as text, in the order of the help: what a trace stores of its run.
std::vector<std::pair<std::string, std::string>> describe(const Job& job);

// All sections and keys with type, default and meaning, for --help.
std::string job_help();

}  // namespace shardscope::trainer
