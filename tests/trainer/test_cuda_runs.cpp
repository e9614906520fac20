// Whole jobs on the CUDA device, simulated on the CPU: the same Plans, whatever the strategy, give the CPU's
// losses and memory, and the same bits as each other; in whatever order the streams run.
#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "parity_grid.h"
#include "played_job.h"
#include "tests/traces/temporary_folder.h"
#include "tests/trainer/image_data.h"
#include "tests/trainer/kernel_testing.h"
#include "trainer/executor/rank_runner.h"

namespace shardscope::trainer::cuda {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::PlayedMachine;
using testing::Point;
using testing::run;
using testing::run_played;

// The job of a point of the grid: three steps, with fused attention at every second point.
job::Job job_of(const Point& p, const testing::SampleText& text, std::size_t number) {
    job::Job job = testing::job_at(p, text);
    job.run.steps = 3;
    const bool can_fuse = job.model.type != job::ModelType::mlp && job.model.type != job::ModelType::bert;
    if (number % 2 == 1 && can_fuse) job.model.attention = job::AttentionKind::fused;
    if (!traits(job.ddp.comm_hook.kind).on_gpu) job.ddp.comm_hook = {};  // load_job refuses it
    return job;
}

void expect_near(const std::vector<double>& losses, const std::vector<double>& expected, double relative,
                 const std::string& what) {
    ASSERT_EQ(losses.size(), expected.size()) << what;
    for (std::size_t i = 0; i < losses.size(); ++i) {
        EXPECT_NEAR(losses[i] / expected[i], 1.0, relative) << what << ", step " << i;
    }
}

// These runs take seconds, as each thread of a GPU is simulated. They compare the device as a whole with the
// CPU on machines without a GPU.
TEST(CudaRuns, GiveTheLossesAndTheMemoryOfTheCpu) {
    const testing::SampleText text;
    const std::vector<Point> points = testing::every_pair();
    for (std::size_t i = 0; i < points.size(); i += 5) {
        const job::Job job = job_of(points[i], text, i);
        const executor::RunResult cpu = run(job), cuda = run_played(job);
        const std::string what = testing::describe(points[i]);
        expect_near(cuda.losses, cpu.losses, 2e-5, what);
        ASSERT_EQ(cuda.peaks.size(), cpu.peaks.size());
        for (std::size_t r = 0; r < cpu.peaks.size(); ++r) {
            EXPECT_EQ(cuda.peaks[r].bytes, cpu.peaks[r].bytes) << what << ", rank " << r;
            EXPECT_EQ(cuda.peaks[r].at_peak, cpu.peaks[r].at_peak) << what << ", rank " << r;
        }
    }
    EXPECT_EQ(played_cuda::allocated(), 0U) << "device memory that nobody gave back";
}

TEST(CudaRuns, ATensorGroupGivesTheLossesAndTheMemoryOfTheCpu) {
    const testing::SampleText text;
    for (const bool sequence : {false, true}) {
        job::Job job = testing::with_wrap(testing::gpt_job(text, 1, 4), "module:Block");
        job.run.steps = 2;
        job.model.dropout = 0.1;
        job.model.vocabulary = 257;
        job.train.clip_norm = 0.5;
        job.parallel.tensor = 2;
        job.parallel.sequence = sequence;
        const executor::RunResult cpu = run(job), cuda = run_played(job);
        expect_near(cuda.losses, cpu.losses, 2e-5, sequence ? "sequence" : "tensor");
        ASSERT_EQ(cuda.peaks.size(), cpu.peaks.size());
        for (std::size_t r = 0; r < cpu.peaks.size(); ++r) EXPECT_EQ(cuda.peaks[r].bytes, cpu.peaks[r].bytes);
    }
}

TEST(CudaRuns, RanksThatShareAHeadGiveTheLossesAndTheMemoryOfTheCpu) {
    const testing::SampleText text;
    job::Job job = testing::with_wrap(testing::gpt_job(text, 1, 4), "module:LlamaBlock");
    job.run.steps = 2;
    job.model.type = job::ModelType::llama;
    job.model.heads = 4;
    job.model.kv_heads = 2;
    job.parallel.tensor = 4;
    const executor::RunResult cpu = run(job), cuda = run_played(job);
    expect_near(cuda.losses, cpu.losses, 2e-5, "shared heads");
    ASSERT_EQ(cuda.peaks.size(), cpu.peaks.size());
    for (std::size_t r = 0; r < cpu.peaks.size(); ++r) EXPECT_EQ(cuda.peaks[r].bytes, cpu.peaks[r].bytes);
}

// The host reads the counts before it enqueues the rows; kernels read them on the device.
TEST(CudaRuns, AnExpertGroupGivesTheLossesAndTheMemoryOfTheCpu) {
    const testing::SampleText text;
    job::Job job = testing::with_wrap(testing::gpt_job(text, 1, 2), "module:Block");
    job.run.steps = 2;
    job.model.experts = 4;
    job.model.experts_per_token = 2;
    job.model.balance_loss = 0.1;
    job.parallel.expert = 2;
    const executor::RunResult cpu = run(job), cuda = run_played(job);
    expect_near(cuda.losses, cpu.losses, 2e-5, "experts");
    ASSERT_EQ(cuda.peaks.size(), cpu.peaks.size());
    for (std::size_t r = 0; r < cpu.peaks.size(); ++r) EXPECT_EQ(cuda.peaks[r].bytes, cpu.peaks[r].bytes);
}

// The gradients of a run's first step, by parameter: of SGD's momentum, which begins as the gradient.
class FirstGradients {
  public:
    explicit FirstGradients(const job::Job& job) : program_(job) {}

