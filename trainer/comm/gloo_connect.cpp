#include "trainer/comm/gloo_connect.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <stop_token>
#include <string_view>
#include <thread>

#include <fmt/core.h>
#include <gloo/transport/context.h>
#include <gloo/transport/tcp/device.h>

#include "profiler/base/quiet_thread.h"
#include "trainer/comm/tcp_address.h"
#include "trainer/world/own_addresses.h"
#include "trainer/world/place.h"
#include "trainer/world/proof.h"

namespace shardscope::trainer::comm {

namespace {

using gloo::transport::Context;
using gloo::transport::UnboundBuffer;
using std::chrono::milliseconds;

// The proofs' slot; the wire's slots are tags of 32 bits.
constexpr std::uint64_t kProofSlot = std::uint64_t{1} << 32;
// Gloo waits five times its timeout for a connection.
constexpr double kGloosFactor = 5;
constexpr milliseconds kLook{100};

// Gloo's message without the source location in front of it.
std::string reason(const std::exception& error) {
    const std::string text = error.what();
    const std::size_t end = text.find("] ");
    return text.starts_with('[') && end != std::string::npos ? text.substr(end + 2) : text;
}

// Calls `interrupt` once if the job fails elsewhere while this object exists.
class FailureWatch {
  public:
    FailureWatch(const std::function<bool()>& failed, std::function<void()> interrupt) {
        thread_ =
            std::jthread([&failed, interrupt = std::move(interrupt), this](const std::stop_token& stop) {
                std::unique_lock lock(mutex_);
                while (!stopped_.wait_for(lock, stop, kLook, [&] { return stop.stop_requested(); })) {
                    if (failed()) return interrupt();
                }
            });
    }

  private:
    std::mutex mutex_;
    std::condition_variable_any stopped_;
    std::jthread thread_;
};

class Connector {
  public:
    Connector(const WirePeers& peers, double timeout_s) : peers_(peers), timeout_s_(timeout_s) {}

    // What has been opened so far, after a failure, too.
    const std::shared_ptr<Context>& context() const { return context_; }

    void connect() {
        context_ = gloo::transport::tcp::CreateDevice(own_address().c_str())
                       ->createContext(peers_.rank, peers_.ranks);
        context_->setTimeout(milliseconds(std::max(1L, std::lround(timeout_s_ * 1000 / kGloosFactor))));
        exchange_ports();
        connect_pairs();
        exchange_proofs();
    }

  private:
    template <class Visit>
    void for_others(const Visit& visit) const {
        for (int other = 0; other < peers_.ranks; ++other) {
            if (other != peers_.rank) visit(other);
        }
    }

    // The address at which the others can reach this process: loopback if all of them are on its machine,
    // else its address in the network that it most likely shares with the other machines.
    std::string own_address() const {
        TcpAddress mine;
        mine.kernel = kernel_identity();
        mine.addresses = world::interface_addresses();
        std::vector<std::string> elsewhere;
        for (const std::string& line : peers_.gather(print(mine))) {
            const TcpAddress theirs = parse_tcp_address(line);
            if (mine.kernel.empty() || theirs.kernel != mine.kernel)
                elsewhere.insert(elsewhere.end(), theirs.addresses.begin(), theirs.addresses.end());
        }
        if (elsewhere.empty()) return "127.0.0.1";
        const std::vector<std::string> nearest = nearest_first(mine.addresses, elsewhere);
        if (nearest.empty()) throw world::WorldError(peers_.where(peers_.rank) + " has no network address");
        return nearest.front();
    }

    // Gloo listens on a separate port for each other rank.
    void exchange_ports() {
        std::string mine = nonces_[place(peers_.rank)] = world::random_bytes(world::kNonceBytes);
        std::size_t size = 0;
        for_others([&](int other) { size = context_->createPair(other)->address().bytes().size(); });
        for (int other = 0; other < peers_.ranks; ++other) {
            if (other == peers_.rank) {
                mine.append(size, '\0');
                continue;
            }
            const std::vector<char> bytes = context_->getPair(other)->address().bytes();
            mine.append(bytes.begin(), bytes.end());
        }
        const std::vector<std::string> all = peers_.gather(mine);
        for_others([&](int other) {
            const std::string& theirs = all[place(other)];
            if (theirs.size() != mine.size())
                throw world::WorldError(fmt::format("{} sent an invalid list of ports", peers_.where(other)));
            nonces_[place(other)] = theirs.substr(0, world::kNonceBytes);
            const auto port =
                theirs.begin() + static_cast<std::ptrdiff_t>(world::kNonceBytes + place(peers_.rank) * size);
            ports_[place(other)].assign(port, port + static_cast<std::ptrdiff_t>(size));
        });
    }

    void connect_pairs() {
        const FailureWatch watch(
            peers_.failed, [this] { for_others([this](int other) { context_->getPair(other)->close(); }); });
        for_others([&](int other) {
            try {
                context_->getPair(other)->connect(ports_[place(other)]);
            } catch (const std::exception& error) {
                not_connected(other, error);
            }
        });
        peers_.check_failed();
    }

