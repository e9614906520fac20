#include "traces/watch/status_client.h"

#include <cerrno>
#include <utility>

#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>

namespace shardscope::traces::watch {

namespace {

constexpr int kConnectMs = 5000;

}  // namespace

StatusClient::StatusClient(const status::Address& address, const std::string& token)
    : socket_(status::connect_to(address, kConnectMs)) {
    if (token.empty() || !address.path.empty()) return;
    const std::string line = token + "\n";  // a new connection has room for it
    [[maybe_unused]] const auto sent = ::send(socket_.get(), line.data(), line.size(), MSG_NOSIGNAL);
}

std::optional<std::string> StatusClient::take_line() {
    const std::size_t end = received_.find('\n', scanned_);
    if (end == std::string::npos) {
        scanned_ = received_.size();
        if (scanned_ > status::kLongestLine)
            throw status::StatusError(
                "what answers is not a status server of Shardscope: its line has no end");
        return std::nullopt;
    }
    std::string line = received_.substr(0, end + 1);
    received_.erase(0, end + 1);
    scanned_ = 0;
    if (const auto reason = status::refusal_of(line))
        throw status::StatusError("the run refuses: " + *reason);
    return line;
}

std::optional<std::string> StatusClient::next(int timeout_ms) {
    if (auto line = take_line()) return line;
    if (closed_) return std::nullopt;
    pollfd wanted = {socket_.get(), POLLIN, 0};
    if (::poll(&wanted, 1, timeout_ms) <= 0) return std::nullopt;
    char bytes[1 << 16];
    const auto got = ::recv(socket_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
    if (got <= 0) {
        closed_ = true;
        return std::nullopt;
    }
    received_.append(bytes, static_cast<std::size_t>(got));
    return take_line();
}

}  // namespace shardscope::traces::watch