    executor::RunOptions options() {
        executor::RunOptions options;
        options.hooks.at_step_end = [this](int rank, std::int64_t steps_done, executor::RankRunner& runner) {
            if (steps_done == 1) read(rank, runner);
        };
        return options;
    }
    const std::map<int, testing::Vector>& of_parameters() const { return gradients_; }

  private:
    void read(int rank, executor::RankRunner& runner) {
        const std::lock_guard lock(mutex_);
        for (const sharding::StatePiece& piece : program_.optimizer().pieces(rank)) {
            if (piece.state != "momentum_buffer") continue;
            const plan::HostView view = runner.contents(piece.where);
            ASSERT_EQ(view.bytes().size(), static_cast<std::size_t>(piece.elements) * sizeof(float));
            testing::Floats values(static_cast<std::size_t>(piece.elements));
            std::memcpy(values.data(), view.bytes().data(), view.bytes().size());
            testing::Vector& all = gradients_[piece.parameter];
            const auto end = static_cast<std::size_t>(piece.first + piece.elements);
            if (all.size() < end) all.resize(end);
            std::copy(values.begin(), values.end(), all.begin() + piece.first);
        }
    }

    sharding::Program program_;
    std::mutex mutex_;
    std::map<int, testing::Vector> gradients_;
};

// No gradient differs by more than `tolerance` of its parameter's largest.
void expect_near(const FirstGradients& cuda, const FirstGradients& cpu, double tolerance, const char* what) {
    ASSERT_GT(cpu.of_parameters().size(), 10U) << what;
    ASSERT_EQ(cuda.of_parameters().size(), cpu.of_parameters().size()) << what;
    for (const auto& [parameter, expected] : cpu.of_parameters()) {
        const testing::Vector& found = cuda.of_parameters().at(parameter);
        ASSERT_EQ(found.size(), expected.size()) << what << ", parameter " << parameter;
        EXPECT_LE(testing::relative_error(found, expected), tolerance) << what << ", parameter " << parameter;
    }
}

// Steps and a validation of each network for images: all kernels that their Plans name. Batch norms of few
// pixels amplify rounding, and a ReLU of a number near 0 may go the other way, which moves all gradients by
// about a hundredth. A small step of a resnet18 hides that from the losses; a resnet50 on the processor
// differs from itself with other ranks by some hundredths after one step, so its steps are too small to
// change it. Hence the losses check forwards, and the gradients of the first step are compared themselves.
TEST(CudaRuns, NetworksForImagesGiveTheLossesTheGradientsAndTheMemoryOfTheCpu) {
    const traces::TemporaryFolder folder;
    const std::string train = folder / "data_batch_1.bin", test = folder / "test_batch.bin";
    testing::write_cifar(train, 40, 1);
    testing::write_cifar(test, 12, 2);
    struct Case {
        const char *model, *parallel, *lr;
        double tolerance = 2e-5;
    };
    const Case cases[] = {
        {"name = 'resnet18'\nwidth = 4", "mode = 'ddp'", "0.001", 1e-3},
        {"name = 'resnet18'\nwidth = 3", "mode = 'fsdp'\nsync_batch_norm = true", "0.001", 1e-3},
        {"name = 'resnet50'\nwidth = 4", "mode = 'ddp'\nsync_batch_norm = true", "1e-9"},
        {"name = 'vgg11'\nwidth = 2", "mode = 'fsdp'", "0.01"},
        {"name = 'vit_b_16'\nlayers = 2\nheads = 2\nwidth = 16", "mode = 'ddp'", "0.01"}};
    for (const Case& each : cases) {
        const std::string data = "\n[data]\ntype = 'images'\nimage = 64\nclasses = 10\nbatch = 3\npath = '" +
                                 train + "'\nvalidation_path = '" + test + "'\n";
        job::Job job = job::parse_job(
            std::string("[run]\nsteps = 2\nworkers = 2\nranks = 2\n[model]\n") + each.model + data +
                "[train]\nlabel_smoothing = 0.1\n[optimizer]\nmomentum = 0.9\nlr = " + each.lr +
                "\n[parallel]\n" + each.parallel + "\n",
            "job.toml");
        job.checkpoint.every = 1;  // steps after which gradients can be read
        FirstGradients of_cpu(job), of_cuda(job);
        const executor::RunResult cpu = run(job, of_cpu.options()), cuda = run_played(job, of_cuda.options());
        expect_near(cuda.losses, cpu.losses, each.tolerance, each.model);
        expect_near(of_cuda, of_cpu, 0.03, each.model);
        ASSERT_EQ(cuda.validation.size(), 1U);
        EXPECT_NEAR(cuda.validation[0].loss / cpu.validation[0].loss, 1, each.tolerance) << each.model;
        EXPECT_EQ(cuda.validation[0].accuracy, cpu.validation[0].accuracy) << each.model;
        ASSERT_EQ(cuda.peaks.size(), cpu.peaks.size());
        for (std::size_t r = 0; r < cpu.peaks.size(); ++r) EXPECT_EQ(cuda.peaks[r].bytes, cpu.peaks[r].bytes);
    }
}

TEST(CudaRuns, StrategiesGiveTheSameBits) {
    const testing::SampleText text;
    const std::vector<Point> points = testing::every_pair();
    for (std::size_t i = 0; i < points.size(); i += 7) {
        if (!testing::same_bits(points[i])) continue;
        job::Job job = testing::job_at(points[i], text), alone = testing::reference_job(points[i], text);
        job.run.steps = alone.run.steps = 3;
        EXPECT_EQ(run_played(job).losses, run_played(alone).losses) << testing::describe(points[i]);
    }
}

TEST(CudaRuns, DelaysInStreamsAndPoisonChangeNoBit) {
    const testing::SampleText text;
    const std::vector<Point> points = testing::every_pair();
    std::uint64_t seed = 1;
    for (std::size_t i = 1; i < points.size(); i += 11) {
        const job::Job job = job_of(points[i], text, i);
        const std::vector<double> calm = run_played(job).losses;
        const PlayedMachine slow({.delay_seed = seed++});
        executor::RunOptions options;
        options.test.poison = true;
        EXPECT_EQ(run_played(job, options).losses, calm) << testing::describe(points[i]);
    }
}

// From step 2 on gradients are compressed, so that the losses after it show it.
TEST(CudaRuns, CommunicationHooksGiveTheLossesOfTheCpu) {
    for (const char* hook : {"bf16", "fp16", "powersgd:2"}) {
        job::Job job = testing::with_mode(testing::mlp_job(3, 24, 2, 2), job::ParallelMode::ddp);
        job.run.steps = 6;
        job.optimizer.lr = 0.1;
        job.ddp.comm_hook = job::parse_comm_hook(hook);
        expect_near(run_played(job).losses, run(job).losses, 1e-5, hook);
    }
}

TEST(CudaRuns, BFloat16IsTheCpusWithinItsPrecision) {
    const testing::SampleText text;
    job::Job job = testing::with_wrap(testing::gpt_job(text, 2, 2), "module:Block");
    job.model.width = 32;
    job.model.context = 8;
    job.run.steps = 2;
    job.precision.param = job.precision.reduce = job.precision.buffer = job::Precision::bf16;
    for (const job::AttentionKind attention : {job::AttentionKind::plain, job::AttentionKind::fused}) {
        job.model.attention = attention;
        expect_near(run_played(job).losses, run(job).losses, 0.02, "bf16");
    }
}

// The first step's gradients overflow: the GPU finds that, too, and skips the step.
TEST(CudaRuns, Fp16IsTheCpusWithinItsPrecision) {
    const testing::SampleText text;
    job::Job job = testing::with_wrap(testing::gpt_job(text, 2, 2), "module:Block");
    job.model.width = 32;
    job.model.context = 8;
    job.run.steps = 3;
    job.precision.param = job.precision.reduce = job.precision.buffer = job::Precision::fp16;
    job.precision.initial_scale = 0x1p25;
    for (const job::AttentionKind attention : {job::AttentionKind::plain, job::AttentionKind::fused}) {
        job.model.attention = attention;
        std::vector<std::string> cpu, cuda;
        executor::RunOptions of_cpu, of_cuda;
        of_cpu.on_overflow = [&](const std::string& line) { cpu.push_back(line); };
        of_cuda.on_overflow = [&](const std::string& line) { cuda.push_back(line); };
        expect_near(run_played(job, of_cuda).losses, run(job, of_cpu).losses, 0.003, "fp16");
        EXPECT_FALSE(cpu.empty());
        EXPECT_EQ(cuda, cpu);
    }
}

TEST(CudaRuns, EachActivationIsTheCpus) {
    const testing::SampleText text;
    job::Job gpt = testing::with_wrap(testing::gpt_job(text, 1, 2), "module:Block");
    job::Job bf16 = gpt;
    bf16.precision = {job::Precision::bf16, job::Precision::bf16, job::Precision::bf16};
    for (std::size_t kind = 1; kind < std::size(kernels::kActivationNames); ++kind) {
        for (job::Job job : {testing::with_wrap(testing::mlp_job(3, 12, 2, 2), "module:Linear"), gpt, bf16}) {
            job.run.steps = 2;
            job.model.activation = static_cast<kernels::ActivationKind>(kind);
            const executor::RunResult cpu = run(job), cuda = run_played(job);
            expect_near(cuda.losses, cpu.losses, job.precision.param == job::Precision::bf16 ? 0.02 : 2e-5,
                        std::string(kernels::kActivationNames[kind]));
            for (std::size_t r = 0; r < cpu.peaks.size(); ++r)
                EXPECT_EQ(cuda.peaks[r].bytes, cpu.peaks[r].bytes);
        }
    }
}

// In bf16 the GPU applies the activation to the sum before it is rounded.
TEST(CudaRuns, ActivationsInTheMatmulAreTheCpus) {
    const testing::SampleText text;
    job::Job gpt = testing::with_wrap(testing::gpt_job(text, 2, 2), "module:Linear");
    job::Job checkpointed = testing::with_wrap(testing::gpt_job(text, 2, 2), "module:Block");
    checkpointed.memory.activation_checkpointing = job::parse_modules("module:Block,GELU");
    job::Job bf16 = gpt;
    bf16.precision = {job::Precision::bf16, job::Precision::bf16, job::Precision::bf16};
    for (job::Job job :
         {testing::with_wrap(testing::mlp_job(4, 12, 2, 2), "module:Linear"), gpt, checkpointed, bf16}) {
        job.run.steps = 3;
        job.model.fused_activation = true;
        const executor::RunResult cpu = run(job), cuda = run_played(job);
        expect_near(cuda.losses, cpu.losses, job.precision.param == job::Precision::bf16 ? 0.02 : 2e-5,
                    "fused");
        for (std::size_t r = 0; r < cpu.peaks.size(); ++r) EXPECT_EQ(cuda.peaks[r].bytes, cpu.peaks[r].bytes);
        job::Job apart = job;
        apart.model.fused_activation = false;
        expect_near(cuda.losses, run_played(apart).losses,
                    job.precision.param == job::Precision::bf16 ? 0.02 : 2e-5, "fused and apart");
    }
}

TEST(CudaRuns, RanksOnSeveralGpusReadEachOthersBuffers) {
    const PlayedMachine two({.gpus = 2});
    const job::Job job = testing::with_wrap(testing::mlp_job(3, 12, 2, 4), "module:Linear");
    expect_near(run_played(job, {}, {.group = device::GroupKind::local}).losses, run(job).losses, 2e-5,
                "4 ranks on 2 GPUs");
}

// The last rank is on GPU 0 and the groups set GPU 1 after it: no rank may rely on the current device.
TEST(CudaRuns, MoreRanksThanGpusStayOnTheirOwnGpus) {
    for (const auto& [gpus, ranks] : {std::pair{2, 3}, {2, 5}, {4, 6}}) {
        const PlayedMachine machine({.gpus = gpus});
        const job::Job job = testing::with_wrap(testing::mlp_job(3, 12, 2, ranks), "module:Linear");
        expect_near(run_played(job, {}, {.group = device::GroupKind::local}).losses, run(job).losses, 2e-5,
                    std::to_string(ranks) + " ranks on " + std::to_string(gpus) + " GPUs");
    }
}

// Two ranks on each of the first two GPUs, of three; the local group carries out their collectives.
TEST(CudaRuns, ConsecutiveRanksShareAGpu) {
    const PlayedMachine three({.gpus = 3});
    job::Job job = testing::with_wrap(testing::mlp_job(3, 12, 2, 4), "module:Linear");
    const std::vector<double> losses = run(job).losses;
    job.run.ranks_per_device = 2;
    expect_near(run_played(job).losses, losses, 2e-5, "2 ranks on each of 2 GPUs");
    device::DeviceSettings settings;
    settings.mesh = sharding::Program(job).mesh();
    settings.ranks_per_device = 2;
    const cuda::CudaDevice device(settings, nullptr);
    std::vector<std::string> names;
    for (int rank = 0; rank < 4; ++rank) {
        traces::schema::RankRow row;
        row.rank = rank;
        device.describe(row);
        names.push_back(row.device_name);
    }
    EXPECT_THAT(names, ElementsAre("played GPU 0", "played GPU 0", "played GPU 1", "played GPU 1"));

    const PlayedMachine one({.gpus = 1});
    try {
        run_played(job);
        FAIL() << "4 ranks, 2 on a GPU, run on one";
    } catch (const std::exception& error) {
        EXPECT_THAT(error.what(), HasSubstr("run.ranks_per_device: 4 ranks, 2 on each GPU, need 2 GPUs, and "
                                            "there is 1"));
    }
}

TEST(CudaRuns, AFullGpuIsReportedWithItsContent) {
    const PlayedMachine small({.memory = 40'000});
    const job::Job job = testing::with_wrap(testing::mlp_job(4, 64, 8, 1), "module:Linear");
    try {
        run_played(job);
        FAIL() << "four layers of 64 x 64 fp32 are 65,536 bytes, of 40,000";
    } catch (const executor::OutOfMemory& error) {
        EXPECT_THAT(error.what(), HasSubstr("into the 40000 bytes of GPU 0 (played GPU 0)"));
        EXPECT_THAT(error.what(), HasSubstr("parameters"));
        // The search for configurations that would fit uses this: no other process uses the memory.
        EXPECT_GT(error.room(), 30'000);
        EXPECT_LE(error.room(), 40'000);
    }
    EXPECT_EQ(played_cuda::allocated(), 0U);
}

TEST(CudaRuns, AMissingGpuIsReported) {
    const PlayedMachine none({.gpus = 0});
    try {
        run_played(testing::mlp_job(2, 8, 2, 1));
        FAIL();
    } catch (const std::exception& error) {
        EXPECT_THAT(error.what(), HasSubstr("run.device = \"cuda\": no GPU can be used"));
        EXPECT_THAT(error.what(), HasSubstr("run.device = \"cpu\""));
    }
}

TEST(CudaRuns, NcclIsRefusedWhereRanksShareAGpu) {
    try {
        run_played(testing::mlp_job(2, 8, 2, 2), {}, {.group = device::GroupKind::nccl});
        FAIL();
    } catch (const std::exception& error) {
        EXPECT_THAT(error.what(), HasSubstr("ranks 0 and 1 share GPU 0, which NCCL refuses"));
        EXPECT_THAT(error.what(), HasSubstr("run.comm = \"local\""));
    }
}

// A checkpoint reads and writes device memory through a copy.
TEST(CudaRuns, ContinueFromStateReadFromTheDevice) {
    job::Job job = testing::with_wrap(testing::mlp_job(3, 12, 2, 2), "module:Linear");
    job.run.steps = 4;
    const std::vector<double> whole = run_played(job).losses;
    const sharding::Program program(job);
    const auto slots = program.optimizer().slots();
    std::map<std::pair<int, std::size_t>, std::vector<std::byte>> kept;
    const auto contents = [&](int rank, executor::RankRunner& runner, bool out) {
        for (std::size_t i = 0; i < slots.size(); ++i) {
            plan::HostView view = runner.contents(slots[i].parameter);
            ASSERT_FALSE(view.bytes().empty());
            static std::mutex mutex;
            const std::lock_guard lock(mutex);
            std::vector<std::byte>& bytes = kept[{rank, i}];
            if (out) {
                bytes.assign(view.bytes().begin(), view.bytes().end());
            } else {
                std::copy(bytes.begin(), bytes.end(), view.bytes().begin());
                view.commit();
            }
        }
    };
    job::Job first = job;
    first.run.steps = 2;
    executor::RunOptions saving;
    saving.hooks.at_step_end = [&](int rank, std::int64_t, executor::RankRunner& runner) {
        contents(rank, runner, true);
    };
    run_played(first, saving);
    executor::RunOptions loading;
    loading.first_step = 2;
    loading.first_sample = 2 * job.data.batch * job.run.ranks;
    loading.hooks.after_setup = [&](int rank, executor::RankRunner& runner) {
        contents(rank, runner, false);
    };
    EXPECT_EQ(run_played(job, loading).losses, std::vector<double>(whole.begin() + 2, whole.end()));
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::cuda
