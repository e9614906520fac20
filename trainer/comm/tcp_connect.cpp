#include "trainer/comm/tcp_connect.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <limits>
#include <thread>

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/uio.h>

#include "trainer/comm/tcp_address.h"
#include "trainer/world/own_addresses.h"
#include "trainer/world/own_launcher.h"

namespace shardscope::trainer::comm {

namespace {

using Clock = std::chrono::steady_clock;
using Nonce = std::array<char, 32>;

// After this, a connection from or to a stranger is given up; a slow process of the job connects again.
constexpr std::chrono::seconds kHelloPatience{5};
constexpr std::chrono::milliseconds kLook{100};
constexpr char kConfirmation = 'y';

// What both sides send first. All processes of a job have the same byte order: in another, `magic` differs.
struct Hello {
    std::uint64_t magic = 0x73686172'77697231;
    Nonce nonce{};
    std::uint32_t from = 0, to = 0;
    std::int64_t process = 0;
    std::uint64_t nonce_at = 0;  // the nonce's address: a process that can read it can read all memory
};
static_assert(std::has_unique_object_representations_v<Hello>);

// Takes the same time wherever they differ.
bool same(const Nonce& a, const Nonce& b) {
    unsigned difference = 0;
    for (std::size_t i = 0; i < a.size(); i++) {
        difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
    }
    return difference == 0;
}

Socket listen_on(int family, const sockaddr* address, socklen_t size, int backlog) {
    Socket socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket) return {};
    const int off = 0;
    if (family == AF_INET6) ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (::bind(socket.get(), address, size) != 0 || ::listen(socket.get(), backlog) != 0) return {};
    return socket;
}

Socket listen_on_any_interface(int backlog, std::uint16_t& port) {
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_addr = in6addr_any;
    Socket socket = listen_on(AF_INET6, reinterpret_cast<const sockaddr*>(&v6), sizeof v6, backlog);
    if (!socket) {
        sockaddr_in v4{};
        v4.sin_family = AF_INET;
        socket = listen_on(AF_INET, reinterpret_cast<const sockaddr*>(&v4), sizeof v4, backlog);
    }
    sockaddr_in6 bound{};  // both families have the port at the same place
    socklen_t size = sizeof bound;
    if (!socket || ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
        throw world::WorldError(
            fmt::format("this process cannot listen for the others ({})", std::strerror(errno)));
    }
    port = ntohs(bound.sin6_port);
    return socket;
}

// Waits until the descriptor is ready for `events`; false if it is not before `until`.
bool wait_for(int descriptor, short events, Clock::time_point until) {
    for (;;) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
        pollfd waited{descriptor, events, 0};
        const int ready = ::poll(&waited, 1, static_cast<int>(std::clamp<long>(left, 0, 600'000)));
        if (ready > 0) return true;
        if (ready == 0 || errno != EINTR) return false;
    }
}

class Connector {
  public:
    Connector(const WirePeers& peers, const TcpWireOptions& options)
        : peers_(peers),
          options_(options),
          deadline_(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                       std::chrono::duration<double>(options.timeout_s))) {
        connections_.resize(static_cast<std::size_t>(peers.ranks));
    }

    std::vector<TcpConnection> connect() {
        TcpAddress mine;
        const int backlog = std::max(peers_.ranks, 16);
        listeners_.push_back(listen_on_any_interface(backlog, mine.port));
        if (options_.local_sockets) {
            mine.kernel = kernel_identity();
            mine.local_name = "shardscope-" + world::random_token();
            const LocalAddress local = local_address(mine.local_name);
            Socket socket =
                listen_on(AF_UNIX, reinterpret_cast<const sockaddr*>(&local.address), local.size, backlog);
            if (socket) {
                listeners_.push_back(std::move(socket));
            } else {
                mine.local_name.clear();
            }
        }
        mine.addresses = world::interface_addresses();

        const std::string nonce = peers_.broadcast(peers_.rank == 0 ? world::random_token() : std::string());
        if (nonce.size() != nonce_.size())
            throw world::WorldError("rank 0 gave the processes no nonce to connect with");
        std::copy(nonce.begin(), nonce.end(), nonce_.begin());
        std::vector<TcpAddress> everybody;
        for (const std::string& line : peers_.gather(print(mine)))
            everybody.push_back(parse_tcp_address(line));

        // In the order of ranks: rank 0 only accepts, so rank 1 gets its answer and then accepts, and so on.
        for (int to = 0; to < peers_.rank; to++)
            connect_to(to, everybody[static_cast<std::size_t>(to)], mine);
        accept_higher();
        return std::move(connections_);
    }

  private:
    struct Visitor {
        Socket socket;
        Hello hello;
        std::size_t come = 0;
        Clock::time_point until;
        int memory_of = -1;
    };

    Hello hello_to(int rank) const {
        Hello hello;
        hello.nonce = nonce_;
        hello.from = static_cast<std::uint32_t>(peers_.rank);
        hello.to = static_cast<std::uint32_t>(rank);
        hello.process = ::getpid();
        hello.nonce_at = std::bit_cast<std::uintptr_t>(nonce_.data());
        return hello;
    }

    bool is_mine(const Hello& hello, int from) const {
        return hello.magic == Hello().magic && same(hello.nonce, nonce_) &&
               hello.from == static_cast<std::uint32_t>(from) &&
               hello.to == static_cast<std::uint32_t>(peers_.rank);
    }

    // The process whose memory can be read directly, or -1. In another container the number may be another
    // process's, so the nonce must be found at its address. Called while the other side waits for an answer:
    // later its nonce may be gone.
    int memory_of(const Hello& hello) const {
        if (!options_.direct_reads || hello.process <= 0 || hello.process > std::numeric_limits<int>::max()) {
            return -1;
        }
        Nonce read{};
        const iovec here{read.data(), read.size()};
        const iovec there{std::bit_cast<void*>(static_cast<std::uintptr_t>(hello.nonce_at)), read.size()};
        const auto process = static_cast<pid_t>(hello.process);
        const ssize_t bytes = ::process_vm_readv(process, &here, 1, &there, 1, 0);
        return bytes == static_cast<ssize_t>(read.size()) && same(read, nonce_) ? process : -1;
    }

    void keep(int rank, Socket socket, int memory_of, bool local) {
        // Messages are written whole, so they need not be delayed. The sizes of TCP's buffers are left to the
        // kernel, which adapts them to the link only if they are not set.
        const int on = 1;
        if (!local) ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        TcpConnection& connection = connections_[static_cast<std::size_t>(rank)];
        connection.socket = std::move(socket);
        connection.memory_of = local ? memory_of : -1;
    }

    // Empty if it worked, otherwise what is wrong.
    std::string try_address(int to, const sockaddr* address, socklen_t size, bool local) {
        Socket socket(::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        if (!socket) return std::strerror(errno);
        const Clock::time_point until = std::min(deadline_, Clock::now() + kHelloPatience);
        if (::connect(socket.get(), address, size) != 0) {
            if (errno != EINPROGRESS && errno != EAGAIN) return std::strerror(errno);
            if (!wait_for(socket.get(), POLLOUT, until)) return "no answer";
            int error = 0;
            socklen_t length = sizeof error;
            ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
            if (error != 0) return std::strerror(error);
        }
        const Hello mine = hello_to(to);
        if (::send(socket.get(), &mine, sizeof mine, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof mine)) {
            return std::strerror(errno);
        }
        Hello answer;
        for (std::size_t come = 0; come < sizeof answer;) {
            if (!wait_for(socket.get(), POLLIN, until)) return "connected, but no answer";
            const ssize_t bytes =
                ::recv(socket.get(), reinterpret_cast<char*>(&answer) + come, sizeof answer - come, 0);
            if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) continue;
            if (bytes <= 0) return "another program answers";
            come += static_cast<std::size_t>(bytes);
        }
        if (!is_mine(answer, to)) return "another program answers";
        const int memory = memory_of(answer);
        if (::send(socket.get(), &kConfirmation, 1, MSG_NOSIGNAL) != 1) return std::strerror(errno);
        keep(to, std::move(socket), memory, local);
        return {};
    }

    std::string try_text(int to, const std::string& text, std::uint16_t port) {
        sockaddr_in v4{};
        if (::inet_pton(AF_INET, text.c_str(), &v4.sin_addr) == 1) {
            v4.sin_family = AF_INET;
            v4.sin_port = htons(port);
            return try_address(to, reinterpret_cast<const sockaddr*>(&v4), sizeof v4, false);
        }
        sockaddr_in6 v6{};
        if (::inet_pton(AF_INET6, text.c_str(), &v6.sin6_addr) == 1) {
            v6.sin6_family = AF_INET6;
            v6.sin6_port = htons(port);
            return try_address(to, reinterpret_cast<const sockaddr*>(&v6), sizeof v6, false);
        }
        return "not an IP address";
    }

    void connect_to(int to, const TcpAddress& other, const TcpAddress& mine) {
        const bool neighbour =
            !mine.kernel.empty() && mine.kernel == other.kernel && !other.local_name.empty();
        for (;;) {
            if (neighbour) {
                const LocalAddress local = local_address(other.local_name);
                if (try_address(to, reinterpret_cast<const sockaddr*>(&local.address), local.size, true)
                        .empty()) {
                    return;
                }
            }
            std::string tried;
            for (const std::string& text : nearest_first(other.addresses, mine.addresses)) {
                const std::string wrong = try_text(to, text, other.port);
                if (wrong.empty()) return;
                tried += fmt::format("{}{} port {}: {}", tried.empty() ? "" : "; ", text, other.port, wrong);
                peers_.check_failed();
            }
            if (Clock::now() >= deadline_) {
                throw world::WorldError(
                    fmt::format("{} cannot reach {} within {:g} s ({}); allow connections between the "
                                "processes in the hosts' firewalls",
                                peers_.where(peers_.rank), peers_.where(to), options_.timeout_s,
                                tried.empty() ? "it has no network address" : tried));
            }
            std::this_thread::sleep_for(kLook);
        }
    }

    // Whether the visitor is done: accepted (its connection is kept), a stranger (not answered), or gone. A
    // process that lost patience with a busy one connects again, so only one that has read the answer and
    // confirms it counts.
    bool hear(Visitor& visitor) {
        if (visitor.come < sizeof visitor.hello) {
            const ssize_t bytes =
                ::recv(visitor.socket.get(), reinterpret_cast<char*>(&visitor.hello) + visitor.come,
                       sizeof visitor.hello - visitor.come, 0);
            if (bytes <= 0) return bytes == 0 || (errno != EAGAIN && errno != EINTR);
            visitor.come += static_cast<std::size_t>(bytes);
            return visitor.come == sizeof visitor.hello && !answer(visitor);
        }
        char confirmation = 0;
        const ssize_t bytes = ::recv(visitor.socket.get(), &confirmation, 1, 0);
        if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) return false;
        if (bytes == 1 && confirmation == kConfirmation) {
            sockaddr_storage name{};
            socklen_t size = sizeof name;
            ::getsockname(visitor.socket.get(), reinterpret_cast<sockaddr*>(&name), &size);
            keep(static_cast<int>(visitor.hello.from), std::move(visitor.socket), visitor.memory_of,
                 name.ss_family == AF_UNIX);
        }
        return true;
    }

    // Answers a process of the job that should connect here; false: it is not one, or cannot be answered.
    bool answer(Visitor& visitor) {
        const std::uint32_t from = visitor.hello.from;
        if (from <= static_cast<std::uint32_t>(peers_.rank) ||
            from >= static_cast<std::uint32_t>(peers_.ranks) ||
            !is_mine(visitor.hello, static_cast<int>(from))) {
            return false;
        }
        visitor.memory_of = memory_of(visitor.hello);
        const Hello mine = hello_to(static_cast<int>(from));
        return ::send(visitor.socket.get(), &mine, sizeof mine, MSG_NOSIGNAL) ==
               static_cast<ssize_t>(sizeof mine);
    }

    int first_missing() const {
        for (int rank = peers_.rank + 1; rank < peers_.ranks; rank++) {
            if (!connections_[static_cast<std::size_t>(rank)].socket) return rank;
        }
        return -1;
    }

    void accept_higher() {
        std::vector<Visitor> visitors;
        while (first_missing() >= 0) {
            std::vector<pollfd> polled;
            for (const Socket& listener : listeners_) polled.push_back({listener.get(), POLLIN, 0});
            for (const Visitor& visitor : visitors) polled.push_back({visitor.socket.get(), POLLIN, 0});
            ::poll(polled.data(), polled.size(), static_cast<int>(kLook.count()));
            for (std::size_t i = visitors.size(); i-- > 0;) {
                const bool over = polled[listeners_.size() + i].revents != 0 && hear(visitors[i]);
                if (over || Clock::now() >= visitors[i].until) {
                    visitors.erase(visitors.begin() + static_cast<std::ptrdiff_t>(i));
                }
            }
            for (std::size_t i = 0; i < listeners_.size(); i++) {
                if (polled[i].revents == 0) continue;
                Socket socket(::accept4(listeners_[i].get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
                if (socket) visitors.push_back({std::move(socket), {}, 0, Clock::now() + kHelloPatience});
            }
            peers_.check_failed();
            const int missing = first_missing();
            if (missing >= 0 && Clock::now() >= deadline_) {
                throw world::WorldError(
                    fmt::format("{} did not connect to {} within {:g} s; allow connections between the "
                                "processes in the hosts' firewalls",
                                peers_.where(missing), peers_.where(peers_.rank), options_.timeout_s));
            }
        }
    }

    const WirePeers& peers_;
    const TcpWireOptions& options_;
    Clock::time_point deadline_;
    Nonce nonce_{};
    std::vector<Socket> listeners_;
    std::vector<TcpConnection> connections_;
};

}  // namespace

std::vector<TcpConnection> connect_all(const WirePeers& peers, const TcpWireOptions& options) {
    return Connector(peers, options).connect();
}

}  // namespace shardscope::trainer::comm
