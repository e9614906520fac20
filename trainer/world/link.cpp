#include "trainer/world/link.h"

#include <array>
#include <utility>

#include <asio/buffer.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>
#include <fcntl.h>

namespace shardscope::trainer::world {

namespace {

constexpr std::size_t kAtOnce = std::size_t{1} << 22U;  // bytes given to the system in one call

}  // namespace

Link::Link(asio::ip::tcp::socket socket) : socket_(std::move(socket)) {
    std::error_code ignored;
    socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
    ::fcntl(socket_.native_handle(), F_SETFD, FD_CLOEXEC);
}

void Link::start(Events events, std::uint64_t most_bytes) {
    hand_to(std::move(events), most_bytes);
    read_header();
}

void Link::hand_to(Events events, std::uint64_t most_bytes) {
    events_ = std::make_shared<const Events>(std::move(events));
    most_bytes_ = most_bytes;
}

std::size_t Link::listen(const std::error_code& error, std::size_t bytes) {
    if (bytes > 0) heard_ = std::chrono::steady_clock::now();
    return error ? 0 : kAtOnce;
}

void Link::read_header() {
    asio::async_read(
        socket_, asio::buffer(header_),
        [self = shared_from_this()](const std::error_code& error, std::size_t bytes) {
            return self->listen(error, bytes);
        },
        [self = shared_from_this()](const std::error_code& error, std::size_t bytes) {
            if (error) return self->end(error);
            self->listen(error, bytes);  // not called for the last part
            const std::optional<FrameHeader> header = decode(self->header_);
            if (!header || header->bytes > self->most_bytes_) {
                return self->end(std::make_error_code(std::errc::protocol_error));
            }
            self->incoming_ = {header->kind, std::string(header->bytes, '\0')};
            self->read_text();
        });
}

void Link::read_text() {
    if (state_ == State::ended) return;
    if (incoming_.text.empty()) return deliver();
    asio::async_read(
        socket_, asio::buffer(incoming_.text),
        [self = shared_from_this()](const std::error_code& error, std::size_t bytes) {
            return self->listen(error, bytes);
        },
        [self = shared_from_this()](const std::error_code& error, std::size_t bytes) {
            if (error) return self->end(error);
            self->listen(error, bytes);
            self->deliver();
        });
}

void Link::deliver() {
    if (state_ == State::ended) return;
    const std::shared_ptr<const Events> events = events_;  // on_frame may put others in their place
    try {
        events->on_frame(std::exchange(incoming_, {}));
    } catch (const MessageError&) {
        return end(std::make_error_code(std::errc::protocol_error));
    }
    if (state_ != State::ended) read_header();
}

void Link::send(FrameKind kind, std::shared_ptr<const std::string> text) {
    if (state_ != State::open) return;
    queue_.push_back({encode(FrameHeader{kind, text->size()}), std::move(text)});
    if (queue_.size() == 1) write();
}

void Link::send(FrameKind kind, std::string text) {
    send(kind, std::make_shared<const std::string>(std::move(text)));
}

void Link::write() {
    const Outgoing& first = queue_.front();
    const std::array<asio::const_buffer, 2> buffers = {asio::buffer(first.header), asio::buffer(*first.text)};
    const auto much = [](const std::error_code& error, std::size_t) { return error ? 0 : kAtOnce; };
    asio::async_write(socket_, buffers, much,
                      [self = shared_from_this()](const std::error_code& error, std::size_t) {
                          if (self->state_ != State::open) return;
                          // A connection that cannot send any more may still hold data from before it broke:
                          // the end is reported by the read, after that.
                          if (error) return self->finish_sending();
                          self->queue_.pop_front();
                          if (!self->queue_.empty()) self->write();
                      });
}

void Link::end(const std::error_code& error) {
    if (state_ == State::ended) return;
    const std::shared_ptr<const Events> events = events_;
    close();
    events->on_end(error);
}

void Link::finish_sending() {
    if (state_ != State::open) return;
    state_ = State::finishing;
    std::error_code ignored;
    socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
}

void Link::close() {
    state_ = State::ended;
    std::error_code ignored;
    socket_.close(ignored);
}

}  // namespace shardscope::trainer::world