    // Proves to `to` that `from` knows the token; the proof is valid on no other connection.
    std::string proof_of(int from, int to) const {
        return proof(peers_.token, from > to ? world::Side::visitor : world::Side::rank_0,
                     nonces_between(from, to), fmt::format("{} {}", from, to));
    }
    bool is_proof(const std::string& received, int from) const {
        const std::string message = received + fmt::format("{} {}", from, peers_.rank);
        std::string_view rest = message;
        return take_proof(peers_.token, from > peers_.rank ? world::Side::visitor : world::Side::rank_0,
                          nonces_between(from, peers_.rank), rest);
    }
    world::Nonces nonces_between(int a, int b) const {
        return {nonces_[place(std::max(a, b))], nonces_[place(std::min(a, b))]};
    }

    struct Exchange {
        int other;
        std::string sent, received;
        std::unique_ptr<UnboundBuffer> sending, receiving;
    };

    void exchange_proofs() {
        std::vector<Exchange> exchanges;
        exchanges.reserve(place(peers_.ranks));  // texts must not move: Gloo has their addresses
        for_others([&](int other) {
            Exchange& each = exchanges.emplace_back();
            each.other = other;
            each.sent = proof_of(peers_.rank, other);
            each.received.resize(world::kProofBytes);
            each.sending = context_->createUnboundBuffer(each.sent.data(), each.sent.size());
            each.receiving = context_->createUnboundBuffer(each.received.data(), each.received.size());
        });
        const FailureWatch watch(peers_.failed, [&] {
            for (const Exchange& each : exchanges) {
                each.sending->abortWaitSend();
                each.receiving->abortWaitRecv();
            }
        });
        const auto deadline = std::chrono::steady_clock::now() + milliseconds(std::lround(timeout_s_ * 1000));
        const auto left = [&] {
            const auto until = deadline - std::chrono::steady_clock::now();
            return std::max(milliseconds(1), std::chrono::duration_cast<milliseconds>(until));
        };
        for (const Exchange& each : exchanges) {
            try {
                each.receiving->recv(each.other, kProofSlot);
                each.sending->send(each.other, kProofSlot);
            } catch (const std::exception& error) {
                not_connected(each.other, error);
            }
        }
        for (const Exchange& each : exchanges) {
            try {
                const bool both = each.receiving->waitRecv(left()) && each.sending->waitSend(left());
                if (!both) peers_.check_failed();
            } catch (const world::WorldError&) {
                throw;
            } catch (const std::exception& error) {
                not_connected(each.other, error);
            }
            if (!is_proof(each.received, each.other)) {
                throw world::WorldError(fmt::format(
                    "{} expected a connection from {}, but the program that connected does not know the "
                    "job's token; restart the job on ports that no other program uses",
                    peers_.where(peers_.rank), peers_.where(each.other)));
            }
        }
    }

    [[noreturn]] void not_connected(int other, const std::exception& error) const {
        peers_.check_failed();
        throw world::WorldError(
            fmt::format("{} and {} were not connected within {:g} s ({}); allow connections between the "
                        "processes in the hosts' firewalls",
                        peers_.where(peers_.rank), peers_.where(other), timeout_s_, reason(error)));
    }

    static std::size_t place(int rank) { return static_cast<std::size_t>(rank); }

    const WirePeers& peers_;
    const double timeout_s_;
    std::shared_ptr<Context> context_;
    std::vector<std::string> nonces_{place(peers_.ranks)};       // by rank
    std::vector<std::vector<char>> ports_{place(peers_.ranks)};  // by rank: where it listens for this one
};

// Keeps a context until the program ends. Gloo terminates a program whose peer closes a connection while it
// is established, so a rank that gives up does not close its connections.
void keep_open(const std::shared_ptr<Context>& context) {
    static std::mutex mutex;
    static std::vector<std::shared_ptr<Context>>& kept = *new std::vector<std::shared_ptr<Context>>;
    const std::lock_guard lock(mutex);
    kept.push_back(context);
}

}  // namespace

std::shared_ptr<Context> connect_by_gloo(const WirePeers& peers, double timeout_s) {
    Connector connector(peers, timeout_s);
    std::exception_ptr error;
    // Runs on a thread that blocks all signals: Gloo's own thread inherits that, and writing to a peer that
    // has gone does not end the program by SIGPIPE.
    profiler::start_quietly([&] {
        try {
            connector.connect();
        } catch (const world::WorldError&) {
            error = std::current_exception();
        } catch (const std::exception& what) {
            error = std::make_exception_ptr(world::WorldError("Gloo cannot be used: " + reason(what)));
        }
    }).join();
    if (!error) return connector.context();
    keep_open(connector.context());
    std::rethrow_exception(error);
}

}  // namespace shardscope::trainer::comm
