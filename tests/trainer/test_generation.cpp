// Programs that continue texts: what a key/value cache gives is what the whole context gives.
#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "jobs.h"
#include "trainer/executor/generation_run.h"
#include "trainer/kernels/cost.h"
#include "trainer/model/models.h"
#include "trainer/plan/print.h"

namespace shardscope::trainer::executor {
namespace TEST_FILE {

using Tokens = std::vector<std::int32_t>;

// The logits of each text's last token, and then of one token more each time: the likeliest.
struct Continued {
    std::vector<Tokens> texts;
    std::vector<std::vector<float>> logits;  // by forward
};

Continued continue_texts(const job::Job& job, std::vector<Tokens> texts, int tokens, bool cache) {
    std::size_t longest = 0;
    for (const Tokens& text : texts) longest = std::max(longest, text.size());
    const sharding::Program program(
        job, sharding::Texts{static_cast<int>(texts.size()), cache ? static_cast<int>(longest) : 0});
    const auto vocabulary = static_cast<std::size_t>(model::vocabulary(job));
    const auto context = static_cast<std::size_t>(job.model.context);
    Continued found;
    found.texts = std::move(texts);
    GenerationCalls calls;
    calls.write = [&](Forward forward, const ForwardInput& input) {
        const std::size_t rows = input.tokens.size() / found.texts.size();
        std::fill(input.tokens.begin(), input.tokens.end(), 0);
        for (std::size_t t = 0; t < found.texts.size(); ++t) {
            const Tokens& text = found.texts[t];
            const std::size_t first = forward == Forward::decode ? text.size() - 1 : 0;
            std::copy(text.begin() + static_cast<std::ptrdiff_t>(first), text.end(),
                      input.tokens.begin() + static_cast<std::ptrdiff_t>(t * rows));
            for (std::size_t i = 0; i < rows; ++i)
                input.positions[t * rows + i] = static_cast<std::int32_t>(first + i);
            input.last[t] = static_cast<std::int32_t>(t * rows + text.size() - first - 1);
        }
    };
    calls.read = [&](Forward forward, std::span<const float> logits) -> std::optional<Forward> {
        std::vector<float>& kept = found.logits.emplace_back();
        for (std::size_t t = 0; t < found.texts.size(); ++t) {
            Tokens& text = found.texts[t];
            const std::size_t row = forward == Forward::whole ? t * context + text.size() - 1 : t;
            const auto own = logits.subspan(row * vocabulary, vocabulary);
            kept.insert(kept.end(), own.begin(), own.end());
            text.push_back(static_cast<std::int32_t>(std::max_element(own.begin(), own.end()) - own.begin()));
        }
        if (--tokens == 0) return std::nullopt;
        return cache ? Forward::decode : Forward::whole;
    };
    run_generation(program, cache ? Forward::prefill : Forward::whole, calls);
    return found;
}

void expect_the_same(const job::Job& job, const std::vector<Tokens>& texts, int tokens) {
    const Continued whole = continue_texts(job, texts, tokens, false);
    const Continued cached = continue_texts(job, texts, tokens, true);
    EXPECT_EQ(cached.texts, whole.texts);
    ASSERT_EQ(cached.logits.size(), whole.logits.size());
    for (std::size_t f = 0; f < whole.logits.size(); ++f) {
        float largest = 0, difference = 0;
        for (std::size_t i = 0; i < whole.logits[f].size(); ++i) {
            largest = std::max(largest, std::abs(whole.logits[f][i]));
            difference = std::max(difference, std::abs(whole.logits[f][i] - cached.logits[f][i]));
        }
        EXPECT_LE(difference, 2e-5F * largest) << "forward " << f;
    }
}

class Generation : public ::testing::Test {
  protected:
    job::Job gpt() const {
        job::Job job = testing::gpt_job(text_, 1, 1);
        job.model.heads = 4;
        job.model.context = 32;
        job.parallel.mode = job::ParallelMode::none;
        return job;
    }
    job::Job llama() const {
        job::Job job = gpt();
        job.model.type = job::ModelType::llama;
        job.model.kv_heads = 2;
        return job;
    }

