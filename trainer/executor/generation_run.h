// Continues texts on the device that the job asks for: forwards of a Program that was made for Texts.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "trainer/executor/rank_runner.h"
#include "trainer/sharding/program.h"

namespace shardscope::profiler {
class Recorder;
}

namespace shardscope::trainer::executor {

// Which of the Program's Plans a forward is.
enum class Forward : std::uint8_t {
    whole,    // the whole context of each text
    prefill,  // the prompts, into the key/value cache
    decode,   // one more token of each text, with the cache
};

// The input of a forward, which the caller writes. Without a cache the positions are ignored.
struct ForwardInput {
    std::span<std::int32_t> tokens;     // [texts, tokens of each]
    std::span<std::int32_t> positions;  // of them in their texts
    std::span<std::int32_t> last;       // the row of each text whose logits are wanted
};

// All are called on one thread.
struct GenerationCalls {
    std::function<void(int rank, RankRunner&)> after_setup;  // fills the parameters
    std::function<void(Forward forward, const ForwardInput& input)> write;
    // The logits (fp32, row by row, valid until it returns): of the wanted rows, or, of the whole context, of
    // all. Returns the next forward; none: that was the last one.
    std::function<std::optional<Forward>(Forward forward, std::span<const float> logits)> read;
};

// `recorder`: null: nothing is recorded; else each forward is a step of the trace. Throws as run_training
// does.
void run_generation(const sharding::Program& program, Forward first, const GenerationCalls& calls,
                    profiler::Recorder* recorder = nullptr);

}  // namespace shardscope::trainer::executor
