// Every axis of the mesh alone, every pair of axes, and some meshes of three, with experts in several orders:
// each has the losses, the validation loss and the gradients of one rank. A gradient is what the first step
// leaves in SGD's momentum, read from a checkpoint in which every parameter is whole, whatever mesh has saved
// it.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <map>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "mesh_testing.h"
#include "tests/trainer/checkpoint_testing.h"
#include "trainer/checkpoint/loader.h"
#include "trainer/checkpoint/saver.h"
#include "trainer/executor/rank_runner.h"

namespace shardscope::trainer {
namespace TEST_FILE {

using testing::expect_close;
using testing::SampleText;

enum class Model : std::uint8_t { mlp, gpt, gpt_tied, llama, llama_one, moe_gpt, moe_llama };
constexpr std::array kModels = {Model::mlp,       Model::gpt,     Model::gpt_tied, Model::llama,
                                Model::llama_one, Model::moe_gpt, Model::moe_llama};
constexpr std::array kModelNames = {"Mlp", "Gpt", "GptTied", "LlamaGqa", "LlamaMqa", "MoeGpt", "MoeLlama"};

bool has_experts(Model model) {
    return model == Model::moe_gpt || model == Model::moe_llama;
}
// Four query heads share two heads of keys and values, or one; 0: it is no llama.
int kv_heads(Model model) {
    return model == Model::llama || model == Model::moe_llama ? 2 : model == Model::llama_one ? 1 : 0;
}

struct MeshCase {
    Model model = Model::mlp;
    int tensor = 1, context = 1, expert = 1, pipeline = 1, data = 1;
    bool sequence = false, fsdp = false, ring = false;
    bool v = false;               // whether the pipeline is a V: ZB-V
    std::string_view order = {};  // of the axes; empty: the default

