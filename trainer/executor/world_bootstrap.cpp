#include "trainer/executor/world_bootstrap.h"

#include <utility>

#include "trainer/world/world.h"

namespace shardscope::trainer {

int WorldBootstrap::process() const {
    return world_.rank();
}

std::vector<std::string> WorldBootstrap::gather(std::string_view mine) {
    return world_.gather(mine);
}

void WorldBootstrap::on(const std::string& topic, Handler handler) {
    world_.on(topic, std::move(handler));
}

void WorldBootstrap::tell(const std::string& topic, std::string_view text) {
    world_.tell(topic, text);
}

void WorldBootstrap::tell_all(const std::string& topic, std::string_view text) {
    world_.tell_all(topic, text);
}

void WorldBootstrap::fail(int rank, const std::string& reason) {
    world_.fail({rank, reason, false});
}

// After a failure no process waits: the World throws it.
void WorldBootstrap::check() {
    if (world_.failed()) world_.barrier();
}

}  // namespace shardscope::trainer
