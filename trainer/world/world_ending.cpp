#include <algorithm>
#include <exception>
#include <utility>

#include <fmt/core.h>

#include "trainer/world/wording.h"
#include "trainer/world/world_impl.h"

namespace shardscope::trainer {

namespace {

// How long a process that ends waits until its messages are written, and for the others to close.
constexpr std::chrono::milliseconds kWriting(2000), kClosing(1000), kClosingAfterFailure(300), kLook(2);

std::string encode(const Failure& failure) {
    return FrameWriter().number(failure.rank).number(failure.lost ? 1 : 0).text(failure.reason).take();
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

void World::Impl::on_end(int rank, const std::error_code& error) {
    lost(rank, end_text(members[static_cast<std::size_t>(rank)], error));
}

void World::Impl::on_silent(int rank) {
    lost(rank, silent_text(members[static_cast<std::size_t>(rank)], options.timeout_s));
}

void World::Impl::lost(int rank, const std::string& reason) {
    if (closing || farewell || failure) return;
    if (state == State::joining)
        return refuse(fmt::format("rank {} {}, before all processes had come", rank, reason));
    const Failure what{.rank = rank, .reason = reason, .lost = true};
    if (!first()) report(what);  // a rank 0 that was only stopped learns of it when it goes on
    decide(what);
}

void World::Impl::report(const Failure& what) {
    if (failure) return;
    if (first()) return decide(what);
    reported = true;
    to_first().send(FrameKind::failure, encode(what));
}

void World::Impl::decide(const Failure& what) {
    if (failure || farewell) return;
    {
        const std::scoped_lock lock(mutex);
        failure = what;
    }
    if (first()) send_to_all(FrameKind::failure, encode(what));
    for (const auto& handler : std::exchange(failure_handlers, {})) {
        if (!closing) guarded([&] { handler(what); });
    }
    const std::scoped_lock lock(mutex);
    failure_told = true;
    changed.notify_all();
}

void World::Impl::say_goodbye() {
    if (first()) {
        count_goodbye(0);
    } else {
        to_first().send(FrameKind::goodbye);
    }
}

void World::Impl::count_goodbye(int rank) {
    goodbyes.insert(rank);
    if (goodbyes.size() < members.size() || failure || farewell) return;
    send_to_all(FrameKind::farewell, {});
    set_farewell();
}

void World::Impl::set_farewell() {
    {
        const std::scoped_lock lock(mutex);
        farewell = true;
        changed.notify_all();
    }
    // Rank 0 has sent its last message: once it sees the others' ends, it may close its own.
    if (!first()) to_first().finish_sending();
}

void World::Impl::guarded(const std::function<void()>& call) {
    try {
        call();
    } catch (const std::exception& error) {
        if (state == State::joining) return refuse(fmt::format("rank {}: {}", place.rank, error.what()));
        report({.rank = place.rank, .reason = fmt::format("failed: {}", error.what())});
    }
}

void World::Impl::run() {
    // Exceptions past guarded() are not the fault of the World's callbacks (no memory, no descriptor); the
    // link that they came from is not read any more.
    while (!io.stopped()) {
        guarded([this] { io.run(); });
    }
}

World::Impl::~Impl() {
    if (!thread.joinable()) return;
    on_thread([this] { begin_to_close(); });
    thread.join();
}

void World::Impl::begin_to_close() {
    closing = true;
    closing_since = std::chrono::steady_clock::now();
    if (search) search->close();
    if (pulse) pulse->stop();
    close_when_written();
}

bool World::Impl::all_written() const {
    const auto written = [](const std::shared_ptr<Link>& link) { return link->ended() || link->idle(); };
    return std::all_of(links.begin(), links.end(), [&](const auto& link) { return written(link.second); }) &&
           (!reception || reception->all_written()) && (!reported || failure || links.empty());
}

bool World::Impl::all_ended() const {
    return std::all_of(links.begin(), links.end(), [](const auto& link) { return link.second->ended(); });
}

void World::Impl::close_when_written() {
    const auto since = std::chrono::steady_clock::now() - closing_since;
    const bool all_told = !refuses_late || reception->all_refused() || since > hello_time();
    if (!finished_sending && ((all_written() && all_told) || since > kWriting)) {
        for (const auto& [rank, link] : links) link->finish_sending();
        finished_sending = true;
        closing_since += since;
        return close_when_written();
    }
    // Closing a connection with unread data discards what was just sent: rank 0, which sends last, lets the
    // others close first.
    const auto patience = farewell ? kClosing : failure ? kClosingAfterFailure : std::chrono::milliseconds(0);
    if (finished_sending && (!first() || all_ended() || since >= patience)) {
        if (reception) reception->close();
        for (const auto& [rank, link] : links) link->close();
        return io.stop();
    }
    deadline.expires_after(kLook);
    deadline.async_wait([this](const std::error_code& stopped) {
        if (!stopped) close_when_written();
    });
}

}  // namespace shardscope::trainer
