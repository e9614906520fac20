#include "trainer/cli/last_resort.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include <fmt/core.h>

namespace shardscope::trainer::cli {

namespace {

// Time for a rank to finish its current work: a step, or a checkpoint that is being written.
constexpr std::chrono::seconds kMoment{10};

}  // namespace

LastResort::LastResort(world::World& world) {
    world.on_failure([shared = shared_](const world::Failure& failure) {
        const std::lock_guard lock(shared->mutex);
        shared->failure = failure;
        shared->changed.notify_all();
    });
    thread_ = std::thread([shared = shared_] { watch(*shared); });
}

LastResort::~LastResort() {
    {
        const std::lock_guard lock(shared_->mutex);
        shared_->over = true;
        shared_->changed.notify_all();
    }
    thread_.join();
}

void LastResort::watch(Shared& shared) {
    std::unique_lock lock(shared.mutex);
    shared.changed.wait(lock, [&] { return shared.over || shared.failure; });
    if (shared.over) return;
    if (shared.changed.wait_for(lock, kMoment, [&] { return shared.over; })) return;
    fmt::print(stderr,
               "shardscope-train: {}; this process did not exit within {} s after that and is ended\n",
               world::WorldFailure(*shared.failure).what(), kMoment.count());
    std::fflush(stderr);
    std::_Exit(1);
}

}  // namespace shardscope::trainer::cli
