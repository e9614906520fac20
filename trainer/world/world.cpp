#include "trainer/world/world.h"

#include <algorithm>
#include <optional>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <fmt/core.h>

#include "profiler/base/clock.h"
#include "profiler/base/quiet_thread.h"
#include "trainer/world/board.h"
#include "trainer/world/ending.h"
#include "trainer/world/exchanges.h"
#include "trainer/world/joining.h"
#include "trainer/world/links.h"
#include "trainer/world/pulse.h"

namespace shardscope::trainer::world {

namespace {

void check_size(std::string_view text) {
    constexpr std::uint64_t kMost = kMostFrameBytes / 2;
    if (text.size() <= kMost) return;
    throw WorldError(fmt::format(
        "a process cannot send {} bytes in one message to the others; the limit is {}", text.size(), kMost));
}

}  // namespace

WorldFailure::WorldFailure(const Failure& failure)
    : WorldError(failure.rank < 0 ? failure.reason : fmt::format("rank {} {}", failure.rank, failure.reason)),
      failure_(failure) {}

// The parts of a World, which its thread alone uses but for the board, and the thread.
struct World::Impl {
    Impl(const Place& at, const WorldOptions& with);
    ~Impl();
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;

    bool first() const { return place.rank == 0; }
    template <class Function>
    void on_thread(Function function) {
        asio::post(io, std::move(function));
    }

    // --- the World's thread -------------------------------------------------------------------------------
    void run();
    void on_link(int rank);
    void on_frame(int from, const Frame& frame);
    // Makes a call to the World's user, whose failure is the job's.
    void guarded(const std::function<void()>& call);
    void close();

    const Place place;
    const WorldOptions options;
    Board board;
    asio::io_context io{1};
    asio::executor_work_guard<asio::io_context::executor_type> work{io.get_executor()};
    Links links;
    Joining joining{io, place, options, links, board, [this](int rank) { on_link(rank); }};
    Ending ending{io, place, links, board, joining, [this](const auto& call) { guarded(call); }};
    Exchanges exchanges{place,
                        links,
                        board,
                        {.on_failure = [this](const Failure& failure) { ending.decide(failure); },
                         .guarded = [this](const auto& call) { guarded(call); }}};
    std::optional<Pulse> pulse;

    Board::Call calls = 0;  // used by callers, which call one at a time
    std::thread thread;
};

World::Impl::Impl(const Place& at, const WorldOptions& with) : place(at), options(with) {
    joining.begin();
    if (place.ranks > 1) {
        pulse.emplace(io, links, options.timeout_s,
                      [this](int rank) { ending.on_silent(rank, options.timeout_s); });
    }
    thread = profiler::start_quietly([this] { run(); });
}

World::Impl::~Impl() {
    on_thread([this] { close(); });
    thread.join();
}

void World::Impl::run() {
    // Exceptions past guarded() are not the fault of the World's callbacks (no memory, no descriptor); the
    // link that they came from is not read any more.
    while (!io.stopped()) {
        guarded([this] { io.run(); });
    }
}

void World::Impl::on_link(int rank) {
    links.to(rank).hand_to(
        {.on_frame = [this, rank](Frame&& frame) { on_frame(rank, frame); },
         .on_end = [this, rank](const std::error_code& error) { ending.on_end(rank, error); }},
        kMostFrameBytes);
    if (first() && options.on_join) guarded([this, rank] { options.on_join(rank); });
}

void World::Impl::on_frame(int from, const Frame& frame) {
    switch (frame.kind) {
        case FrameKind::alive:
            return;
        case FrameKind::refused:
        case FrameKind::together:
            if (first()) throw MessageError();
            return joining.on_frame(frame);
        case FrameKind::failure:
        case FrameKind::goodbye:
        case FrameKind::farewell:
            return ending.on_frame(from, frame);
        default:
            return exchanges.on_frame(from, frame);
    }
}

void World::Impl::guarded(const std::function<void()>& call) {
    try {
        call();
    } catch (const std::exception& error) {
        if (board.is_joining()) return joining.refuse(fmt::format("rank {}: {}", place.rank, error.what()));
        ending.report({.rank = place.rank, .reason = fmt::format("failed: {}", error.what())});
    }
}

void World::Impl::close() {
    joining.stop_looking();
    exchanges.stop_delivering();
    if (pulse) pulse->stop();
    ending.close();
}

// --- callers -----------------------------------------------------------------------------------------------

World::World(const Place& place, const WorldOptions& options)
    : impl_(std::make_unique<Impl>(place, options)) {
    impl_->board.wait_for_all();
}

World::~World() = default;

const Place& World::place() const {
    return impl_->place;
}

const std::vector<Member>& World::members() const {
    return impl_->joining.members();
}

int World::hosts() const {
    std::set<std::string_view> names;
    for (const Member& member : members()) names.insert(member.host);
    return static_cast<int>(names.size());
}

std::vector<std::string> World::gather(std::string_view mine) {
    check_size(mine);
    const Board::Call call = ++impl_->calls;
    impl_->on_thread(
        [inside = impl_.get(), call, text = std::string(mine)] { inside->exchanges.gather(call, text); });
    return impl_->board.wait_for(call);
}

std::string World::broadcast(std::string_view from_rank_0) {
    const Board::Call call = ++impl_->calls;
    if (impl_->first()) {
        check_size(from_rank_0);
        impl_->board.throw_failure();
        impl_->board.put(call, {std::string(from_rank_0)});
        impl_->on_thread([inside = impl_.get(), call, text = std::string(from_rank_0)] {
            inside->exchanges.broadcast(call, text);
        });
    }
    Board::Texts texts = impl_->board.wait_for(call);
    if (texts.size() != 1) throw std::logic_error("World: rank 0 gathers where this process broadcasts");
    return std::move(texts.front());
}

ClockOffset World::measure_clock() {
    const Board::Call call = ++impl_->calls;
    impl_->on_thread([inside = impl_.get(), call] { inside->exchanges.measure_clock(call); });
    impl_->board.wait_for(call);
    if (impl_->first()) return {.offset_ns = 0, .uncertainty_ns = 0, .at = profiler::MonotonicTime::now()};
    return impl_->exchanges.clock();
}

void World::on(const std::string& topic, std::function<void(int from, std::string_view text)> handler) {
    impl_->on_thread([inside = impl_.get(), topic, handler = std::move(handler)]() mutable {
        inside->exchanges.listen(topic, std::move(handler));
    });
}

void World::tell(const std::string& topic, std::string_view text) {
    check_size(text);
    impl_->on_thread(
        [inside = impl_.get(), topic, text = std::string(text)] { inside->exchanges.tell(topic, text); });
}

void World::tell_all(const std::string& topic, std::string_view text) {
    check_size(text);
    if (!impl_->first()) throw std::logic_error("World: tell_all() is rank 0's");
    impl_->on_thread(
        [inside = impl_.get(), topic, text = std::string(text)] { inside->exchanges.tell_all(topic, text); });
}

void World::fail(const Failure& failure) {
    impl_->on_thread([inside = impl_.get(), failure] { inside->ending.report(failure); });
}

void World::on_failure(std::function<void(const Failure&)> handler) {
    impl_->on_thread([inside = impl_.get(), handler = std::move(handler)]() mutable {
        inside->ending.listen(std::move(handler));
    });
}

bool World::failed() const {
    return impl_->board.failure().has_value();
}

void World::leave() {
    impl_->on_thread([inside = impl_.get()] { inside->ending.say_goodbye(); });
    impl_->board.wait_for_end();
}

}  // namespace shardscope::trainer::world
