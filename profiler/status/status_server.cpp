#include "profiler/status/status_server.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <exception>
#include <list>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profiler/base/quiet_thread.h"

namespace shardscope::profiler {

namespace {

using Clock = std::chrono::steady_clock;
using Line = std::shared_ptr<const std::string>;
using traces::status::Address;
using traces::store::FileDescriptor;

constexpr int kSendBuffer = 1 << 16;
constexpr std::chrono::milliseconds kShortestPause{100};  // between two lines, however many connect
constexpr std::chrono::seconds kNoDescriptors{1};         // without accepting, when there are none left

struct Connection {
    FileDescriptor socket;
    Clock::time_point since;  // when it was accepted or last took any bytes
    bool is_watcher = false;  // it has shown the token, or none is needed
    std::size_t received = 0;
    std::string first_line;  // of a visitor, so far
    Line line;               // being sent
    std::size_t sent = 0;
    bool over = false;
};

// Sends without waiting and without a signal. What does not fit is lost.
void send_once(const FileDescriptor& socket, std::string_view text) {
    [[maybe_unused]] const auto sent =
        ::send(socket.get(), text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

void prepare(const FileDescriptor& socket) {
    const int bytes = kSendBuffer, on = 1;
    const unsigned ms = std::chrono::milliseconds(StatusServer::kPatience).count();
    ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    // These fail on a Unix socket, which needs neither.
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
    ::setsockopt(socket.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

}  // namespace

class StatusServer::Impl {
  public:
    explicit Impl(StatusServerOptions options)
        : options_(std::move(options)),
          listener_(traces::status::listen_at(options_.address, !options_.token.empty())),
          wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
        if (!options_.address.path.empty()) {
            options_.token.clear();  // the file's mode says who may connect
            struct stat facts;
            if (::lstat(options_.address.path.c_str(), &facts) == 0) own_ = {facts.st_dev, facts.st_ino};
        }
        if (!wake_)
            throw traces::status::StatusError("the status server has no file descriptors; raise ulimit -n");
        thread_ = start_quietly([this] { run(); });
    }
    ~Impl() {
        stopping_ = true;
        const std::uint64_t one = 1;
        [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof one);
        thread_.join();
        remove_socket();
    }

    const Address& address() const { return options_.address; }
    std::size_t watchers() const { return watchers_.load(std::memory_order_relaxed); }

  private:
    void run();
    void turn(Clock::time_point now);
    void wait();
    void accept_all();
    void refuse(const FileDescriptor& socket, std::string_view reason) const;
    void read(Connection& connection);
    void take_first_line(Connection& connection, std::string_view text);
    void make_line(Clock::time_point now);
    void send(Connection& connection);
    void drop_late(Clock::time_point now);
    std::size_t count(bool watchers) const;
    void say_farewell();
    void remove_socket() const;

    StatusServerOptions options_;
    FileDescriptor listener_, wake_;
    std::pair<dev_t, ino_t> own_{};  // the socket's file
    std::list<Connection> connections_;
    std::vector<pollfd> polled_;
    Line line_;
    Clock::time_point next_line_ = Clock::now(), accept_after_ = Clock::now();
    std::atomic<bool> stopping_ = false;
    std::atomic<std::size_t> watchers_ = 0;
    std::thread thread_;
};

void StatusServer::Impl::run() {
    ::pthread_setname_np(::pthread_self(), "status");
    while (!stopping_) {
        try {
            wait();
            if (!stopping_) turn(Clock::now());
        } catch (const std::exception&) {  // no memory: those who watch lose their connection, nothing else
            connections_.clear();
            accept_after_ = Clock::now() + kNoDescriptors;
        }
    }
    try {
        say_farewell();
    } catch (const std::exception&) {  // without the last line, they see that the connection has ended
    }
}

void StatusServer::Impl::turn(Clock::time_point now) {
    if (now >= accept_after_) accept_all();
    for (Connection& connection : connections_) read(connection);
    make_line(now);
    for (Connection& connection : connections_) send(connection);
    drop_late(now);
    std::erase_if(connections_, [](const Connection& each) { return each.over; });
    watchers_.store(count(true), std::memory_order_relaxed);
}

// Until something happens, or the next line or the end of someone's patience is due.
void StatusServer::Impl::wait() {
    const auto now = Clock::now();
    polled_.clear();
    polled_.push_back({wake_.get(), POLLIN, 0});
    const bool accepts = now >= accept_after_;
    if (accepts) polled_.push_back({listener_.get(), POLLIN, 0});
    auto until = now + std::chrono::hours(1);
    if (!accepts) until = std::min(until, accept_after_);
    for (const Connection& connection : connections_) {
        const bool sends = connection.line != nullptr;
        polled_.push_back({connection.socket.get(), static_cast<short>(POLLIN | (sends ? POLLOUT : 0)), 0});
        if (!connection.is_watcher) until = std::min(until, connection.since + options_.patience_for_token);
        if (connection.is_watcher) until = std::min(until, next_line_);
    }
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(until - now).count();
    ::poll(polled_.data(), polled_.size(), static_cast<int>(std::max<std::int64_t>(ms, 0)));
}

void StatusServer::Impl::accept_all() {
    for (std::size_t tries = 0; tries < kMostWatchers + kMostVisitors; ++tries) {
        FileDescriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (!socket) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
                accept_after_ = Clock::now() + kNoDescriptors;
            return;
        }
        prepare(socket);
        Connection connection;
        connection.is_watcher = options_.token.empty();
        if (connection.is_watcher && count(true) >= kMostWatchers) {
            refuse(socket, fmt::format("{} watch this run already; close one", kMostWatchers));
            continue;
        }
        // Strangers cannot keep out those who know the token: the oldest gives way.
        if (!connection.is_watcher && count(false) >= kMostVisitors) {
            const auto oldest = std::find_if(connections_.begin(), connections_.end(),
                                             [](const Connection& each) { return !each.is_watcher; });
            connections_.erase(oldest);
        }
        connection.socket = std::move(socket);
        connection.since = Clock::now();
        connections_.push_back(std::move(connection));
        next_line_ = std::min(next_line_, Clock::now() + kShortestPause);
    }
}

void StatusServer::Impl::refuse(const FileDescriptor& socket, std::string_view reason) const {
    send_once(socket, traces::status::refusal_line(reason));
}

void StatusServer::Impl::read(Connection& connection) {
    char bytes[1024];
    while (!connection.over) {
        const auto got = ::recv(connection.socket.get(), bytes, sizeof bytes, MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (got <= 0) {
            connection.over = true;
            return;
        }
        connection.received += static_cast<std::size_t>(got);
        if (connection.received > kMostInput) {
            connection.over = true;
        } else if (!connection.is_watcher) {
            take_first_line(connection, {bytes, static_cast<std::size_t>(got)});
        }
    }
}

// A visitor's first line is the token.
void StatusServer::Impl::take_first_line(Connection& connection, std::string_view text) {
    connection.first_line += text;
    const std::size_t end = connection.first_line.find('\n');
    if (end == std::string::npos && connection.first_line.size() <= traces::status::kLongestToken + 2) return;
    std::string_view given = std::string_view(connection.first_line).substr(0, end);
    if (given.ends_with('\r')) given.remove_suffix(1);
    if (end == std::string::npos || !traces::status::equal_secrets(given, options_.token)) {
        refuse(connection.socket, "the token is wrong");
        connection.over = true;
    } else if (count(true) >= kMostWatchers) {
        refuse(connection.socket, fmt::format("{} watch this run already; close one", kMostWatchers));
        connection.over = true;
    } else {
        connection.is_watcher = true;
        connection.since = Clock::now();
        next_line_ = std::min(next_line_, Clock::now() + kShortestPause);
    }
    connection.first_line.clear();
}

// A new line for every watcher who has taken the one before.
void StatusServer::Impl::make_line(Clock::time_point now) {
    if (now < next_line_ || count(true) == 0) return;
    next_line_ = now + options_.period;
    line_ = std::make_shared<const std::string>(options_.line());
    for (Connection& connection : connections_) {
        if (!connection.is_watcher || connection.line) continue;
        connection.line = line_;
        connection.sent = 0;
        connection.since = now;
    }
}

void StatusServer::Impl::send(Connection& connection) {
    while (connection.line && !connection.over) {
        const std::string_view rest = std::string_view(*connection.line).substr(connection.sent);
        const auto sent =
            ::send(connection.socket.get(), rest.data(), rest.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (sent < 0) {
            connection.over = true;
            return;
        }
        connection.since = Clock::now();
        connection.sent += static_cast<std::size_t>(sent);
        if (connection.sent == connection.line->size()) connection.line = nullptr;
    }
}

void StatusServer::Impl::drop_late(Clock::time_point now) {
    for (Connection& connection : connections_) {
        const bool late = connection.is_watcher ? connection.line && now - connection.since > kPatience
                                                : now - connection.since > options_.patience_for_token;
        if (late) connection.over = true;
    }
}

std::size_t StatusServer::Impl::count(bool watchers) const {
    return static_cast<std::size_t>(
        std::count_if(connections_.begin(), connections_.end(),
                      [&](const Connection& each) { return each.is_watcher == watchers && !each.over; }));
}

// A watcher who is behind sees the connection end in the middle of a line.
void StatusServer::Impl::say_farewell() {
    if (count(true) == 0) return;
    const std::string last = options_.line();
    for (Connection& connection : connections_) {
        send(connection);
        if (connection.is_watcher && !connection.line && !connection.over) send_once(connection.socket, last);
    }
}

// Unless another run has its own there by now.
void StatusServer::Impl::remove_socket() const {
    const std::string& path = options_.address.path;
    struct stat facts;
    if (!path.empty() && ::lstat(path.c_str(), &facts) == 0 && own_ == std::pair(facts.st_dev, facts.st_ino))
        ::unlink(path.c_str());
}

StatusServer::StatusServer(StatusServerOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
StatusServer::~StatusServer() = default;

const Address& StatusServer::address() const {
    return impl_->address();
}

std::size_t StatusServer::watchers() const {
    return impl_->watchers();
}

}  // namespace shardscope::profiler
