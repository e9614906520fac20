#include "trainer/world/search.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>

namespace shardscope::trainer::world {

using asio::ip::tcp;

namespace {

std::vector<std::string> split(const std::string& names) {
    std::vector<std::string> parts;
    for (std::size_t begin = 0; begin <= names.size();) {
        const std::size_t comma = std::min(names.find(',', begin), names.size());
        if (comma > begin) parts.push_back(names.substr(begin, comma - begin));
        begin = comma + 1;
    }
    return parts;
}

std::string endpoint_text(const tcp::endpoint& endpoint) {
    const std::string address = endpoint.address().to_string();
    return endpoint.address().is_v6() ? fmt::format("[{}]:{}", address, endpoint.port())
                                      : fmt::format("{}:{}", address, endpoint.port());
}

}  // namespace

Search::Search(asio::io_context& io, const Place& place, const Hello& own, double answer_s, Events events)
    : io_(io),
      resolver_(io),
      timer_(io),
      place_(place),
      own_(own),
      answer_time_(answer_s),
      events_(std::move(events)),
      names_(split(place.master)) {
    resolve();
}

void Search::resolve() {
    if (resolved_ == names_.size()) {
        // Tries every name's first port before any second port.
        const std::vector<tcp::endpoint> hosts = std::exchange(endpoints_, {});
        for (int port = place_.port; port < std::min(place_.port + kPorts, 65536); ++port) {
            for (tcp::endpoint host : hosts) {
                host.port(static_cast<asio::ip::port_type>(port));
                if (std::find(endpoints_.begin(), endpoints_.end(), host) == endpoints_.end())
                    endpoints_.push_back(host);
            }
        }
        std::reverse(endpoints_.begin(), endpoints_.end());
        return try_next();
    }
    const std::string& name = names_[resolved_++];
    resolver_.async_resolve(
        name, "", [this, &name](const std::error_code& error, const tcp::resolver::results_type& found) {
            if (closed_) return;
            if (error) trouble_ = fmt::format("{}: {}", name, error.message());
            for (const auto& entry : found) endpoints_.push_back(entry.endpoint());
            resolve();
        });
}

void Search::try_next() {
    if (endpoints_.empty()) return wait_and_resolve();
    const tcp::endpoint endpoint = endpoints_.back();
    endpoints_.pop_back();
    connect(endpoint);
}

void Search::wait_and_resolve() {
    timer_.expires_after(pause_);
    pause_ = std::min(pause_ * 2, std::chrono::milliseconds(500));
    resolved_ = 0;
    timer_.async_wait([this](const std::error_code& stopped) {
        if (!stopped && !closed_) resolve();
    });
}

void Search::connect(const tcp::endpoint& endpoint) {
    const auto socket = std::make_shared<tcp::socket>(io_);
    socket_ = socket;
    timer_.expires_after(std::chrono::duration_cast<std::chrono::nanoseconds>(answer_time_));
    timer_.async_wait([this, socket, endpoint](const std::error_code& stopped) {
        if (stopped || socket_ != socket) return;
        give_up(endpoint_text(endpoint) + ": no answer");
    });
    socket->async_connect(endpoint, [this, socket, endpoint](const std::error_code& error) {
        if (closed_ || socket_ != socket) return;
        if (error) return give_up(fmt::format("{}: {}", endpoint_text(endpoint), error.message()));
        // A socket that connects to a free port of its own host may get that port, and connect to itself.
        std::error_code failed;
        if (socket->local_endpoint(failed) == endpoint || failed)
            return give_up(endpoint_text(endpoint) + ": no process listens");
        trouble_ = fmt::format("{}: no process of this job answers", endpoint_text(endpoint));
        if (stranger_.empty()) stranger_ = trouble_;
        greet(socket);
    });
}

void Search::greet(const std::shared_ptr<tcp::socket>& socket) {
    link_ = std::make_shared<Link>(std::move(*socket));
    link_->start({.on_frame = [this](Frame&& frame) { on_frame(frame); },
                  .on_end = [this](const std::error_code&) { give_up(trouble_); }},
                 kMostHelloBytes);
    nonces_ = {random_bytes(kNonceBytes), {}};
    link_->send(FrameKind::hello, nonces_.visitor);
}

void Search::on_frame(const Frame& frame) {
    const bool challenged = !nonces_.rank_0.empty();
    if (!challenged && frame.kind == FrameKind::challenge && frame.text.size() == kNonceBytes) {
        nonces_.rank_0 = frame.text;
        const std::string own = encode(own_);
        return link_->send(FrameKind::proof, proof(place_.token, Side::visitor, nonces_, own) + own);
    }
    if (!challenged) return give_up(trouble_);
    std::string_view text = frame.text;
    if (!take_proof(place_.token, Side::rank_0, nonces_, text)) return give_up(trouble_);
    if (frame.kind == FrameKind::refused) {
        close();
        return events_.on_error(std::string(text));
    }
    if (frame.kind != FrameKind::accepted) return give_up(trouble_);
    const Hello rank_0 = decode_hello(text);
    if (rank_0.rank != 0) return give_up(trouble_);
    const std::shared_ptr<Link> link = std::exchange(link_, nullptr);
    close();
    link->send(FrameKind::confirm);
    events_.on_found(rank_0, link);
}

void Search::give_up(const std::string& trouble) {
    if (closed_) return;
    trouble_ = trouble;
    disconnect();
    try_next();
}

void Search::close() {
    closed_ = true;
    resolver_.cancel();
    disconnect();
}

void Search::disconnect() {
    timer_.cancel();
    std::error_code ignored;
    if (socket_) socket_->close(ignored);
    socket_ = nullptr;
    if (link_) link_->close();
    link_ = nullptr;
}

}  // namespace shardscope::trainer::world