    int ranks() const { return tensor * context * pipeline * data; }
};

std::string name_of(const MeshCase& mesh) {
    std::string name = kModelNames[static_cast<std::size_t>(mesh.model)];
    const auto axis = [&](const char* axis_name, int size) {
        if (size > 1) name += fmt::format("_{}{}", axis_name, size);
    };
    axis(mesh.sequence ? "sequence" : "tensor", mesh.tensor);
    axis(mesh.ring ? "ring" : "context", mesh.context);
    axis("expert", mesh.expert);
    axis(mesh.v ? "zb_v" : "pipeline", mesh.pipeline);
    axis(mesh.fsdp ? "fsdp" : "ddp", mesh.data);
    if (!mesh.order.empty()) name += fmt::format("_{}", mesh.order);
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}

void PrintTo(const MeshCase& mesh, std::ostream* out) {
    *out << name_of(mesh);
}

// Micro-batches of four samples, as many as a pipeline has places; several data ranks divide the samples of
// each.
job::Job job_of(const MeshCase& mesh, const SampleText& text) {
    constexpr int kBatch = 4;
    job::Job job =
        mesh.model == Model::mlp ? testing::mlp_job(8, 24, kBatch, 1) : testing::gpt_job(text, kBatch, 1);
    job.run.steps = 2;
    job.checkpoint.every = 1;
    job.train.accumulation = mesh.pipeline;
    job.train.accumulation_sync = mesh.pipeline == 1;
    job.optimizer = {};
    job.optimizer.type = job::OptimizerType::sgd;
    job.optimizer.momentum = 0.9;
    job.optimizer.lr = 0.1;
    if (mesh.model != Model::mlp) {
        job.model.layers = 4;
        job.model.heads = 4;
        job.data.validation = 0.2;
        job.model.tied_embeddings = mesh.model == Model::gpt_tied;
    }
    if (kv_heads(mesh.model) > 0) {
        job.model.type = job::ModelType::llama;
        job.model.kv_heads = kv_heads(mesh.model);
    }
    if (has_experts(mesh.model)) {
        job.model.experts = 4;
        job.model.experts_per_token = 2;
        job.model.balance_loss = 0.1;
    }
    job.run.ranks = mesh.ranks();
    job.data.batch = kBatch / mesh.data;
    job.parallel.mode = mesh.fsdp                      ? job::ParallelMode::fsdp
                        : mesh.data * mesh.context > 1 ? job::ParallelMode::ddp
                                                       : job::ParallelMode::none;
    if (mesh.fsdp)
        job.fsdp.wrap = job::parse_wrap(mesh.model == Model::mlp                  ? "module:Linear"
                                        : job.model.type == job::ModelType::llama ? "module:LlamaBlock"
                                                                                  : "module:Block");
    job.parallel.tensor = mesh.tensor;
    job.parallel.sequence = mesh.sequence;
    job.parallel.context = mesh.context;
    if (mesh.ring) job.parallel.context_exchange = job::ContextExchange::ring;
    job.parallel.expert = mesh.expert;
    job.parallel.pipeline = mesh.pipeline;
    if (mesh.v) {
        job.parallel.schedule = "zb_v";
        job.parallel.virtual_stages = 2;
    }
    if (!mesh.order.empty()) job.parallel.order = job::parse_order(std::string(mesh.order));
    return job;
}

// What the model and its tests allow: parts that experts and stages can be divided into.
bool possible(const MeshCase& mesh) {
    if (mesh.ranks() > 8) return false;
    if (mesh.model == Model::mlp && (mesh.sequence || mesh.context > 1)) return false;
    if (mesh.expert > 1 && (!has_experts(mesh.model) || mesh.data * mesh.context % mesh.expert != 0))
        return false;
    return true;
}

std::vector<MeshCase> every_mesh() {
    const auto each = [](int size) {
        return std::vector<MeshCase>{{.tensor = size},
                                     {.tensor = size, .sequence = true},
                                     {.context = size},
                                     {.context = size, .ring = true},
                                     {.expert = size, .data = size},
                                     {.pipeline = size},
                                     {.data = size},
                                     {.data = size, .fsdp = true}};
    };
    std::vector<MeshCase> meshes;
    for (const Model model : kModels) {
        const auto add = [&](std::initializer_list<MeshCase> parts) {
            MeshCase mesh{.model = model};
            for (const MeshCase& part : parts) {
                mesh.tensor *= part.tensor;
                mesh.context *= part.context;
                mesh.expert *= part.expert;
                mesh.pipeline *= part.pipeline;
                mesh.data = std::max(mesh.data, part.data);
                mesh.sequence = mesh.sequence || part.sequence;
                mesh.fsdp = mesh.fsdp || part.fsdp;
                mesh.ring = mesh.ring || part.ring;
                mesh.v = mesh.v || part.v;
                if (!part.order.empty()) mesh.order = part.order;
            }
            const bool known = std::any_of(meshes.begin(), meshes.end(), [&](const MeshCase& other) {
                return name_of(other) == name_of(mesh);
            });
            if (!known && possible(mesh)) meshes.push_back(mesh);
        };
        for (const MeshCase& axis : each(4)) add({axis});
        const std::vector<MeshCase> twos = each(2);
        for (const MeshCase& one : twos) {
            add({one});
            for (const MeshCase& other : twos) {
                const bool same = (one.tensor > 1 && other.tensor > 1) ||
                                  (one.context > 1 && other.context > 1) ||
                                  (one.pipeline > 1 && other.pipeline > 1);
                if (!same) add({one, other});
            }
        }
        const MeshCase tensor{.tensor = 2}, sequence{.tensor = 2, .sequence = true}, context{.context = 2},
            ring{.context = 2, .ring = true}, expert{.expert = 2, .data = 2}, pipeline{.pipeline = 2},
            fsdp{.data = 2, .fsdp = true};
        add({tensor, pipeline, fsdp});
        add({sequence, pipeline, fsdp});
        add({sequence, ring, pipeline});
        add({tensor, context, fsdp});
        add({context, expert, pipeline});
        add({ring, pipeline, fsdp});
        add({tensor, expert, fsdp});
        if (model == Model::gpt_tied) {
            const MeshCase data{.data = 2}, v{.pipeline = 2, .v = true};
            for (const MeshCase& other : {data, fsdp, tensor, context}) add({v, other});
            add({v, fsdp, sequence});
        }
        if (!has_experts(model)) continue;
        for (const char* order : {"pp-cp-dp-ep-tp", "tp-dp-cp-ep-pp", "tp-cp-pp-dp-ep"}) {
            add({context, expert, tensor, fsdp, {.order = order}});
            add({ring, expert, pipeline, {.order = order}});
        }
    }
    return meshes;
}

#ifdef __has_feature  // of clang, with which the sanitizers are built
constexpr bool kSanitizesThreads = __has_feature(thread_sanitizer);
#else
constexpr bool kSanitizesThreads = false;
#endif

// Under the thread sanitizer, which takes several times as long, each mesh once: who runs beside whom follows
// from it. The models take turns.
std::vector<MeshCase> meshes_here() {
    std::vector<MeshCase> meshes = every_mesh();
    if (!kSanitizesThreads) return meshes;
    std::map<std::string, std::vector<MeshCase>> by_mesh;
    for (const MeshCase& mesh : meshes) {
        const std::string name = name_of(mesh);
        by_mesh[name.substr(name.find('_'))].push_back(mesh);
    }
    meshes.clear();
    for (const auto& [name, models] : by_mesh) meshes.push_back(models[meshes.size() % models.size()]);
    return meshes;
}

struct Result {
    std::vector<double> losses, validation;
    testing::Gradients gradients;  // whole ones of the first step, by the parameter's path
};

// A state of every parameter that has it.
testing::Gradients whole(const checkpoint::StoredCheckpoint& stored, const std::string& state) {
    std::vector<std::string> files;
    for (std::size_t i = 0; i < stored.manifest().files.size(); ++i)
        files.push_back(testing::bytes_of(stored.file_path(i)));
    testing::Gradients all;
    for (const checkpoint::ManifestParameter& parameter : stored.manifest().parameters) {
        std::vector<float> values(static_cast<std::size_t>(parameter.elements()), NAN);
        for (const checkpoint::ManifestPiece& piece :
             checkpoint::pieces_within(parameter, state, 0, parameter.elements())) {
            std::memcpy(values.data() + piece.first, files[piece.file].data() + piece.offset,
                        static_cast<std::size_t>(4 * piece.elements));
        }
        all[parameter.path] = std::move(values);
    }
    return all;
}

Result train(const job::Job& job) {
    const sharding::Program program(job);
    const data::DataSource data = data::open_data(job);
    const testing::TemporaryFolder folder;
    job::Job saved = job;
    saved.checkpoint.save = folder.string();
    saved.checkpoint.format = job::CheckpointFormat::full;
    checkpoint::CheckpointSaver saver(
        saved, checkpoint::layout_of(program), {},
        [](const checkpoint::SaveReport& report) { EXPECT_EQ(report.error, ""); });
    executor::RunOptions options;
    options.hooks.at_step_end = [&](int rank, std::int64_t steps_done, executor::RankRunner& runner) {
        if (steps_done == 1)
            saver.save(rank, steps_done, [&](const plan::Arg& arg) { return runner.contents(arg); });
    };
    options.validation = data.validation.get();
    const executor::RunResult run = run_training(program, *data.train, options);
    Result result{.losses = run.losses, .validation = {}, .gradients = {}};
    for (const executor::ValidationReport& report : run.validation) result.validation.push_back(report.loss);
    result.gradients = whole(checkpoint::StoredCheckpoint(folder.string()), "momentum_buffer");
    return result;
}

// The run of one rank with the same micro-batches, each once in this process.
const Result& one_rank(const MeshCase& mesh, const SampleText& text) {
    static std::map<std::pair<Model, int>, Result> known;
    auto [it, fresh] = known.try_emplace({mesh.model, mesh.pipeline});
    if (fresh) {
        job::Job job = job_of({.model = mesh.model, .pipeline = mesh.pipeline}, text);
        job.parallel.pipeline = job.run.ranks = 1;
        it->second = train(job);
    }
    return it->second;
}

class EveryMesh : public ::testing::TestWithParam<MeshCase> {};
INSTANTIATE_TEST_SUITE_P(Of, EveryMesh, ::testing::ValuesIn(meshes_here()),
                         [](const auto& made) { return name_of(made.param); });

TEST_P(EveryMesh, HasTheLossesAndGradientsOfOneRank) {
    const MeshCase& mesh = GetParam();
    const SampleText text;
    const Result& expected = one_rank(mesh, text);
    const Result found = train(job_of(mesh, text));
    expect_close(found.losses, expected.losses, name_of(mesh));
    if (mesh.model == Model::mlp)
        EXPECT_EQ(found.validation.size(), 0U);
    else
        expect_close(found.validation, expected.validation, name_of(mesh) + ", validation");
    expect_close(found.gradients, expected.gradients, name_of(mesh));
    const bool only_pipeline = mesh.pipeline == mesh.ranks() && mesh.model != Model::gpt_tied;
    if (only_pipeline) {
        EXPECT_EQ(found.losses, expected.losses);
        EXPECT_EQ(found.gradients, expected.gradients);
    }
}

// 273 meshes: no axis and no model may drop out unseen.
TEST(EveryMesh, AreAxesAndPairsOfEachModel) {
    std::map<Model, int> meshes, of_three;
    for (const MeshCase& mesh : every_mesh()) {
        const int axes = (mesh.tensor > 1 ? 1 : 0) + (mesh.context > 1 ? 1 : 0) +
                         (mesh.pipeline > 1 ? 1 : 0) + (mesh.data > 1 ? 1 : 0) + (mesh.expert > 1 ? 1 : 0);
        EXPECT_GE(axes, 1) << name_of(mesh);
        ++meshes[mesh.model];
        of_three[mesh.model] += axes >= 3 ? 1 : 0;
    }
    EXPECT_EQ(meshes, (std::map<Model, int>{{Model::mlp, 14},
                                            {Model::gpt, 37},
                                            {Model::gpt_tied, 42},
                                            {Model::llama, 37},
                                            {Model::llama_one, 37},
                                            {Model::moe_gpt, 53},
                                            {Model::moe_llama, 53}}));
    for (const auto& [model, count] : of_three) EXPECT_GE(count, 1) << name_of({.model = model});
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer
