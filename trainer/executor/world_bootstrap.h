// An adapter of the World for the CUDA module's communication with a job's other processes.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/device/bootstrap.h"
#include "trainer/world/world.h"

namespace shardscope::trainer::executor {

class WorldBootstrap final : public device::Bootstrap {
  public:
    // The World outlives it, and keeps the handlers that on() sets.
    explicit WorldBootstrap(world::World& world) : world_(world) {}

    int process() const override { return world_.rank(); }
    std::vector<std::string> gather(std::string_view mine) override { return world_.gather(mine); }
    void on(const std::string& topic, Handler handler) override { world_.on(topic, std::move(handler)); }
    void tell(const std::string& topic, std::string_view text) override { world_.tell(topic, text); }
    void tell_all(const std::string& topic, std::string_view text) override { world_.tell_all(topic, text); }
    void fail(int rank, const std::string& reason) override { world_.fail({rank, reason, false}); }
    // Does not wait: after a failure, the World's barrier throws it.
    void check() override {
        if (world_.failed()) world_.barrier();
    }

  private:
    world::World& world_;
};

}  // namespace shardscope::trainer::executor
