#include "trainer/world/own_addresses.h"

#include <array>
#include <memory>
#include <utility>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>

#include "trainer/world/hello.h"

namespace shardscope::trainer::world {

namespace {

// Empty: no address that another host could use.
std::string address_of(const ifaddrs& interface) {
    if (interface.ifa_addr == nullptr || (interface.ifa_flags & IFF_UP) == 0U ||
        (interface.ifa_flags & IFF_LOOPBACK) != 0U) {
        return {};
    }
    std::array<char, INET6_ADDRSTRLEN> text{};
    const int family = interface.ifa_addr->sa_family;
    if (family == AF_INET) {
        const auto* address = reinterpret_cast<const sockaddr_in*>(interface.ifa_addr);
        if (::inet_ntop(family, &address->sin_addr, text.data(), text.size()) == nullptr) return {};
    } else if (family == AF_INET6) {
        // Link-local addresses are meaningful only together with an interface of the other host.
        const auto* address = reinterpret_cast<const sockaddr_in6*>(interface.ifa_addr);
        if (IN6_IS_ADDR_LINKLOCAL(&address->sin6_addr) ||
            ::inet_ntop(family, &address->sin6_addr, text.data(), text.size()) == nullptr) {
            return {};
        }
    }
    return text.data();
}

}  // namespace

std::vector<std::string> interface_addresses() {
    std::vector<std::string> addresses;
    ifaddrs* first = nullptr;
    if (::getifaddrs(&first) == 0) {
        const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> interfaces(first, ::freeifaddrs);
        for (const ifaddrs* interface = first; interface != nullptr; interface = interface->ifa_next) {
            std::string address = address_of(*interface);
            if (!address.empty()) addresses.push_back(std::move(address));
        }
    }
    addresses.emplace_back("127.0.0.1");
    return addresses;
}

std::string own_addresses() {
    std::string names = own_host_name();
    for (const std::string& address : interface_addresses()) names += "," + address;
    return names;
}

}  // namespace shardscope::trainer::world
