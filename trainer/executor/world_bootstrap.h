// An adapter of the World for the CUDA module's communication with a job's other processes.
#pragma once

#include "trainer/device/bootstrap.h"

namespace shardscope::trainer {

class World;

class WorldBootstrap final : public cuda::Bootstrap {
  public:
    // The World outlives it, and keeps the handlers that on() sets.
    explicit WorldBootstrap(World& world) : world_(world) {}

    int process() const override;
    std::vector<std::string> gather(std::string_view mine) override;
    void on(const std::string& topic, Handler handler) override;
    void tell(const std::string& topic, std::string_view text) override;
    void tell_all(const std::string& topic, std::string_view text) override;
    void fail(int rank, const std::string& reason) override;
    void check() override;

  private:
    World& world_;
};

}  // namespace shardscope::trainer
