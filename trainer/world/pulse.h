// The signs of life of a World's links, both ways. Used on the World's thread only.
#pragma once

#include <functional>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include "trainer/world/links.h"

namespace shardscope::trainer::world {

class Pulse {
  public:
    // At each beat, `on_silent` is called with each rank from which nothing arrived for `timeout_s`; 0:
    // never.
    Pulse(asio::io_context& io, const Links& links, double timeout_s,
          std::function<void(int rank)> on_silent);

    void stop();  // the object must exist, stopped, until the io_context's run() returns

  private:
    void wait();
    void beat();

    asio::steady_timer timer_;
    const Links& links_;
    std::chrono::duration<double> timeout_, interval_;
    std::function<void(int rank)> on_silent_;
    SteadyTime last_;
    bool stopped_ = false;
};

}  // namespace shardscope::trainer::world
