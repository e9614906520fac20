// Whole jobs with a process for each rank, on simulated GPUs and NCCL: how the trainer, the World and the
// CUDA device work together. The processes are threads, with Worlds that communicate by TCP.
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "played_job.h"
#include "tests/trainer/played_cuda/nccl.h"
#include "trainer/executor/processes.h"
#include "trainer/executor/world_bootstrap.h"
#include "world_helpers.h"

namespace shardscope::trainer::cuda {
namespace TEST_FILE {

using namespace std::chrono_literals;
using ::testing::Each;
using ::testing::HasSubstr;
using testing::PlayedMachine;
using testing::run_played;

// Like open_cuda_device, with the simulated NCCL.
executor::MakeDevice device_of_process(double timeout_s) {
    return [timeout_s](const executor::DeviceRequest& request) -> std::unique_ptr<device::Device> {
        world::World& world = *request.processes->world;
        device::DeviceSettings settings;
        settings.mesh = request.program.mesh();
        settings.timeout_s = timeout_s;
        settings.ranks = {world.rank()};
        settings.local_rank = world.place().local_rank;
        settings.bootstrap = std::make_shared<executor::WorldBootstrap>(world);
        return std::make_unique<CudaDevice>(settings, &played_nccl::library());
    };
}

struct Outcome {
    executor::RunResult result;       // rank 0's
    std::vector<std::string> errors;  // indexed by rank; "" if there was none
};

// `on_error`: called in a process whose run fails; may be empty.
Outcome run_by_processes(const job::Job& job, double timeout_s = 20, const executor::RunHooks& hooks = {},
                         const std::function<void()>& on_error = {}) {
    Outcome outcome;
    outcome.errors = run_threads(make_places(job.run.ranks), [&](const world::Place& place) {
        world::World world(place, within(20));
        executor::Processes processes{&world, {}};
        executor::RunOptions options;
        options.processes = &processes;
        options.make_device = device_of_process(timeout_s);
        options.hooks = hooks;
        try {
            executor::RunResult result = testing::run(job, options);
            world.leave();
            if (place.rank == 0) outcome.result = std::move(result);
        } catch (...) {
            if (on_error) on_error();
            throw;
        }
    });
    return outcome;
}

// The simulated NCCL sums in rank order, as the local group does.
void expect_as_in_one_process(const job::Job& job, const std::string& what) {
    const executor::RunResult together = run_played(job, {}, {.group = device::GroupKind::local});
    const Outcome apart = run_by_processes(job);
    EXPECT_THAT(apart.errors, Each("")) << what;
    EXPECT_EQ(apart.result.losses, together.losses) << what;
    ASSERT_EQ(apart.result.peaks.size(), together.peaks.size()) << what;
    for (std::size_t rank = 0; rank < together.peaks.size(); ++rank) {
        EXPECT_EQ(apart.result.peaks[rank].bytes, together.peaks[rank].bytes) << what << ", rank " << rank;
    }
    EXPECT_EQ(played_cuda::allocated(), 0U) << what;
}

TEST(CudaWorld, ProcessesTrainAsThreadsDo) {
    const PlayedMachine machine({.gpus = 4});
    expect_as_in_one_process(testing::with_wrap(testing::mlp_job(3, 12, 2, 2), "module:Linear"),
                             "FULL_SHARD");
    expect_as_in_one_process(testing::with_mode(testing::mlp_job(3, 12, 2, 2), job::ParallelMode::ddp),
                             "DDP");
    const job::Job hybrid =
        testing::with_strategy(testing::with_wrap(testing::mlp_job(3, 12, 2, 4), "module:Linear"),
                               job::ShardingStrategy::hybrid_shard, 2);
    expect_as_in_one_process(hybrid, "HYBRID_SHARD, 2 x 2");
}

// The rank's host thread is busy forever with something else; its World still answers.
TEST(CudaWorld, ARankThatHangsIsNamedByAll) {
    const PlayedMachine machine({.gpus = 2});
    job::Job job = testing::with_wrap(testing::mlp_job(3, 12, 2, 2), "module:Linear");
    executor::RunHooks hooks;
    std::atomic<bool> over = false;
    hooks.after_setup = [&](int rank, executor::RankRunner&) {
        while (rank == 1 && !over) std::this_thread::sleep_for(5ms);
    };
    const Outcome outcome = run_by_processes(job, 0.5, hooks, [&] { over = true; });
    EXPECT_THAT(outcome.errors, Each(HasSubstr("rank 1 has not begun all_gather of ")));
    EXPECT_THAT(outcome.errors, Each(HasSubstr("within the 0.5 s of run.timeout, in which rank 0 waits")));
}

TEST(CudaWorld, ARankThatFailsEndsTheOthers) {
    const PlayedMachine machine({.gpus = 2});
    executor::RunHooks hooks;
    hooks.after_setup = [](int rank, executor::RankRunner&) {
        if (rank == 1) throw executor::RunError("the dog ate the batch");
    };
    const Outcome outcome =
        run_by_processes(testing::with_wrap(testing::mlp_job(3, 12, 2, 2), "module:Linear"), 0, hooks);
    EXPECT_THAT(outcome.errors[0], HasSubstr("rank 1: the dog ate the batch"));
    EXPECT_THAT(outcome.errors[1], HasSubstr("the dog ate the batch"));
}

TEST(CudaWorld, TwoProcessesOnOneGpuAreRefused) {
    const Outcome outcome = run_by_processes(testing::mlp_job(2, 8, 2, 2));
    EXPECT_THAT(outcome.errors, Each(HasSubstr("ranks 0 and 1 share GPU 0 of host ")));
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::cuda
