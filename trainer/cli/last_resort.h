// Ends a process whose rank does not return after the job has failed (it sleeps, or computes for ever): no
// other process waits for it any longer, and its part of the trace holds what it recorded before the failure.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "trainer/world/world.h"

namespace shardscope::trainer::cli {

class LastResort {
  public:
    // Starts the watch. After a failure the object must be destroyed within a moment (10 s), or it prints a
    // sentence and ends the process with status 1.
    explicit LastResort(world::World& world);
    ~LastResort();
    LastResort(const LastResort&) = delete;
    LastResort& operator=(const LastResort&) = delete;

  private:
    struct Shared {  // shared with the World, which may call its handlers at any time
        std::mutex mutex;
        std::condition_variable changed;
        std::optional<world::Failure> failure;
        bool over = false;
    };
    static void watch(Shared& shared);

    std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
    std::thread thread_;
};

}  // namespace shardscope::trainer::cli
