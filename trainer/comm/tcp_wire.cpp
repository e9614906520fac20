#include "trainer/comm/tcp_wire.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <fmt/core.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "profiler/base/clock.h"
#include "trainer/comm/sleep.h"
#include "trainer/comm/socket.h"
#include "trainer/comm/tcp_connect.h"
#include "trainer/comm/tcp_peer.h"
#include "trainer/comm/wire_messages.h"

namespace shardscope::trainer::comm {

namespace {

constexpr long kFarewellNs = 500'000'000;

class TcpWire final : public Wire {
  public:
    TcpWire(int rank, std::vector<TcpConnection> connections)
        : rank_(rank),
          epoll_(::epoll_create1(EPOLL_CLOEXEC)),
          waker_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
        if (!epoll_ || !waker_) {
            throw world::WorldError(
                fmt::format("the connections cannot be watched ({})", std::strerror(errno)));
        }
        watch(EPOLL_CTL_ADD, waker_.get(), EPOLLIN, kWaker);
        peers_.resize(connections.size());
        writing_.resize(connections.size(), false);
        for (std::size_t i = 0; i < connections.size(); i++) {
            if (!connections[i].socket) continue;
            peers_[i] = std::make_unique<TcpPeer>(static_cast<int>(i), std::move(connections[i]), messages_);
            watch(EPOLL_CTL_ADD, peers_[i]->descriptor(), EPOLLIN, i);
        }
    }

    // Sends the answers that others wait for before it closes the connections.
    ~TcpWire() override {
        const long deadline = profiler::monotonic_ns() + kFarewellNs;
        for (const std::unique_ptr<TcpPeer>& other : peers_) {
            while (other && other->owes_answers() && profiler::monotonic_ns() < deadline) {
                pollfd watched{other->descriptor(), POLLOUT, 0};
                ::poll(&watched, 1, 10);
                other->write();
            }
        }
    }

    int rank() const override { return rank_; }
    int ranks() const override { return static_cast<int>(peers_.size()); }
    const char* name() const override { return "tcp"; }

    Ticket send(int to, std::uint32_t tag, std::span<const std::byte> data) override {
        TcpPeer& other = peer(to);
        const std::size_t message = messages_.open({data.data(), nullptr, data.size()});
        other.send(message, tag);
        write(static_cast<std::size_t>(to));
        return WireMessages::ticket(message);
    }

    Ticket receive(int from, std::uint32_t tag, std::span<std::byte> data) override {
        TcpPeer& other = peer(from);
        const std::size_t message = messages_.open({nullptr, data.data(), data.size()});
        other.receive(message, tag);
        if (other.has_to_write()) write(static_cast<std::size_t>(from));
        return WireMessages::ticket(message);
    }

    bool done(Ticket ticket) override { return messages_.take_if_over(ticket); }

    bool progress(int wait_us) override {
        if (pass() || wait_us <= 0) return std::exchange(moved_, false);
        // Sleeps immediately: the woken thread gets the core, and polling would take it from a computing one.
        const long deadline = profiler::monotonic_ns() + wait_us * 1'000L;
        for (long now = 0; !woken_ && (now = profiler::monotonic_ns()) < deadline;) {
            sleep_on(epoll_.get(), deadline - now);
            if (pass()) break;
        }
        woken_ = false;
        return std::exchange(moved_, false);
    }

    void wake() override { poke(waker_.get()); }

  private:
    static constexpr std::uint64_t kWaker = ~std::uint64_t{0};

    TcpPeer& peer(int rank) {
        if (rank < 0 || rank >= ranks() || rank == rank_) {
            throw std::logic_error(fmt::format("rank {} has no connection to rank {}", rank_, rank));
        }
        return *peers_[static_cast<std::size_t>(rank)];
    }

    void watch(int operation, int descriptor, std::uint32_t events, std::uint64_t what) const {
        epoll_event event{};
        event.events = events;
        event.data.u64 = what;
        if (::epoll_ctl(epoll_.get(), operation, descriptor, &event) != 0) {
            throw WireError(fmt::format("a connection cannot be watched ({})", std::strerror(errno)));
        }
    }

    // Writes what the connection takes now; the rest is written when the kernel reports room.
    void write(std::size_t i) {
        TcpPeer& other = *peers_[i];
        if (other.write()) moved_ = true;
        if (other.has_to_write() == writing_[i] || other.closed()) return;
        writing_[i] = !writing_[i];
        watch(EPOLL_CTL_MOD, other.descriptor(), writing_[i] ? EPOLLIN | EPOLLOUT : EPOLLIN, i);
    }

    void read(std::size_t i) {
        TcpPeer& other = *peers_[i];
        if (other.read()) moved_ = true;
        if (other.closed()) {
            watch(EPOLL_CTL_DEL, other.descriptor(), 0, i);
            closed_.push_back(i);
        }
    }

    // Moves what can be moved now; returns whether anything moved.
    bool pass() {
        std::array<epoll_event, 64> events{};
        const int ready = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
        for (int e = 0; e < ready; e++) {
            const epoll_event& event = events[static_cast<std::size_t>(e)];
            if (event.data.u64 == kWaker) {
                woken_ = take_pokes(waker_.get());
                continue;
            }
            if (event.events & (EPOLLIN | EPOLLHUP | EPOLLERR)) read(event.data.u64);
        }
        for (std::size_t i = 0; i < peers_.size(); i++) {
            if (!peers_[i]) continue;
            if (peers_[i]->has_to_copy() && peers_[i]->copy()) moved_ = true;
            if (peers_[i]->has_to_write()) write(i);
        }
        for (const std::size_t i : closed_) {
            if (!peers_[i]->under_way()) continue;
            throw WireError(fmt::format("the connection to rank {} has ended", i), static_cast<int>(i));
        }
        return moved_;
    }

    const int rank_;
    Socket epoll_, waker_;
    WireMessages messages_;
    std::vector<std::unique_ptr<TcpPeer>> peers_;  // by rank; none for this one
    std::vector<bool> writing_;                    // by rank: whether epoll reports room to write
    std::vector<std::size_t> closed_;              // ranks whose connections have ended
    bool moved_ = false, woken_ = false;
};

}  // namespace

std::unique_ptr<Wire> make_tcp_wire(const WirePeers& peers, const TcpWireOptions& options) {
    return std::make_unique<TcpWire>(peers.rank, connect_all(peers, options));
}

std::unique_ptr<Wire> make_tcp_wire(world::World& world) {
    return make_tcp_wire(peers_of(world));
}

}  // namespace shardscope::trainer::comm
