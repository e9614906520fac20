// Listening and connecting, for address.h.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include <fcntl.h>
#include <fmt/core.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "traces/status/address.h"

namespace shardscope::traces::status {

namespace {

using store::FileDescriptor;

constexpr int kBacklog = 128;

// --- Unix sockets ----------------------------------------------------------------------------------------

// The socket's name as the system takes it, at most 107 bytes: a longer path is reached through its folder.
struct UnixName {
    explicit UnixName(const std::string& path) {
        name.sun_family = AF_UNIX;
        std::string shown = path;
        if (shown.size() >= sizeof name.sun_path) {
            const std::size_t slash = path.rfind('/');
            const std::string parent = slash == std::string::npos ? "." : path.substr(0, slash + 1);
            folder = FileDescriptor(::open(parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
            if (folder) shown = fmt::format("/proc/self/fd/{}/{}", folder.get(), path.substr(slash + 1));
        }
        if (shown.size() >= sizeof name.sun_path)
            throw StatusError(
                fmt::format("{}: the name of a socket is too long; choose a shorter one", path));
        shown.copy(name.sun_path, sizeof name.sun_path - 1);
    }
    const sockaddr* address() const { return reinterpret_cast<const sockaddr*>(&name); }

    FileDescriptor folder;
    sockaddr_un name = {};
};

FileDescriptor new_socket(int family) {
    FileDescriptor made(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!made) throw StatusError(fmt::format("a socket cannot be made: {}", std::strerror(errno)));
    return made;
}

// Whether a run listens at the name.
bool is_answered(const UnixName& name) {
    const FileDescriptor probe = new_socket(AF_UNIX);
    return ::connect(probe.get(), name.address(), sizeof name.name) == 0 || errno == EAGAIN;
}

FileDescriptor listen_at_path(const std::string& path) {
    const UnixName name(path);
    FileDescriptor listener = new_socket(AF_UNIX);
    ::fchmod(listener.get(), 0600);  // the name gets this mode
    int bound = ::bind(listener.get(), name.address(), sizeof name.name);
    if (bound != 0 && errno == EADDRINUSE) {
        struct stat facts;
        if (::lstat(path.c_str(), &facts) != 0 || !S_ISSOCK(facts.st_mode))
            throw StatusError(fmt::format("{} exists and is no socket; choose another address", path));
        if (is_answered(name))
            throw StatusError(
                fmt::format("{}: another run serves its status there; choose another address", path));
        ::unlink(path.c_str());
        bound = ::bind(listener.get(), name.address(), sizeof name.name);
    }
    if (bound != 0 || ::listen(listener.get(), kBacklog) != 0) {
        throw StatusError(
            fmt::format("{}: no socket can be made there: {}; give --status another path, or "
                        "HOST:PORT",
                        path, std::strerror(errno)));
    }
    return listener;
}

// --- TCP -------------------------------------------------------------------------------------------------

struct FreeAddresses {
    void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Addresses look_up(const Address& address, int flags) {
    addrinfo wanted = {};
    wanted.ai_socktype = SOCK_STREAM;
    wanted.ai_flags = flags | AI_NUMERICSERV;
    addrinfo* list = nullptr;
    const int error =
        ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &wanted, &list);
    if (error != 0) {
        throw StatusError(
            fmt::format("{}: there is no such host: {}", to_text(address), ::gai_strerror(error)));
    }
    return Addresses(list);
}

bool is_loopback(const sockaddr* address) {
    if (address->sa_family == AF_INET) {
        const auto* four = reinterpret_cast<const sockaddr_in*>(address);
        return ntohl(four->sin_addr.s_addr) >> 24 == 127;
    }
    if (address->sa_family != AF_INET6) return false;
    const auto* six = reinterpret_cast<const sockaddr_in6*>(address);
    return IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
}

std::uint16_t port_of(const FileDescriptor& listener) {
    sockaddr_storage own = {};
    socklen_t length = sizeof own;
    ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&own), &length);
    return ntohs(own.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(&own)->sin6_port
                                           : reinterpret_cast<const sockaddr_in*>(&own)->sin_port);
}

FileDescriptor listen_on_port(Address& address, bool has_token) {
    const Addresses found = look_up(address, AI_PASSIVE);
    if (!is_loopback(found->ai_addr) && !has_token) {
        throw StatusError(
            fmt::format("--status {}: others can reach this address, so a token is needed; set {}, "
                        "or {} to a file that only you can read",
                        to_text(address), kTokenVariable, kTokenFileVariable));
    }
    FileDescriptor listener = new_socket(found->ai_family);
    const int on = 1;
    ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (::bind(listener.get(), found->ai_addr, found->ai_addrlen) != 0 ||
        ::listen(listener.get(), kBacklog) != 0) {
        throw StatusError(fmt::format("--status {}: nothing can listen there: {}; choose another address",
                                      to_text(address), std::strerror(errno)));
    }
    address.port = port_of(listener);
    return listener;
}

// 0, or the error of a connection that is being made.
int await(const FileDescriptor& connection, int timeout_ms) {
    pollfd wanted = {connection.get(), POLLOUT, 0};
    int ready = 0;
    do ready = ::poll(&wanted, 1, timeout_ms);
    while (ready < 0 && errno == EINTR);
    if (ready == 0) return ETIMEDOUT;
    int error = 0;
    socklen_t length = sizeof error;
    ::getsockopt(connection.get(), SOL_SOCKET, SO_ERROR, &error, &length);
    return error;
}

}  // namespace

FileDescriptor listen_at(Address& address, bool has_token) {
    return address.path.empty() ? listen_on_port(address, has_token) : listen_at_path(address.path);
}

FileDescriptor connect_to(const Address& address, int timeout_ms) {
    int error = 0;
    const auto try_one = [&](FileDescriptor socket, const sockaddr* name, socklen_t length) {
        error = ::connect(socket.get(), name, length) == 0 ? 0 : errno;
        if (error == EINPROGRESS) error = await(socket, timeout_ms);
        return socket;
    };
    if (!address.path.empty()) {
        const UnixName name(address.path);
        FileDescriptor connection = try_one(new_socket(AF_UNIX), name.address(), sizeof name.name);
        if (error == 0) return connection;
    } else {
        const Addresses found = look_up(address, 0);
        for (const addrinfo* each = found.get(); each != nullptr; each = each->ai_next) {
            FileDescriptor connection = try_one(new_socket(each->ai_family), each->ai_addr, each->ai_addrlen);
            if (error == 0) return connection;
        }
    }
    throw StatusError(
        fmt::format("{}: no run serves its status there: {}", to_text(address), std::strerror(error)));
}

}  // namespace shardscope::traces::status
