// Helpers that the tests of shardscope-train share: running it and shardscope-trace, small jobs with known
// sizes, and SQL on a trace. A failure of a tool fails the calling test.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/tools/run_command.h"
#include "traces/store/sqlite/query.h"

namespace shardscope::tools {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

const std::string& train_binary();
const std::string& trace_tool_binary();
std::string sample(const std::string& name);  // "mlp.toml" -> its path

Outcome train(Words arguments);
Outcome trace_tool(Words arguments);

// Expects that a run was refused: it prints nothing but an error in which the sayings are.
void expect_refusal(const Outcome& outcome, const Words& sayings, int status = 2);

// Runs that must succeed; returns the JSON that they print.
Json train_json(Words arguments);
Json trace_json(Words arguments);

// The text between the brackets of "losses":[...], with every digit that was printed.
std::string losses_text(const std::string& json);

// The rows of one statement; a number from a statement with one row of one column.
std::vector<std::vector<traces::store::QueryValue>> rows(const std::string& trace, const std::string& sql);
std::int64_t number(const std::string& trace, const std::string& sql);
std::vector<std::string> texts(const std::string& trace, const std::string& sql);  // the first column

std::string read_file(const std::string& path);
void write_file(const std::string& path, std::string_view content);

// A perceptron of 8 Linear layers, 64 wide: 64 * 64 + 64 = 4160 parameters or 16640 bytes in a layer, 133120
// in all; 4 ranks divide both, so nothing is padded.
inline constexpr int kMlpLayers = 8;
inline constexpr std::int64_t kLayerBytes = 4 * (64 * 64 + 64);
inline constexpr std::int64_t kMlpBytes = kMlpLayers * kLayerBytes;
inline constexpr int kSteps = 3;

// A GPT of 2 blocks on 2 ranks, 32 wide, 16 tokens of context, with the root's parameters: the embeddings of
// 256 bytes and 16 positions, the last norm, and the head. A block: 2 norms, attention 32 x 96 and 32 x 32,
// feed-forward 32 x 128 and 128 x 32, all with biases.
inline constexpr int kBlocks = 2;
inline constexpr std::int64_t kBlockBytes =
    4 * (2 * 2 * 32 + (32 * 96 + 96) + (32 * 32 + 32) + (32 * 128 + 128) + (128 * 32 + 32));
inline constexpr std::int64_t kRootBytes = 4 * (256 * 32 + 16 * 32 + 2 * 32 + 32 * 256);

// One of five ways to train, with a folder of its own and the trace of its run.
enum class Way { root, per_layer, ddp, none, gpt };
inline constexpr Way kWays[] = {Way::root, Way::per_layer, Way::ddp, Way::none, Way::gpt};
std::string to_string(Way way);
void PrintTo(Way way, std::ostream* out);  // for a failed test's message

class TracedRun {
  public:
    explicit TracedRun(Way way, Words more = {});
    const std::string& trace() const { return trace_; }
    const Json& result() const { return result_; }
    int ranks() const { return ranks_; }

  private:
    TemporaryFolder folder_;
    std::string trace_;
    Json result_;
    int ranks_;
};

// The arguments for a way to train; files that they need are written into `folder`.
Words arguments_for(Way way, const TemporaryFolder& folder);

}  // namespace shardscope::tools
