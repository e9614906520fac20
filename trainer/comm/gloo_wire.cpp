#include "trainer/comm/gloo_wire.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gloo/transport/context.h>
#include <pthread.h>
#include <signal.h>

#include "profiler/base/quiet_thread.h"
#include "trainer/world/world.h"

namespace shardscope::trainer::comm {

namespace {

using gloo::transport::Context;
using gloo::transport::UnboundBuffer;

// Gloo closes all connections if a wait takes longer than its timeout. The process group, not Gloo, decides
// how long a collective may take.
constexpr std::chrono::hours kForever{24 * 365};

// Blocks SIGPIPE: Gloo's writes raise it if the peer has gone, which would end the program.
void hold_back_sigpipe() {
    thread_local const bool held = [] {
        sigset_t pipe;
        ::sigemptyset(&pipe);
        ::sigaddset(&pipe, SIGPIPE);
        return ::pthread_sigmask(SIG_BLOCK, &pipe, nullptr) == 0;
    }();
    static_cast<void>(held);
}

enum class Way : std::uint8_t { out, in };

class GlooWire final : public Wire {
  public:
    explicit GlooWire(std::shared_ptr<Context> context)
        : context_(std::move(context)),
          under_way_(static_cast<std::size_t>(context_->size)),
          lost_(static_cast<std::size_t>(context_->size)) {}
    ~GlooWire() override { abandon(); }

    int rank() const override { return context_->rank; }
    int ranks() const override { return context_->size; }
    const char* name() const override { return "gloo"; }

    Ticket send(int to, std::uint32_t tag, std::span<const std::byte> data) override {
        return start(to, tag, Way::out, const_cast<std::byte*>(data.data()), data.size());
    }
    Ticket receive(int from, std::uint32_t tag, std::span<std::byte> data) override {
        return start(from, tag, Way::in, data.data(), data.size());
    }
    bool done(Ticket ticket) override {
        Message& message = messages_[ticket - 1];
        if (!message.over.load(std::memory_order_acquire)) return false;
        message.buffer.reset();
        free_.push_back(ticket - 1);
        return true;
    }
    bool moves_in_progress() const override { return false; }
    bool progress(int wait_us) override;
    void wake() override {
        const std::lock_guard lock(mutex_);
        woken_ = true;
        changed_.notify_one();
    }
    void abandon() override;

  private:
    struct Message {
        std::unique_ptr<UnboundBuffer> buffer;
        std::atomic<bool> over{false};
    };
    // Messages of one tag to or from one rank; they end in order.
    struct Stream {
        std::uint64_t key;
        int peer;
        Way way;
        std::deque<Message*> under_way;
    };

    Ticket start(int peer, std::uint32_t tag, Way way, std::byte* data, std::size_t bytes);
    void wait_for_streams();  // on a waiting thread
    void wait_for(Stream& stream, std::unique_lock<std::mutex>& lock);
    int lost_peer() const;  // a lost rank with messages under way; -1: none

    const std::shared_ptr<Context> context_;

    // Used by the wire's thread only. Messages never move.
    std::deque<Message> messages_;
    std::vector<std::size_t> free_;  // messages that are not in use
    std::vector<std::thread> waiting_;

