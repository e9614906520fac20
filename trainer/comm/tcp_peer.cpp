#include "trainer/comm/tcp_peer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>

#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/uio.h>

namespace shardscope::trainer::comm {

namespace {

constexpr std::size_t kStaging = std::size_t{64} << 10;
// Limits of one turn, in bytes, before the other connections get theirs.
constexpr std::size_t kReadTurn = std::size_t{1} << 20;
constexpr std::size_t kCopyTurn = std::size_t{1} << 20;
constexpr std::size_t kFramesAtOnce = 8;
// The most bytes of small messages that are kept without a receive.
constexpr std::size_t kMostKept = std::size_t{1} << 30;

}  // namespace

TcpPeer::TcpPeer(int rank, TcpConnection connection, WireMessages& messages)
    : rank_(rank), connection_(std::move(connection)), messages_(messages), staging_(kStaging) {}

void TcpPeer::fail(const std::string& clause) const {
    throw WireError(fmt::format("the connection to rank {} {}", rank_, clause), rank_);
}

void TcpPeer::finish(std::size_t message) {
    messages_[message].over = true;
    under_way_--;
}

// --- out ---------------------------------------------------------------------------------------------------

void TcpPeer::send(std::size_t message, std::uint32_t tag) {
    under_way_++;
    const WireMessage& sent = messages_[message];
    TcpFrame frame;
    frame.tag = tag;
    frame.size = sent.size;
    frame.id = message;
    if (sent.size <= kSmallMessage) {
        queue(frame, sent.source, sent.size, message);
        return;
    }
    frame.kind = TcpFrameKind::announce;
    frame.address = std::bit_cast<std::uintptr_t>(sent.source);
    queue(frame, nullptr, 0, kNone);
}

void TcpPeer::queue(const TcpFrame& frame, const std::byte* data, std::size_t bytes, std::size_t message) {
    frames_.push_back({frame, data, bytes, 0, message});
}

// Queues the next part of a large message; they take turns, and only when nothing else waits.
void TcpPeer::queue_data() {
    const Cleared next = cleared_.front();
    cleared_.pop_front();
    WireMessage& message = messages_[next.message];
    TcpFrame frame;
    frame.kind = TcpFrameKind::data;
    frame.other = next.receiver;
    frame.size = std::min(kDataFrame, message.size - message.moved);
    const std::byte* data = message.source + message.moved;
    message.moved += frame.size;
    const bool last = message.moved == message.size;
    queue(frame, data, frame.size, last ? next.message : kNone);
    if (!last) cleared_.push_back(next);
}

bool TcpPeer::write() {
    bool moved = false;
    while (has_to_write()) {
        if (frames_.empty()) queue_data();
        std::array<iovec, 2 * kFramesAtOnce> parts{};
        std::size_t count = 0, all = 0;
        for (std::size_t i = 0; i < std::min(frames_.size(), kFramesAtOnce); i++) {
            Outgoing& out = frames_[i];
            const std::size_t of_frame = std::min(out.sent, sizeof out.frame);
            const std::size_t of_data = out.sent - of_frame;
            if (of_frame < sizeof out.frame) {
                parts[count++] = {reinterpret_cast<char*>(&out.frame) + of_frame,
                                  sizeof out.frame - of_frame};
            }
            if (of_data < out.bytes) {
                parts[count++] = {const_cast<std::byte*>(out.data) + of_data, out.bytes - of_data};
            }
            all += sizeof out.frame + out.bytes - out.sent;
        }
        msghdr header{};
        header.msg_iov = parts.data();
        header.msg_iovlen = count;
        const ssize_t bytes = ::sendmsg(descriptor(), &header, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (bytes < 0) {
            if (errno == EINTR) continue;
            if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS) break;
            broken_ = true;
            break;
        }
        moved = true;
        sent(static_cast<std::size_t>(bytes));
        if (static_cast<std::size_t>(bytes) < all) break;  // the buffer is full
    }
    return moved;
}

bool TcpPeer::owes_answers() const {
    return has_to_write() && cleared_.empty() &&
           std::all_of(frames_.begin(), frames_.end(), [](const Outgoing& out) { return out.bytes == 0; });
}

void TcpPeer::sent(std::size_t bytes) {
    while (bytes > 0) {
        Outgoing& out = frames_.front();
        const std::size_t now = std::min(bytes, sizeof out.frame + out.bytes - out.sent);
        out.sent += now;
        bytes -= now;
        if (out.sent < sizeof out.frame + out.bytes) return;
        if (out.message != kNone) finish(out.message);
        frames_.pop_front();
    }
}

// --- in ----------------------------------------------------------------------------------------------------

void TcpPeer::receive(std::size_t message, std::uint32_t tag) {
    under_way_++;
    Tag& entry = tags_[tag];
    if (entry.arrivals.empty()) {
        entry.receives.push_back(message);
        return;
    }
    std::unique_ptr<Arrival> arrival = std::move(entry.arrivals.front());
    entry.arrivals.pop_front();
    forget(tag);
    check_size(message, arrival->frame);
    if (arrival->frame.kind == TcpFrameKind::announce) {
        accept(message, arrival->frame);
        return;
    }
    kept_ -= arrival->data.size();
    if (arrival.get() == arriving_) {
        arrival->receiver = message;
        claimed_ = std::move(arrival);
        return;
    }
    if (!arrival->data.empty()) {
        std::memcpy(messages_[message].target, arrival->data.data(), arrival->data.size());
    }
    finish(message);
}

void TcpPeer::forget(std::uint32_t tag) {
    const auto found = tags_.find(tag);
    if (found != tags_.end() && found->second.receives.empty() && found->second.arrivals.empty()) {
        tags_.erase(found);
    }
}

void TcpPeer::check_size(std::size_t message, const TcpFrame& frame) const {
    const std::size_t size = messages_[message].size;
    if (size == frame.size) return;
    throw WireError(
        fmt::format("rank {} sent a message of {} bytes, but {} were expected", rank_, frame.size, size),
        rank_);
}

std::size_t TcpPeer::known(std::uint64_t message) const {
    if (message >= messages_.size()) fail("carries an invalid frame; the memory or the network is faulty");
    return message;
}

void TcpPeer::accept(std::size_t message, const TcpFrame& frame) {
    if (connection_.memory_of >= 0) {
        copies_.push_back({message, frame.id, frame.address});
        return;
    }
    TcpFrame clear;
    clear.kind = TcpFrameKind::clear;
    clear.id = frame.id;
    clear.other = message;
    queue(clear, nullptr, 0, kNone);
}

bool TcpPeer::copy() {
    std::size_t turn = kCopyTurn;
    while (turn > 0 && !copies_.empty()) {
        const Copy& next = copies_.front();
        WireMessage& message = messages_[next.message];
        const std::size_t bytes = std::min(turn, message.size - message.moved);
        const iovec here{message.target + message.moved, bytes};
        const iovec there{std::bit_cast<void*>(static_cast<std::uintptr_t>(next.address + message.moved)),
                          bytes};
        const ssize_t copied = ::process_vm_readv(connection_.memory_of, &here, 1, &there, 1, 0);
        if (copied <= 0) {
            fail(
                fmt::format("is broken: the rank's memory can no longer be read ({})", std::strerror(errno)));
        }
        message.moved += static_cast<std::size_t>(copied);
        turn -= static_cast<std::size_t>(copied);
        if (message.moved < message.size) continue;
        TcpFrame taken;
        taken.kind = TcpFrameKind::taken;
        taken.id = next.sender;
        queue(taken, nullptr, 0, kNone);
        finish(next.message);
        copies_.pop_front();
    }
    return turn != kCopyTurn;
}

bool TcpPeer::read() {
    std::size_t turn = 0;
    while (!closed_ && turn < kReadTurn) {
        // Data go straight to their destination; what follows them goes to the staging buffer.
        const std::array<iovec, 2> parts{iovec{target_, expected_},
                                         iovec{staging_.data() + staged_, staging_.size() - staged_}};
        const bool data = expected_ > 0;
        const ssize_t bytes =
            data ? ::readv(descriptor(), parts.data(), 2) : ::readv(descriptor(), &parts[1], 1);
        if (bytes < 0 && errno == EINTR) continue;
        if (bytes < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
        if (bytes <= 0) {
            closed_ = true;
            break;
        }
        const auto come = static_cast<std::size_t>(bytes);
        const std::size_t asked = parts[1].iov_len + (data ? parts[0].iov_len : 0);
        turn += come;
        const std::size_t direct = data ? std::min(come, expected_) : 0;
        if (direct > 0) take(direct);
        staged_ += come - direct;
        take_staged();
        if (come < asked) break;  // there is no more
    }
    return turn > 0;
}

void TcpPeer::take(std::size_t bytes) {
    target_ += bytes;
    expected_ -= bytes;
    if (expected_ == 0) arrived();
}

void TcpPeer::take_staged() {
    std::size_t at = 0;
    while (at < staged_) {
        if (expected_ > 0) {
            const std::size_t bytes = std::min(expected_, staged_ - at);
            std::memcpy(target_, staging_.data() + at, bytes);
            at += bytes;
            take(bytes);
            continue;
        }
        if (staged_ - at < sizeof(TcpFrame)) break;
        TcpFrame frame;
        std::memcpy(&frame, staging_.data() + at, sizeof frame);
        at += sizeof frame;
        handle(frame);
    }
    if (at == 0) return;
    std::memmove(staging_.data(), staging_.data() + at, staged_ - at);
    staged_ -= at;
}

void TcpPeer::handle(const TcpFrame& frame) {
    switch (frame.kind) {
        case TcpFrameKind::small:
        case TcpFrameKind::announce:
            handle_message(frame);
            return;
        case TcpFrameKind::clear:
            cleared_.push_back({known(frame.id), frame.other});
            return;
        case TcpFrameKind::data:
            handle_data(frame);
            return;
        case TcpFrameKind::taken:
            finish(known(frame.id));
            return;
    }
    fail("carries an invalid frame; the memory or the network is faulty");
}

void TcpPeer::handle_message(const TcpFrame& frame) {
    const bool small = frame.kind == TcpFrameKind::small;
    if (small && frame.size > kSmallMessage) {
        fail("carries an invalid frame; the memory or the network is faulty");
    }
    Tag& entry = tags_[frame.tag];
    if (!entry.receives.empty()) {
        const std::size_t message = entry.receives.front();
        entry.receives.pop_front();
        forget(frame.tag);
        check_size(message, frame);
        if (!small) {
            accept(message, frame);
            return;
        }
        target_ = messages_[message].target;
        expected_ = frame.size;
        receiving_ = message;
        if (expected_ == 0) arrived();
        return;
    }
    auto arrival = std::make_unique<Arrival>();
    arrival->frame = frame;
    if (small) {
        kept_ += frame.size;
        if (kept_ > kMostKept) {
            fail(fmt::format("has delivered {} MiB of messages that this rank has not requested",
                             kept_ >> 20));
        }
        arrival->data.resize(frame.size);
        target_ = arrival->data.data();
        expected_ = frame.size;
        if (expected_ > 0) arriving_ = arrival.get();
    }
    entry.arrivals.push_back(std::move(arrival));
}

void TcpPeer::handle_data(const TcpFrame& frame) {
    const std::size_t message = known(frame.other);
    const WireMessage& received = messages_[message];
    if (!received.target || frame.size == 0 || frame.size > received.size - received.moved) {
        fail("carries an invalid frame; the memory or the network is faulty");
    }
    target_ = received.target + received.moved;
    expected_ = frame.size;
    receiving_ = message;
    messages_[message].moved += frame.size;
}

void TcpPeer::arrived() {
    if (arriving_) {
        if (claimed_) {
            std::memcpy(messages_[claimed_->receiver].target, claimed_->data.data(), claimed_->data.size());
            finish(claimed_->receiver);
            claimed_.reset();
        }
        arriving_ = nullptr;
        return;
    }
    WireMessage& message = messages_[receiving_];
    if (message.size <= kSmallMessage || message.moved == message.size) finish(receiving_);
    receiving_ = kNone;
}

}  // namespace shardscope::trainer::comm
