#include "trainer/world/world.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/core.h>

#include "trainer/world/world_impl.h"

namespace shardscope::trainer {

namespace {

void check_size(std::string_view text) {
    constexpr std::uint64_t kMost = kMostFrameBytes / 2;
    if (text.size() <= kMost) return;
    throw WorldError(fmt::format(
        "a process cannot send {} bytes in one message to the others; {} are the most", text.size(), kMost));
}

}  // namespace

WorldFailure::WorldFailure(const Failure& failure)
    : WorldError(failure.rank < 0 ? failure.reason : fmt::format("rank {} {}", failure.rank, failure.reason)),
      failure_(failure) {}

World::World(const Place& place, const WorldOptions& options)
    : impl_(std::make_unique<Impl>(place, options)) {
    impl_->wait_for_all();
}

World::~World() = default;

const Place& World::place() const {
    return impl_->place;
}

const std::vector<Member>& World::members() const {
    return impl_->members;
}

int World::hosts() const {
    const std::vector<int>& numbers = impl_->host_numbers;
    return *std::max_element(numbers.begin(), numbers.end()) + 1;
}

int World::host_of(int rank) const {
    return impl_->host_numbers.at(static_cast<std::size_t>(rank));
}

void World::Impl::wait_for_all() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return state != State::joining; });
    if (state == State::refused) throw WorldError(sentence);
}

World::Impl::Texts World::Impl::wait_for(Call call) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this, call] { return failure_told || farewell || results.contains(call); });
    const auto result = results.find(call);
    if (result != results.end()) return std::move(results.extract(result).mapped());
    if (failure) throw WorldFailure(*failure);
    throw std::logic_error("World: a collective call after leave()");
}

void World::Impl::throw_failure() {
    const std::scoped_lock lock(mutex);
    if (failure) throw WorldFailure(*failure);
}

void World::Impl::put_result(Call call, Texts texts) {
    const std::scoped_lock lock(mutex);
    results[call] = std::move(texts);
    changed.notify_all();
}

std::vector<std::string> World::gather(std::string_view mine) {
    check_size(mine);
    const Impl::Call call = ++impl_->calls;
    if (impl_->first()) {
        impl_->on_thread(
            [inside = impl_.get(), call, text = std::string(mine)] { inside->add_part(0, call, text); });
    } else {
        FrameWriter writer;
        writer.reserve(mine.size() + sizeof call);
        auto text = std::make_shared<const std::string>(writer.number(call).rest(mine).take());
        impl_->on_thread([inside = impl_.get(), text] { inside->to_first().send(FrameKind::gather, text); });
    }
    return impl_->wait_for(call);
}

std::string World::broadcast(std::string_view from_rank_0) {
    const Impl::Call call = ++impl_->calls;
    if (impl_->first()) {
        check_size(from_rank_0);
        impl_->throw_failure();
        impl_->put_result(call, {std::string(from_rank_0)});
        impl_->on_thread([inside = impl_.get(), text = FrameWriter().number(call).rest(from_rank_0).take()] {
            inside->send_to_all(FrameKind::broadcast, text);
        });
    }
    Impl::Texts texts = impl_->wait_for(call);
    if (texts.size() != 1) throw std::logic_error("World: rank 0 gathers where this process broadcasts");
    return std::move(texts.front());
}

ClockOffset World::measure_clock() {
    const Impl::Call call = ++impl_->calls;
    impl_->on_thread([inside = impl_.get(), call] {
        inside->clock_call = call;
        if (inside->first()) {
            inside->turns.ready();
        } else {
            inside->to_first().send(FrameKind::clock_ready);
        }
    });
    impl_->wait_for(call);
    if (impl_->first()) return {.offset_ns = 0, .uncertainty_ns = 0, .at_ns = monotonic_ns()};
    const std::scoped_lock lock(impl_->mutex);
    return impl_->clock;
}

void World::on(const std::string& topic, std::function<void(int from, std::string_view text)> handler) {
    impl_->on_thread([inside = impl_.get(), topic, handler = std::move(handler)]() mutable {
        inside->guarded([&] { inside->mailbox.set_handler(topic, std::move(handler)); });
    });
}

void World::tell(const std::string& topic, std::string_view text) {
    check_size(text);
    impl_->on_thread([inside = impl_.get(), told = FrameWriter().text(topic).rest(text).take()]() mutable {
        if (inside->first()) {
            inside->deliver(0, told);
        } else {
            inside->to_first().send(FrameKind::tell, std::move(told));
        }
    });
}

void World::tell_all(const std::string& topic, std::string_view text) {
    check_size(text);
    if (!impl_->first()) throw std::logic_error("World: tell_all() is rank 0's");
    impl_->on_thread([inside = impl_.get(), told = FrameWriter().text(topic).rest(text).take()]() mutable {
        inside->send_to_all(FrameKind::tell, std::move(told));
    });
}

void World::fail(const Failure& failure) {
    impl_->on_thread([inside = impl_.get(), failure] { inside->report(failure); });
}

void World::on_failure(std::function<void(const Failure&)> handler) {
    impl_->on_thread([inside = impl_.get(), handler = std::move(handler)]() mutable {
        if (inside->failure) {
            inside->guarded([&] { handler(*inside->failure); });
        } else {
            inside->failure_handlers.push_back(std::move(handler));
        }
    });
}

bool World::failed() const {
    const std::scoped_lock lock(impl_->mutex);
    return impl_->failure.has_value();
}

void World::leave() {
    impl_->on_thread([inside = impl_.get()] { inside->say_goodbye(); });
    std::unique_lock lock(impl_->mutex);
    impl_->changed.wait(lock, [this] { return impl_->failure_told || impl_->farewell; });
}

}  // namespace shardscope::trainer
