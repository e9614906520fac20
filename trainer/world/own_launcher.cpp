#include "trainer/world/own_launcher.h"

#include <array>
#include <cerrno>
#include <system_error>

#include <fmt/format.h>
#include <sys/random.h>

namespace shardscope::trainer {

std::vector<std::string> environment_for(const Place& place) {
    std::vector<std::string> variables = {
        fmt::format("{}={}", kRankVariable, place.rank), fmt::format("{}={}", kRanksVariable, place.ranks),
        fmt::format("{}={}", kMasterVariable, place.master), fmt::format("{}={}", kPortVariable, place.port),
        fmt::format("{}={}", kTokenVariable, place.token)};
    if (place.listen_fd >= 0) variables.push_back(fmt::format("{}={}", kListenVariable, place.listen_fd));
    return variables;
}

std::string random_token() {
    std::array<unsigned char, 16> bits{};
    while (::getrandom(bits.data(), bits.size(), 0) != static_cast<ssize_t>(bits.size())) {
        if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "getrandom");
    }
    std::string token;
    for (const unsigned char byte : bits) token += fmt::format("{:02x}", byte);
    return token;
}

}  // namespace shardscope::trainer
