// Whole models through the cpu executor's kernels: their backward compared with finite differences, and
// options that must not change a gradient (checkpointing, frozen neighbours) or may change it slightly
// (bf16).
#include <cmath>
#include <cstring>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "tests/trainer/model_testing.h"
#include "trainer/executor/cpu_kernels.h"
#include "trainer/job/masking.h"
#include "trainer/kernels/random.h"

namespace shardscope::trainer::model {
namespace TEST_FILE {

using testing::Pass;
using testing::small_bert;
using testing::small_gpt;
using testing::small_llama;
using testing::small_mlp;

using Floats = std::vector<float>;

float from_bf16(std::uint16_t bits) {
    const std::uint32_t wide = std::uint32_t{bits} << 16;
    float value = 0;
    std::memcpy(&value, &wide, sizeof value);
    return value;
}

std::uint16_t to_bf16(float value) {  // to nearest even
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    return static_cast<std::uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

// A model with its parameters, stepped by hand: each Plan's kernels in program order. Memory contains NaN
// until a kernel has written it, and again once it is freed.
class OneDevice {
  public:
    explicit OneDevice(const job::Job& job) : job_(job), tree_(testing::tree_of(job)) {
        for (const Parameter* parameter : tree_.parameters) {
            const auto n = static_cast<std::size_t>(parameter->elements());
            Floats& values = parameters_.emplace_back(n, parameter->init.a);
            const std::uint64_t stream = kernels::stream_of(parameter->path);
            if (parameter->init.kind == InitKind::normal) {
                kernels::fill_normal(values.data(), n, 1, stream, 0, parameter->init.a, parameter->init.b);
            } else if (parameter->init.kind == InitKind::uniform) {
                kernels::fill_uniform(values.data(), n, 1, stream, 0, parameter->init.a, parameter->init.b);
            }
        }
    }

    const ModuleTree& tree() const { return tree_; }
    Floats& parameter(std::size_t id) { return parameters_[id]; }
    Floats& parameter(const std::string& path) {
        for (const Parameter* parameter : tree_.parameters) {
            if (parameter->path == path) return parameters_[static_cast<std::size_t>(parameter->id)];
        }
        throw std::logic_error("no parameter " + path);
    }

    // The loss, with the masks that training uses.
    double loss() {
        run({.backward = false});
        return loss_;
    }
    // Gradients by parameter id, of the parameters that have one.
    const std::map<int, Floats>& gradients() {
        run({});
        return gradients_;
    }
    double last_loss() const { return loss_; }
    // The id of the first module whose output was not finite; -1 if there is none.
    int not_finite() {
        run({.backward = false, .finite_flag = true});
        return flag_;
    }

  private:
    using Bytes = std::vector<std::byte>;

    bool bf16() const { return job_.precision.param == job::Precision::bf16; }

    Floats floats(const Bytes& bytes) const {
        Floats values(bytes.size() / (bf16() ? 2 : 4));
        if (!bf16()) {
            std::memcpy(values.data(), bytes.data(), bytes.size());
            return values;
        }
        std::vector<std::uint16_t> raw(values.size());
        std::memcpy(raw.data(), bytes.data(), bytes.size());
        std::transform(raw.begin(), raw.end(), values.begin(), from_bf16);
        return values;
    }

    Bytes bytes(const Floats& values) const {
        Bytes made(values.size() * (bf16() ? 2 : 4));
        if (!bf16()) {
            std::memcpy(made.data(), values.data(), made.size());
            return made;
        }
        std::vector<std::uint16_t> raw(values.size());
        std::transform(values.begin(), values.end(), raw.begin(), to_bf16);
        std::memcpy(made.data(), raw.data(), made.size());
        return made;
    }

    // The content of the batch: normal features, or tokens.
    void fill(Bytes& bytes, const char* name) const {
        const std::uint64_t stream = kernels::stream_of(name);
        const std::size_t n = bytes.size() / 4;
        const bool labels = job_.reads_images() && std::string_view(name) == "target";
        if (job_.model.type == job::ModelType::mlp || (job_.reads_images() && !labels)) {
            return kernels::fill_normal(reinterpret_cast<float*>(bytes.data()), n, 5, stream, 0, 0, 1);
        }
        auto* tokens = reinterpret_cast<std::int32_t*>(bytes.data());
        const bool masked = job_.model.type == job::ModelType::bert && std::string_view(name) == "target";
        const auto context = static_cast<std::size_t>(job_.model.context);
        for (std::size_t i = 0; i < n; ++i) {
            tokens[i] = static_cast<std::int32_t>(
                kernels::random_bits(5, stream, i) %
                static_cast<std::uint64_t>(labels ? job_.data.classes : vocabulary(job_)));
            if (masked && i % context >= static_cast<std::size_t>(job::masked_tokens(job_.model.context)))
                tokens[i] = -1;
        }
    }

    void run(testing::PassOptions options) {
        const Pass pass = testing::write_pass(tree_, job_, options);
        std::vector<Bytes> memory(pass.plan.buffers.size());
        for (std::size_t id = 0; id < parameters_.size(); ++id) memory[id] = bytes(parameters_[id]);
        std::set<plan::BufferId> kept = {pass.loss, pass.finite_flag};
        for (const auto& [id, buffer] : pass.gradients) kept.insert(buffer);
        device::KernelContext context;
        context.seed = 1;
        std::vector<std::byte*> data;
        for (const plan::Op& op : pass.plan.ops) {
            if (op.kind == plan::OpKind::allocate || op.kind == plan::OpKind::free) {
                const plan::BufferId id = op.args[0].buffer;
                if (op.kind == plan::OpKind::free && kept.contains(id)) continue;
                Bytes& contents = memory[static_cast<std::size_t>(id)];
                contents.assign(static_cast<std::size_t>(op.args[0].bytes), std::byte{0xFF});
                if (op.kind == plan::OpKind::free) continue;
                if (id == pass.input) fill(contents, "input");
                if (id == pass.target) fill(contents, "target");
            } else if (op.kind == plan::OpKind::memset) {
                const plan::Arg& to = op.args[0];
                std::memset(memory[static_cast<std::size_t>(to.buffer)].data() + to.offset, op.value(),
                            static_cast<std::size_t>(to.bytes));
            } else if (op.kind == plan::OpKind::kernel) {
                data.clear();
                for (const plan::Arg& arg : op.args) {
                    data.push_back(arg.buffer < 0
                                       ? nullptr
                                       : memory[static_cast<std::size_t>(arg.buffer)].data() + arg.offset);
                }
                executor::run_kernel(op, data, context);
            }
        }
        std::memcpy(&loss_, memory[static_cast<std::size_t>(pass.loss)].data(), sizeof loss_);
        if (pass.finite_flag >= 0) {
            std::memcpy(&flag_, memory[static_cast<std::size_t>(pass.finite_flag)].data(), sizeof flag_);
        }
        gradients_.clear();
        for (const auto& [id, buffer] : pass.gradients) {
            gradients_[id] = floats(memory[static_cast<std::size_t>(buffer)]);
        }
    }

    job::Job job_;
    ModuleTree tree_;
    std::vector<Floats> parameters_;
    std::map<int, Floats> gradients_;
    double loss_ = 0;
    std::int32_t flag_ = 0;
};

double norm(const Floats& values) {
    double sum = 0;
    for (const float value : values) sum += double{value} * value;
    return std::sqrt(sum);
}

// Along a random direction in each parameter, the change of the loss equals gradient times direction.
void check_gradients(const job::Job& job, double h) {
    OneDevice device(job);
    const std::map<int, Floats> gradients = device.gradients();
    ASSERT_EQ(gradients.size(), device.tree().parameters.size());
    for (const auto& [id, gradient] : gradients) {
        const std::string& path = device.tree().parameters[static_cast<std::size_t>(id)]->path;
        Floats& parameter = device.parameter(static_cast<std::size_t>(id));
        ASSERT_EQ(gradient.size(), parameter.size()) << path;
        const Floats saved = parameter;
        double expected = 0;
        std::vector<double> direction(saved.size());
        for (std::size_t e = 0; e < saved.size(); ++e) {
            direction[e] = kernels::normal(99, static_cast<std::uint64_t>(id), e);
            expected += direction[e] * gradient[e];
        }
        double loss[2];
        for (const int side : {0, 1}) {
            for (std::size_t e = 0; e < saved.size(); ++e) {
                parameter[e] = static_cast<float>(saved[e] + (side == 0 ? h : -h) * direction[e]);
            }
            loss[side] = device.loss();
        }
        parameter = saved;
        const double measured = (loss[0] - loss[1]) / (2 * h);
        // fp32 forward passes: the difference of two losses near 1 carries about 1e-7 / h.
        EXPECT_NEAR(measured, expected, 0.02 * norm(gradient) + 1e-6 / h) << path;
        EXPECT_GT(norm(gradient), 0) << path << " gets no gradient";
    }
}

// A model with many rows, because a ReLU that a step of h switches adds an error of its own.
job::Job wide_mlp() {
    job::Job job = small_mlp();
    job.data.batch = 2048;
    return job;
}

job::Job tied_with_dropout(job::Job job) {
    job.model.tied_embeddings = true;
    job.model.dropout = 0.2;
    job.data.batch = 4;
    return job;
}

TEST(Gradients, Mlp) {
    check_gradients(wide_mlp(), 2e-3);
}

TEST(Gradients, MlpWithoutBias) {
    job::Job job = wide_mlp();
    job.model.bias = false;
    check_gradients(job, 2e-3);
}

TEST(Gradients, Gpt) {
    check_gradients(small_gpt(), 2e-3);
}

TEST(Gradients, WithEachActivation) {
    for (std::size_t kind = 1; kind < std::size(kernels::kActivationNames); ++kind) {
        SCOPED_TRACE(kernels::kActivationNames[kind]);
        job::Job mlp = wide_mlp(), gpt = small_gpt();
        mlp.model.activation = gpt.model.activation = static_cast<kernels::ActivationKind>(kind);
        check_gradients(mlp, 2e-3);
        // A step of h in a whole weight switches too many of the few ReLUs.
        if (gpt.model.activation != kernels::ActivationKind::relu) check_gradients(gpt, 2e-3);
    }
}

job::Job fused(job::Job job) {
    job.model.attention = job::AttentionKind::fused;
    return job;
}

TEST(Gradients, WithFusedAttention) {
    check_gradients(fused(small_gpt()), 2e-3);
    check_gradients(fused(small_llama()), 2e-3);
}

// A bert has bidirectional attention, normalized sums, and a loss over few positions.
TEST(Gradients, Bert) {
    check_gradients(small_bert(), 2e-3);
    check_gradients(fused(tied_with_dropout(small_bert())), 2e-3);
}

// Both compute the same function, with sums in another order.
TEST(Gradients, WithFusedAttentionEqualThoseWithPlain) {
    for (const job::Job& job : {small_gpt(), small_llama(), small_bert()}) {
        OneDevice plain(job), other(fused(job));
        const std::map<int, Floats> expected = plain.gradients();
        for (const auto& [id, gradient] : other.gradients()) {
            Floats difference = gradient;
            for (std::size_t i = 0; i < difference.size(); ++i) difference[i] -= expected.at(id)[i];
            EXPECT_LT(norm(difference), 1e-5 * norm(expected.at(id)));
        }
        EXPECT_NEAR(other.last_loss(), plain.last_loss(), 1e-6);
    }
}

job::Job of_images(const std::string& model, const std::string& data) {
    return job::parse_job("[model]\n" + model + "\n[data]\ntype = 'images'\nbatch = 3\nclasses = 5\n" + data,
                          "job.toml");
}

TEST(Gradients, Vit) {
    job::Job vit = of_images("name = 'vit_b_16'\nlayers = 2\nheads = 2\nwidth = 8", "image = 32");
    check_gradients(vit, 2e-3);
    vit.model.dropout = 0.2;
    check_gradients(fused(vit), 2e-3);
}

TEST(Gradients, Vgg) {
    check_gradients(of_images("name = 'vgg11'\nwidth = 1\ndropout = 0.1", "image = 50"), 2e-4);
}

TEST(Gradients, GptTiedWithDropout) {
    check_gradients(tied_with_dropout(small_gpt()), 2e-3);
}

TEST(Gradients, Llama) {
    check_gradients(small_llama(), 2e-3);
}

TEST(Gradients, LlamaTiedWithDropout) {
    check_gradients(tied_with_dropout(small_llama()), 2e-3);
}

// With every expert chosen, a small step changes no choice. A capacity below the tokens leaves some without
// rows.
job::Job with_experts(job::Job job, int experts, int per_token, double capacity = 0) {
    job.model.experts = experts;
    job.model.experts_per_token = per_token;
    job.model.capacity_factor = capacity;
    return job;
}

TEST(Gradients, OfExperts) {
    for (const double capacity : {0.0, 0.6}) {
        check_gradients(with_experts(small_gpt(), 3, 3, capacity), 2e-3);
        check_gradients(with_experts(small_llama(), 3, 3, capacity), 2e-3);
    }
}

// Two equal experts, of which each token uses both by halves, are one that it uses wholly.
TEST(Gradients, OfEqualExpertsAreThoseOfOne) {
    OneDevice two(with_experts(small_llama(), 2, 2)), one(with_experts(small_llama(), 1, 1));
    for (const Parameter* parameter : one.tree().parameters) {
        const bool grouped = parameter->path.find("experts.") != std::string::npos;
        const Floats values = one.parameter(parameter->path);
        Floats& of_two = two.parameter(parameter->path);
        if (parameter->path.find("router") != std::string::npos) {
            of_two.assign(of_two.size(), 0.0F);
            continue;
        }
        for (std::size_t i = 0; i < of_two.size(); ++i) of_two[i] = values[grouped ? i % values.size() : i];
    }
    EXPECT_NEAR(two.loss(), one.loss(), 1e-6);
    const std::map<int, Floats> of_both = two.gradients(), of_one = one.gradients();
    for (const Parameter* parameter : one.tree().parameters) {
        if (parameter->path.find("router") != std::string::npos) continue;
        const Floats &both = of_both.at(parameter->id), &expected = of_one.at(parameter->id);
        Floats sum(expected.size());
        for (std::size_t i = 0; i < both.size(); ++i) sum[i % sum.size()] += both[i];
        for (std::size_t i = 0; i < sum.size(); ++i)
            ASSERT_NEAR(sum[i], expected[i], 1e-6) << parameter->path << ", element " << i;
    }
}

// An untrained language model: about ln 256 = 5.545 nats per byte.
TEST(Gradients, StartAtTheLossOfAnUntrainedModel) {
    for (const job::Job& job : {small_gpt(), small_llama(), small_bert()})
        EXPECT_NEAR(OneDevice(job).loss(), 5.545, 0.1);
}

// The recomputed forward has the same bits, including dropout's masks.
TEST(Gradients, AreTheSameBitsWithCheckpointing) {
    for (const job::Job& model :
         {tied_with_dropout(small_gpt()), tied_with_dropout(small_llama()),
          fused(tied_with_dropout(small_llama())), with_experts(tied_with_dropout(small_gpt()), 4, 2, 1.0),
          with_experts(tied_with_dropout(small_llama()), 4, 2)}) {
        OneDevice plain(model);
        const std::map<int, Floats> expected = plain.gradients();
        const bool experts = model.model.experts > 0;
        for (const char* classes : {"Block", "CausalSelfAttention", "Linear", "Dropout", "Experts",
                                    "MixtureOfExperts", "GroupedLinear"}) {
            if (!experts && std::string_view(classes) == "Experts") break;
            job::Job job = model;
            const bool llama = job.model.type == job::ModelType::llama;
            const std::string name = std::string(classes) == "Block" && llama ? "LlamaBlock" : classes;
            job.memory.activation_checkpointing = job::parse_modules("module:" + name);
            OneDevice checkpointed(job);
            EXPECT_EQ(checkpointed.gradients(), expected) << name;
            EXPECT_EQ(checkpointed.last_loss(), plain.last_loss()) << name;
        }
    }
}

// Frozen parameters have no gradient; the others' gradients do not change.
TEST(Gradients, AreTheSameBitsWithFrozenParameters) {
    for (const job::Job& model : {small_gpt(), small_llama()}) {
        const bool llama = model.model.type == job::ModelType::llama;
        OneDevice plain(model);
        const std::map<int, Floats> all = plain.gradients();
        for (const char* classes : {"Embedding", "Linear", "Norm"}) {
            const std::string name = std::string(classes) != "Norm" ? classes
                                     : llama                        ? "RMSNorm"
                                                                    : "LayerNorm";
            job::Job job = model;
            job.train.freeze = job::parse_modules("module:" + name);
            OneDevice device(job);
            const std::map<int, Floats> some = device.gradients();
            EXPECT_LT(some.size(), all.size());
            for (const auto& [id, gradient] : some) EXPECT_EQ(gradient, all.at(id)) << name;
            for (const Parameter* parameter : device.tree().parameters) {
                EXPECT_EQ(some.contains(parameter->id), parameter->trained) << parameter->path;
            }
        }
    }
}

// bf16 keeps 8 bits: a rounding is 2^-9 = 0.2 % of a value; gradients accumulate some tens of them.
TEST(Gradients, InBf16AreNearThoseInFp32) {
    for (job::Job job :
         {small_mlp(), small_gpt(), small_llama(), small_bert(), fused(small_gpt()), fused(small_llama()),
          with_experts(small_gpt(), 3, 3), with_experts(small_llama(), 3, 3)}) {
        OneDevice exact(job);
        const std::map<int, Floats> expected = exact.gradients();
        job.precision = {job::Precision::bf16, job::Precision::bf16, job::Precision::bf16};
        OneDevice rounded(job);
        for (const auto& [id, gradient] : rounded.gradients()) {
            Floats difference = gradient;
            for (std::size_t i = 0; i < difference.size(); ++i) difference[i] -= expected.at(id)[i];
            EXPECT_LT(norm(difference), 0.05 * norm(expected.at(id)))
                << rounded.tree().parameters[static_cast<std::size_t>(id)]->path;
        }
        EXPECT_NEAR(rounded.last_loss(), exact.last_loss(), 0.01 * exact.last_loss());
    }
}

TEST(Gradients, NameTheFirstModuleWhoseOutputIsNotFinite) {
    for (const job::Job& job : {small_gpt(), small_llama()}) {
        OneDevice device(job);
        EXPECT_EQ(device.not_finite(), -1);
        const std::string path = "blocks.1.attention.projection";
        device.parameter(path + ".weight")[7] = INFINITY;
        const int first = device.not_finite();
        ASSERT_GE(first, 0);
        EXPECT_EQ(device.tree().modules[static_cast<std::size_t>(first)]->path, path);
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::model