    std::mutex mutex_;
    std::condition_variable changed_;                    // for the wire's thread: moved_, woken_, lost_
    std::condition_variable to_do_;                      // for waiting threads: unattended_, abandoned_
    std::unordered_map<std::uint64_t, Stream> streams_;  // with messages under way, by key
    std::vector<Stream*> unattended_;                    // those for which no thread waits yet
    std::size_t idle_ = 0;                               // waiting threads that have no stream
    std::vector<int> under_way_;                         // number of messages, by rank
    std::vector<bool> lost_;                             // ranks whose connection has ended
    bool moved_ = false, woken_ = false, abandoned_ = false;
};

Wire::Ticket GlooWire::start(int peer, std::uint32_t tag, Way way, std::byte* data, std::size_t bytes) {
    if (peer < 0 || peer >= ranks() || peer == rank())
        throw std::logic_error(fmt::format("rank {} has no connection to rank {}", rank(), peer));
    hold_back_sigpipe();
    if (free_.empty()) {
        messages_.emplace_back();
        free_.push_back(messages_.size() - 1);
    }
    const std::size_t number = free_.back();
    free_.pop_back();
    Message& message = messages_[number];
    message.over.store(false, std::memory_order_relaxed);
    message.buffer = context_->createUnboundBuffer(data, bytes);
    bool lost = false;
    try {
        if (way == Way::out) {
            message.buffer->send(peer, tag, 0, bytes);
        } else {
            message.buffer->recv(peer, tag, 0, bytes);
        }
    } catch (const std::exception&) {  // Gloo does not reopen a connection
        lost = true;
    }
    const std::uint64_t key = (static_cast<std::uint64_t>(peer) << 33) | (std::uint64_t{tag} << 1) |
                              static_cast<std::uint64_t>(way);
    const std::lock_guard lock(mutex_);
    ++under_way_[static_cast<std::size_t>(peer)];
    if (lost) {
        lost_[static_cast<std::size_t>(peer)] = true;
        return number + 1;
    }
    const auto [stream, fresh] = streams_.try_emplace(key, Stream{key, peer, way, {}});
    stream->second.under_way.push_back(&message);
    if (!fresh) return number + 1;
    unattended_.push_back(&stream->second);
    if (unattended_.size() > idle_) {
        waiting_.push_back(profiler::start_quietly([this] { wait_for_streams(); }));
    } else {
        to_do_.notify_one();
    }
    return number + 1;
}

void GlooWire::wait_for_streams() {
    ::pthread_setname_np(::pthread_self(), "gloo waits");
    std::unique_lock lock(mutex_);
    while (true) {
        ++idle_;
        to_do_.wait(lock, [&] { return abandoned_ || !unattended_.empty(); });
        --idle_;
        if (abandoned_) return;
        Stream& stream = *unattended_.back();
        unattended_.pop_back();
        wait_for(stream, lock);
        if (stream.under_way.empty()) streams_.erase(stream.key);
    }
}

// Waits until none of the stream's messages is under way.
void GlooWire::wait_for(Stream& stream, std::unique_lock<std::mutex>& lock) {
    const auto peer = static_cast<std::size_t>(stream.peer);
    while (!stream.under_way.empty()) {
        Message& message = *stream.under_way.front();
        UnboundBuffer& buffer = *message.buffer;
        bool over = false;
        lock.unlock();
        try {
            over = stream.way == Way::out ? buffer.waitSend(kForever) : buffer.waitRecv(kForever);
        } catch (const std::exception&) {
        }
        lock.lock();
        if (abandoned_) return;
        if (over) {
            stream.under_way.pop_front();
            --under_way_[peer];
            message.over.store(true, std::memory_order_release);
            moved_ = true;
        } else {
            lost_[peer] = true;
        }
        changed_.notify_one();
        if (!over) return;
    }
}

bool GlooWire::progress(int wait_us) {
    std::unique_lock lock(mutex_);
    const auto news = [&] { return moved_ || woken_ || lost_peer() >= 0; };
    if (wait_us > 0) changed_.wait_for(lock, std::chrono::microseconds(wait_us), news);
    woken_ = false;
    if (const int peer = lost_peer(); peer >= 0)
        throw WireError(fmt::format("the connection to rank {} has ended", peer), peer);
    return std::exchange(moved_, false);
}

int GlooWire::lost_peer() const {
    for (std::size_t peer = 0; peer < lost_.size(); ++peer) {
        if (lost_[peer] && under_way_[peer] > 0) return static_cast<int>(peer);
    }
    return -1;
}

void GlooWire::abandon() {
    {
        const std::lock_guard lock(mutex_);
        abandoned_ = true;
        for (auto& [key, stream] : streams_) {
            if (stream.under_way.empty()) continue;
            UnboundBuffer& buffer = *stream.under_way.front()->buffer;
            stream.way == Way::out ? buffer.abortWaitSend() : buffer.abortWaitRecv();
        }
        to_do_.notify_all();
    }
    for (std::thread& thread : waiting_) thread.join();
    waiting_.clear();
    streams_.clear();
    // Waits for Gloo's thread if it is writing into the message's memory.
    for (Message& message : messages_) message.buffer.reset();
}

}  // namespace

std::unique_ptr<Wire> make_gloo_wire(const WirePeers& peers, double timeout_s) {
    return std::make_unique<GlooWire>(connect_by_gloo(peers, timeout_s));
}

std::unique_ptr<Wire> make_gloo_wire(world::World& world) {
    return make_gloo_wire(peers_of(world));
}

}  // namespace shardscope::trainer::comm
