#include "trainer/world/listener.h"

#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "trainer/world/place.h"

namespace shardscope::trainer::world {

namespace {

std::string reason(int error) {
    return std::generic_category().message(error);
}

// The port that a socket is bound to; 0 where it is not such a socket.
int bound_port(int descriptor, bool& ipv6) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    if (::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
    ipv6 = address.ss_family == AF_INET6;
    if (ipv6) return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
    if (address.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
    return 0;
}

// A socket that listens, or -1 and errno.
int listen_on(int port, bool loopback, bool ipv6) {
    const int descriptor = ::socket(ipv6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP);
    if (descriptor < 0) return -1;
    const int on = 1, off = 0;
    ::setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);  // even right after a former job
    int status = 0;
    if (ipv6) {
        ::setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
        sockaddr_in6 address{};
        address.sin6_family = AF_INET6;
        address.sin6_addr = in6addr_any;
        address.sin6_port = htons(static_cast<std::uint16_t>(port));
        status = ::bind(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    } else {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(loopback ? INADDR_LOOPBACK : INADDR_ANY);
        address.sin_port = htons(static_cast<std::uint16_t>(port));
        status = ::bind(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    }
    if (status != 0 || ::listen(descriptor, SOMAXCONN) != 0) {
        const int error = errno;
        ::close(descriptor);
        errno = error;
        return -1;
    }
    return descriptor;
}

}  // namespace

Listener Listener::on_loopback() {
    return on_ports(0, 1, true);
}

Listener Listener::on_ports(int first, int ports, bool loopback) {
    int error = EADDRNOTAVAIL;
    const int last = first == 0 ? 0 : std::min(first + ports - 1, 65535);
    for (int port = first; port <= last; ++port) {
        // One IPv6 socket accepts both; a machine without IPv6 has none.
        int descriptor = loopback ? -1 : listen_on(port, false, true);
        const bool taken = descriptor < 0 && !loopback && errno == EADDRINUSE;
        if (descriptor < 0 && !taken) descriptor = listen_on(port, loopback, false);
        if (descriptor < 0) {
            error = errno;
            continue;
        }
        bool ipv6 = false;
        const int bound = bound_port(descriptor, ipv6);
        return {descriptor, bound, ipv6};
    }
    if (first == 0) throw WorldError(fmt::format("rank 0 cannot listen on any port: {}", reason(error)));
    throw WorldError(
        fmt::format("rank 0 cannot listen on any port from {} to {} ({}); give the launcher another port",
                    first, last, reason(error)));
}

Listener Listener::inherited(int descriptor) {
    int listens = 0;
    socklen_t size = sizeof listens;
    bool ipv6 = false;
    if (::getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0 ||
        bound_port(descriptor, ipv6) == 0) {
        throw WorldError(fmt::format(
            "descriptor {} is not a listening socket; let shardscope-train set SHARDSCOPE_LISTEN_FD",
            descriptor));
    }
    ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    const int port = bound_port(descriptor, ipv6);
    return {descriptor, port, ipv6};
}

Listener::~Listener() {
    if (descriptor_ >= 0) ::close(descriptor_);
}

void Listener::keep_on_exec() const {
    ::fcntl(descriptor_, F_SETFD, 0);
}

}  // namespace shardscope::trainer::world