  private:
    testing::SampleText text_;
};

const std::vector<Tokens> kOne = {{5, 77, 8, 9}};
const std::vector<Tokens> kThree = {{5, 77, 8, 9}, {101}, {7, 7, 30, 31, 32, 33, 34}};

TEST_F(Generation, OfAGptWithACacheIsThatOfTheWholeContext) {
    expect_the_same(gpt(), kOne, 20);
    expect_the_same(gpt(), kThree, 20);
    expect_the_same(gpt(), {Tokens(32, 9)}, 1);  // a full context
}

TEST_F(Generation, OfALlamaWithSharedKeysIsThatOfTheWholeContext) {
    expect_the_same(llama(), kOne, 20);
    expect_the_same(llama(), kThree, 20);
}

TEST_F(Generation, OfOtherModelsIsThatOfTheWholeContext) {
    job::Job fused = gpt(), experts = gpt(), tied = llama();
    fused.model.attention = job::AttentionKind::fused;
    expect_the_same(fused, kThree, 10);
    experts.model.experts = 4;
    experts.model.experts_per_token = 2;
    expect_the_same(experts, kThree, 10);
    tied.model.tied_embeddings = true;
    expect_the_same(tied, kThree, 10);
}

// Keys and values of a token: 2 x kv heads x head width in each layer.
TEST_F(Generation, ACacheTakesTheMemoryOfItsKeysAndValues) {
    const auto cache_of = [](const job::Job& job) {
        const sharding::Program program(job, sharding::Texts{3, 8});
        for (const plan::Buffer& buffer : program.setup().buffers)
            if (buffer.name == "key/value cache") return buffer.bytes;
        return std::int64_t{-1};
    };
    const job::Job job = gpt();
    EXPECT_EQ(cache_of(job), std::int64_t{3} * 32 * 2 * 32 * job.model.layers * 4);
    EXPECT_EQ(cache_of(llama()), cache_of(job) / 2);
}

// Of a block 12 w^2 weights and 9 w rows (queries, keys and values, projection, both of the feed-forward
// part), of the head as many rows as the vocabulary has tokens; the embeddings, norms and biases stay.
TEST_F(Generation, InInt8HoldsAByteOfEachWeightOfLinearsAndAScaleOfEachRow) {
    const job::Job job = gpt();
    const auto parameters = [&](bool int8) {
        const sharding::Program program(job, sharding::Texts{1, 8, 1, int8});
        std::int64_t bytes = 0;
        for (const plan::Buffer& buffer : program.setup().buffers)
            if (buffer.category == plan::MemoryCategory::parameters) bytes += buffer.bytes;
        return bytes;
    };
    const std::int64_t layers = job.model.layers, width = job.model.width, tokens = model::vocabulary(job);
    const std::int64_t weights = layers * 12 * width * width + tokens * width;
    EXPECT_EQ(parameters(false) - parameters(true), 3 * weights - 4 * (layers * 9 * width + tokens));
}

// What the simulator takes for the time of a kernel that is bound by memory.
TEST_F(Generation, InInt8MovesTheBytesThatItsPlanShows) {
    const sharding::Program program(gpt(), sharding::Texts{2, 8, 1, true});
    int kernels = 0;
    for (const plan::Op& op : program.decode()->ops) {
        if (op.kind != plan::OpKind::kernel || op.kernel().kernel != plan::Kernel::int8_linear_forward)
            continue;
        const auto& dims = op.kernel().dims;
        const kernels::Cost cost =
            kernels::int8_linear_forward_cost(dims[0], dims[1], dims[2], op.args.size() > 4);
        EXPECT_EQ(op.bytes, cost.bytes);
        EXPECT_EQ(op.flops, cost.flops);
        ++kernels;
    }
    EXPECT_EQ(kernels, 4 * gpt().model.layers + 1);
    std::int64_t live = 0;
    EXPECT_NE(print_plan(*program.decode(), {}, live)
                  .find("weight: head.weight (int8), scales: head.weight (scales) | rows 2, in 32, out 256"),
              std::string::npos);
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::executor
