#include "trainer/comm/tcp_address.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

#include <arpa/inet.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include "traces/schema/sort_rows.h"

namespace shardscope::trainer::comm {

namespace {

using AddressBytes = std::vector<unsigned char>;

// The address in 4 or 16 bytes; empty: it is not an address.
AddressBytes bytes_of(const std::string& text) {
    AddressBytes bytes(4);
    if (::inet_pton(AF_INET, text.c_str(), bytes.data()) == 1) return bytes;
    bytes.resize(16);
    if (::inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1) return bytes;
    return {};
}

// The number of leading bits that are equal; -1 if the families differ.
int same_bits(const AddressBytes& a, const AddressBytes& b) {
    if (a.size() != b.size()) return -1;
    int bits = 0;
    for (std::size_t i = 0; i < a.size(); i++) {
        const auto difference = static_cast<unsigned char>(a[i] ^ b[i]);
        bits += std::countl_zero(difference);
        if (difference != 0) break;
    }
    return bits;
}

}  // namespace

std::string print(const TcpAddress& address) {
    std::string line =
        fmt::format("{} {} {}", address.port, address.local_name.empty() ? "-" : address.local_name,
                    address.kernel.empty() ? "-" : address.kernel);
    for (const std::string& each : address.addresses) line += " " + each;
    return line;
}

TcpAddress parse_tcp_address(const std::string& line) {
    std::istringstream words(line);
    TcpAddress address;
    unsigned port = 0;
    if (!(words >> port >> address.local_name >> address.kernel) || port > 65535) {
        throw std::invalid_argument("\"" + line + "\" is not a process's address");
    }
    address.port = static_cast<std::uint16_t>(port);
    if (address.local_name == "-") address.local_name.clear();
    if (address.kernel == "-") address.kernel.clear();
    for (std::string each; words >> each;) address.addresses.push_back(each);
    return address;
}

std::vector<std::string> nearest_first(const std::vector<std::string>& theirs,
                                       const std::vector<std::string>& mine) {
    std::vector<std::pair<int, std::string>> ordered;
    for (const std::string& address : theirs) {
        int nearness = -1;
        for (const std::string& own : mine)
            nearness = std::max(nearness, same_bits(bytes_of(address), bytes_of(own)));
        // An address that is also ours leads back here: both hosts have a bridge or loopback with it.
        const bool ours = std::find(mine.begin(), mine.end(), address) != mine.end();
        ordered.emplace_back(ours ? -2 : nearness, address);
    }
    traces::schema::sort_rows(ordered, [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<std::string> addresses;
    addresses.reserve(ordered.size());
    for (auto& [nearness, address] : ordered) addresses.push_back(std::move(address));
    return addresses;
}

std::string kernel_identity() {
    std::string boot;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
    struct stat network {};
    if (boot.empty() || ::stat("/proc/self/ns/net", &network) != 0) return {};
    return fmt::format("{}/{}", boot, network.st_ino);
}

LocalAddress local_address(const std::string& name) {
    LocalAddress local;
    local.address.sun_family = AF_UNIX;
    const std::size_t length = std::min(name.size(), sizeof local.address.sun_path - 1);
    std::memcpy(local.address.sun_path + 1, name.data(), length);  // a leading zero: not in the file system
    local.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
    return local;
}

}  // namespace shardscope::trainer::comm
