#include "profiler/stacks/stack_sampler.h"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>

#include "traces/schema/enums.h"

namespace shardscope::profiler {
namespace {

// Threads get their names shortly after they begin.
constexpr std::int64_t kNameAfterNs = 1'000'000'000;
constexpr std::size_t kMostThreads = 1 << 20;  // with a name in the trace

MonotonicTime time_of(const StackRecord& record) {
    return std::visit([](const auto& r) { return r.time; }, record);
}

}  // namespace

void StackSampler::tick(const Place& place) {
    if (!source_->can_wait(MonotonicTime::now() - drained_)) drain(place);
}

void StackSampler::drain(const Place& place) {
    const MonotonicTime now = MonotonicTime::now();
    source_->drain([this](StackRecord&& record) { waiting_.push_back(std::move(record)); });
    std::stable_sort(waiting_.begin(), waiting_.end(),
                     [](const StackRecord& a, const StackRecord& b) { return time_of(a) < time_of(b); });
    const auto end = std::find_if(waiting_.begin(), waiting_.end(),
                                  [this](const StackRecord& record) { return time_of(record) >= drained_; });
    for (auto record = waiting_.begin(); record != end; ++record)
        std::visit([&](auto& r) { take(r, place); }, *record);
    waiting_.erase(waiting_.begin(), end);
    drained_ = now;
    name_threads(place.last ? now : MonotonicTime(now.ns - kNameAfterNs), place);
}

void StackSampler::take(const ProcessFork& fork, const Place&) {
    spaces_.fork(fork.pid, fork.parent);
    if (const auto name = names_.find({fork.parent, fork.parent}); name != names_.end())
        names_[{fork.pid, fork.pid}] = name->second;
}

void StackSampler::take(ThreadName& name, const Place&) {
    names_[{name.pid, name.tid}] = std::move(name.name);
}

void StackSampler::take(const ThreadEnd& end, const Place& place) {
    const Thread thread(end.pid, end.tid);
    if (const auto unnamed = unnamed_.find(thread); unnamed != unnamed_.end()) {
        name_thread(thread, unnamed->second, place);
        unnamed_.erase(unnamed);
    }
    names_.erase(thread);
}

void StackSampler::stop() {
    at_stop_ = {source_->lost(), source_->incomplete()};
    source_->stop();
}

void StackSampler::name_threads(MonotonicTime seen_before, const Place& place) {
    for (auto thread = unnamed_.begin(); thread != unnamed_.end();) {
        if (thread->second.seen > seen_before) {
            ++thread;
            continue;
        }
        name_thread(thread->first, thread->second, place);
        thread = unnamed_.erase(thread);
    }
}

void StackSampler::name_thread(const Thread& thread, const Unnamed& facts, const Place& place) {
    const auto [pid, tid] = thread;
    std::string name = facts.name;
    if (name.empty()) {
        auto known = names_.find(thread);
        if (known == names_.end()) known = names_.find({pid, pid});
        if (known != names_.end()) name = known->second;
    }
    place.sink.add(traces::schema::ThreadRow{traces::schema::global_tid(pid, tid), name, place.rank_of(pid)});
}

void StackSampler::look_for_code(const SampledStack& stack) {
    const auto unknown =
        std::find_if(stack.addresses.begin(), stack.addresses.end(),
                     [&](std::uint64_t address) { return !spaces_.has_code_at(stack.pid, address); });
    if (unknown == stack.addresses.end()) return;
    for (const CodeMapping& mapping : source_->mappings(stack.pid, unknown == stack.addresses.begin()))
        spaces_.add(mapping);
}

void StackSampler::look_at_thread(SampledStack& stack) {
    const Thread thread(stack.pid, stack.tid);
    auto unnamed = unnamed_.find(thread);
    if (known_.size() < kMostThreads &&
        known_.insert(traces::schema::global_tid(stack.pid, stack.tid)).second)
        unnamed = unnamed_.emplace(thread, Unnamed{stack.time, {}}).first;
    if (unnamed != unnamed_.end() && !stack.thread.empty()) unnamed->second.name = std::move(stack.thread);
}

void StackSampler::take(SampledStack& stack, const Place& place) {
    if (!place.recording || stack.time < place.origin) return;
    look_for_code(stack);
    text_.clear();
    if (stack.in_kernel) text_ = "[kernel]";
    for (std::size_t i = 0; i < stack.addresses.size(); ++i) {
        if (!text_.empty()) text_ += '\n';
        // A return address is that of the next instruction, which may be another function's.
        const std::uint64_t address = stack.addresses[i];
        text_ += spaces_.frame(stack.pid, i == 0 ? address : address - 1);
    }
    look_at_thread(stack);
    place.sink.add(traces::schema::SampleRow{.time = stack.time - place.origin,
                                             .global_tid = traces::schema::global_tid(stack.pid, stack.tid),
                                             .event = place.sink.intern("cpu-clock"),
                                             .weight = stack.weight,
                                             .cpu = stack.cpu,
                                             .stack = place.sink.intern(text_)});
    ++samples_;
}

}  // namespace shardscope::profiler
