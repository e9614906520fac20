#include "trainer/world/own_launcher.h"

#include <fmt/core.h>

#include "trainer/world/proof.h"

namespace shardscope::trainer::world {

namespace {

constexpr std::size_t kTokenBytes = 16;

}  // namespace

std::vector<std::string> environment_for(const Place& place) {
    std::vector<std::string> variables = {
        fmt::format("{}={}", kRankVariable, place.rank), fmt::format("{}={}", kRanksVariable, place.ranks),
        fmt::format("{}={}", kMasterVariable, place.master), fmt::format("{}={}", kPortVariable, place.port),
        fmt::format("{}={}", kTokenVariable, place.token)};
    if (place.listen_fd >= 0) variables.push_back(fmt::format("{}={}", kListenVariable, place.listen_fd));
    return variables;
}

std::string random_token() {
    std::string token;
    for (const char byte : random_bytes(kTokenBytes))
        token += fmt::format("{:02x}", static_cast<unsigned char>(byte));
    return token;
}

}  // namespace shardscope::trainer::world
