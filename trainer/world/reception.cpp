#include "trainer/world/reception.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "trainer/world/wording.h"

namespace shardscope::trainer::world {

namespace {

// A visitor that sends nothing is kept for a while; beyond this number beside the job's own, the oldest is
// dropped.
constexpr std::size_t kMostStrangers = 64;

}  // namespace

Reception::Reception(asio::io_context& io, Listener listener, const Hello& own, std::string token,
                     double hello_s, Events events)
    : io_(io),
      acceptor_(io),
      pause_(io),
      own_(own),
      token_(std::move(token)),
      hello_time_(hello_s),
      events_(std::move(events)),
      here_(static_cast<std::size_t>(own.ranks)),
      refused_(static_cast<std::size_t>(own.ranks)) {
    const auto protocol = listener.ipv6() ? asio::ip::tcp::v6() : asio::ip::tcp::v4();
    acceptor_.assign(protocol, listener.release());
    accept();
}

void Reception::accept() {
    acceptor_.async_accept([this](const std::error_code& error, asio::ip::tcp::socket socket) {
        if (error == asio::error::operation_aborted || !acceptor_.is_open()) return;
        if (!error) {
            receive(std::move(socket));
            return accept();
        }
        // No descriptor is free, or the visitor went away: again in a moment.
        pause_.expires_after(std::chrono::milliseconds(50));
        pause_.async_wait([this](const std::error_code& stopped) {
            if (!stopped) accept();
        });
    });
}

void Reception::receive(asio::ip::tcp::socket socket) {
    if (visitors_.size() >= here_.size() + kMostStrangers) dismiss(visitors_.begin()->first);
    const Number number = next_++;
    Visitor& visitor =
        visitors_
            .try_emplace(
                number,
                Visitor{std::make_shared<Link>(std::move(socket)), asio::steady_timer(io_), {}, {}, false})
            .first->second;
    visitor.link->start({.on_frame = [this, number](Frame&& frame) { on_frame(number, frame); },
                         .on_end = [this, number](const std::error_code&) { dismiss(number); }},
                        kMostHelloBytes);
    visitor.patience.expires_after(std::chrono::duration_cast<std::chrono::nanoseconds>(hello_time_));
    visitor.patience.async_wait([this, number](const std::error_code& stopped) {
        if (!stopped) dismiss(number);
    });
}

void Reception::on_frame(Number number, const Frame& frame) {
    const auto found = visitors_.find(number);
    if (found == visitors_.end()) return;
    Visitor& visitor = found->second;
    const bool greeted = !visitor.nonces.visitor.empty();
    if (!greeted && frame.kind == FrameKind::hello) return challenge(number, visitor, frame);
    if (greeted && !visitor.hello && frame.kind == FrameKind::proof) return on_proof(number, visitor, frame);
    if (visitor.hello && frame.kind == FrameKind::confirm) return admit(number, visitor);
    dismiss(number);
}

void Reception::challenge(Number number, Visitor& visitor, const Frame& frame) {
    if (frame.text.size() != kNonceBytes) return dismiss(number);
    visitor.nonces = {frame.text, random_bytes(kNonceBytes)};
    visitor.link->send(FrameKind::challenge, visitor.nonces.rank_0);
}

void Reception::on_proof(Number number, Visitor& visitor, const Frame& frame) {
    std::string_view text = frame.text;
    if (!take_proof(token_, Side::visitor, visitor.nonces, text)) return dismiss(number);
    Hello hello = decode_hello(text);
    const std::string sentence = disagreement(own_, hello);
    visitor.hello = std::move(hello);
    if (!refusal_.empty()) return turn_away(visitor);
    if (!sentence.empty()) return events_.on_error(sentence);
    visitor.accepted = true;
    const std::string own = encode(own_);
    visitor.link->send(FrameKind::accepted, proof(token_, Side::rank_0, visitor.nonces, own) + own);
}

void Reception::admit(Number number, const Visitor& visitor) {
    if (!refusal_.empty()) return;
    std::optional<Hello>& here = here_[static_cast<std::size_t>(visitor.hello->rank)];
    if (here) {
        return events_.on_error(fmt::format(
            "two processes say that they are rank {}: {} and {}; start each rank once, and give other "
            "jobs another port",
            here->rank, process_text(here->member), process_text(visitor.hello->member)));
    }
    here = visitor.hello;
    const std::shared_ptr<Link> link = visitor.link;
    visitors_.erase(number);
    events_.on_member(*here, link);
}

void Reception::dismiss(Number number) {
    const auto found = visitors_.find(number);
    if (found == visitors_.end()) return;
    found->second.link->close();
    visitors_.erase(found);
}

void Reception::refuse(const std::string& sentence) {
    refusal_ = sentence;
    for (auto& [number, visitor] : visitors_) {
        if (visitor.hello) turn_away(visitor);
    }
}

void Reception::turn_away(Visitor& visitor) {
    // A visitor that has been accepted knows who speaks.
    const std::string shown =
        visitor.accepted ? std::string() : proof(token_, Side::rank_0, visitor.nonces, refusal_);
    visitor.link->send(FrameKind::refused, shown + refusal_);
    const auto rank = static_cast<std::size_t>(visitor.hello->rank);
    if (rank < refused_.size()) refused_[rank] = true;
}

bool Reception::all_refused() const {
    for (std::size_t rank = 1; rank < here_.size(); ++rank) {
        if (!here_[rank] && !refused_[rank]) return false;
    }
    return true;
}

bool Reception::all_written() const {
    return std::all_of(visitors_.begin(), visitors_.end(), [](const auto& visitor) {
        return !visitor.second.hello || visitor.second.link->idle();
    });
}

void Reception::close() {
    std::error_code ignored;
    acceptor_.close(ignored);
    pause_.cancel();
    while (!visitors_.empty()) dismiss(visitors_.begin()->first);
}

}  // namespace shardscope::trainer::world
