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

MonotonicTime time_of(const PerfRecord& record) {
    return std::visit([](const auto& r) { return r.time; }, record);
}

}  // namespace

void StackSampler::tick(const Place& place) {
    const MonotonicTime now = MonotonicTime::now();
    rings_.drain([this](PerfRecord&& record) { waiting_.push_back(std::move(record)); });
    std::stable_sort(waiting_.begin(), waiting_.end(),
                     [](const PerfRecord& a, const PerfRecord& b) { return time_of(a) < time_of(b); });
    const auto end = std::find_if(waiting_.begin(), waiting_.end(),
                                  [this](const PerfRecord& record) { return time_of(record) >= drained_; });
    for (auto record = waiting_.begin(); record != end; ++record) {
        std::visit(
            [&](auto& r) {
                using Record = std::remove_cvref_t<decltype(r)>;
                if constexpr (std::is_same_v<Record, PerfStack>) {
                    if (place.recording && r.time >= place.origin) add(r, place);
                } else if constexpr (std::is_same_v<Record, PerfMapping>) {
                    spaces_.add(r);
                } else if constexpr (std::is_same_v<Record, PerfFork>) {
                    spaces_.fork(r.pid, r.parent);
                    if (const auto name = names_.find({r.parent, r.parent}); name != names_.end())
                        names_[{r.pid, r.pid}] = name->second;
                } else {
                    if (r.executes) spaces_.clear(r.pid);
                    names_[{r.pid, r.tid}] = std::move(r.name);
                }
            },
            *record);
    }
    waiting_.erase(waiting_.begin(), end);
    drained_ = now;
    name_threads(place.last ? now : MonotonicTime(now.ns - kNameAfterNs), place);
}

void StackSampler::name_threads(MonotonicTime seen_before, const Place& place) {
    for (auto thread = unnamed_.begin(); thread != unnamed_.end();) {
        const auto [pid, tid] = thread->first;
        if (thread->second > seen_before) {
            ++thread;
            continue;
        }
        auto name = names_.find(thread->first);
        if (name == names_.end()) name = names_.find({pid, pid});
        place.sink.add(traces::schema::ThreadRow{traces::schema::global_tid(pid, tid),
                                                 name != names_.end() ? name->second : std::string(),
                                                 place.rank_of(pid)});
        thread = unnamed_.erase(thread);
    }
}

void StackSampler::add(const PerfStack& stack, const Place& place) {
    text_.clear();
    if (stack.in_kernel) text_ = "[kernel]";
    for (std::size_t i = 0; i < stack.addresses.size(); ++i) {
        if (!text_.empty()) text_ += '\n';
        // A return address is that of the next instruction, which may be another function's.
        const std::uint64_t address = stack.addresses[i];
        text_ += spaces_.frame(stack.pid, i == 0 ? address : address - 1);
    }
    if (known_.insert({stack.pid, stack.tid}).second)
        unnamed_.emplace(Thread(stack.pid, stack.tid), stack.time);
    place.sink.add(traces::schema::SampleRow{.time = stack.time - place.origin,
                                             .global_tid = traces::schema::global_tid(stack.pid, stack.tid),
                                             .event = place.sink.intern("cpu-clock"),
                                             .weight = stack.weight,
                                             .cpu = stack.cpu,
                                             .stack = place.sink.intern(text_)});
    ++samples_;
}

}  // namespace shardscope::profiler
