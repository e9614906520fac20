#include "trainer/world/ending.h"

#include <chrono>
#include <utility>

#include <fmt/core.h>

#include "trainer/world/wording.h"

namespace shardscope::trainer::world {

namespace {

// How long a process that ends waits until its messages are written, and for the others to close.
constexpr std::chrono::milliseconds kWriting(2000), kClosing(1000), kClosingAfterFailure(300), kLook(2);
// How long a rank that lives, but whose connections have ended, has to say why.
constexpr std::chrono::milliseconds kLastWords(1000);

std::string encode(const Failure& failure) {
    return MessageWriter().add(failure.rank).add(failure.lost).add(failure.reason).take();
}

Failure decode_failure(std::string_view text) {
    MessageReader reader(text);
    Failure failure;
    failure.rank = reader.number<int>();
    failure.lost = reader.number<bool>();
    failure.reason = reader.text();
    return failure;
}

// What a link's end says about the process at its other end.
std::string end_text(const Member& member, const std::error_code& error) {
    if (error == std::errc::protocol_error)
        return fmt::format("({}) sends data that is not a message of this program", process_text(member));
    if (error == std::errc::timed_out || error == std::errc::host_unreachable ||
        error == std::errc::network_unreachable || error == std::errc::network_down) {
        return fmt::format("({}) cannot be reached any more: {}", process_text(member), error.message());
    }
    return ended_text(member);
}

}  // namespace

Ending::Ending(asio::io_context& io, const Place& place, Links& links, Board& board, Joining& joining,
               std::function<void(const std::function<void()>&)> guarded)
    : io_(io),
      place_(place),
      links_(links),
      board_(board),
      joining_(joining),
      guarded_(std::move(guarded)),
      look_(io),
      last_words_(io) {}

void Ending::on_frame(int from, const Frame& frame) {
    if (frame.kind == FrameKind::failure)
        return first() ? weigh(decode_failure(frame.text)) : decide(decode_failure(frame.text));
    if (frame.kind == (first() ? FrameKind::farewell : FrameKind::goodbye)) throw MessageError();
    first() ? count_goodbye(from) : farewell();
}

void Ending::on_end(int rank, const std::error_code& error) {
    lost(rank, end_text(joining_.members()[static_cast<std::size_t>(rank)], error));
}

void Ending::on_silent(int rank, double timeout_s) {
    lost(rank, silent_text(joining_.members()[static_cast<std::size_t>(rank)], timeout_s));
}

void Ending::lost(int rank, const std::string& reason) {
    if (closing_ || board_.over()) return;
    if (board_.is_joining())
        return joining_.refuse(fmt::format("rank {} {}, before all processes had joined", rank, reason));
    const Failure what{.rank = rank, .reason = reason, .lost = true};
    if (weighed_) return decide(*weighed_);  // came first, and says where others waited
    if (!first()) report(what);              // a rank 0 that was only stopped learns of it when it goes on
    decide(what);
}

void Ending::report(const Failure& what) {
    if (board_.failure()) return;
    if (first()) return weigh(what);
    reported_ = true;
    links_.to_first().send(FrameKind::failure, encode(what));
}

void Ending::weigh(const Failure& what) {
    if (!what.lost) return decide(what);
    if (weighed_) return;
    weighed_ = what;
    if (closing_) return decide(what);
    last_words_.expires_after(kLastWords);
    last_words_.async_wait([this](const std::error_code& stopped) {
        if (!stopped) decide(*weighed_);
    });
}

void Ending::decide(const Failure& what) {
    if (board_.over()) return;
    last_words_.cancel();
    board_.failed(what);
    if (first()) links_.send_to_all(FrameKind::failure, encode(what));
    for (const auto& handler : std::exchange(handlers_, {})) {
        if (!closing_) guarded_([&] { handler(what); });
    }
    board_.failure_told();
}

void Ending::listen(std::function<void(const Failure&)> handler) {
    if (const auto failure = board_.failure()) return guarded_([&] { handler(*failure); });
    handlers_.push_back(std::move(handler));
}

void Ending::say_goodbye() {
    if (first()) {
        count_goodbye(0);
    } else {
        links_.to_first().send(FrameKind::goodbye);
    }
}

void Ending::count_goodbye(int rank) {
    goodbyes_.insert(rank);
    if (goodbyes_.size() < static_cast<std::size_t>(place_.ranks) || board_.over()) return;
    links_.send_to_all(FrameKind::farewell);
    farewell();
}

void Ending::farewell() {
    board_.farewell();
    // Rank 0 has sent its last message: once it sees the others' ends, it may close its own.
    if (!first()) links_.to_first().finish_sending();
}

void Ending::close() {
    closing_ = true;
    if (weighed_) decide(*weighed_);
    closing_since_ = std::chrono::steady_clock::now();
    close_when_written();
}

void Ending::close_when_written() {
    const auto since = std::chrono::steady_clock::now() - closing_since_;
    const bool all_written =
        links_.all_written() && joining_.all_written() && (!reported_ || board_.failure() || links_.empty());
    if (!finished_sending_ && ((all_written && joining_.all_told(since)) || since > kWriting)) {
        links_.finish_sending();
        finished_sending_ = true;
        closing_since_ += since;
        return close_when_written();
    }
    // Closing a connection with unread data discards what was just sent: rank 0, which sends last, lets the
    // others close first.
    const auto patience = board_.said_farewell() ? kClosing
                          : board_.failure()     ? kClosingAfterFailure
                                                 : std::chrono::milliseconds(0);
    if (finished_sending_ && (!first() || links_.all_ended() || since >= patience)) {
        joining_.close();
        links_.close();
        return io_.stop();
    }
    look_.expires_after(kLook);
    look_.async_wait([this](const std::error_code& stopped) {
        if (!stopped) close_when_written();
    });
}

}  // namespace shardscope::trainer::world
