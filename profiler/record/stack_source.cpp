#include "profiler/record/stack_source.h"

#include <utility>

#include <fmt/core.h>

#include "profiler/record/injection.h"
#include "profiler/stacks/perf_rings.h"
#include "profiler/stacks/timer_ring.h"

namespace shardscope::profiler {
namespace {

std::string joined(const std::string& sentence, const std::string& advice) {
    return advice.empty() ? sentence : fmt::format("{}; {}", sentence, advice);
}

// `refusal`: of perf events; empty if they were not tried.
StackSource by_timers(const RecordOptions& options, const std::string& session_directory,
                      const PerfRefusal& refusal) {
    StackSource result;
    const auto refuse = [&](const std::string& why) {
        const std::string reasons = refusal.reason.empty() ? why : refusal.reason + ", and " + why;
        result.notice = joined("threads are not sampled: " + reasons, refusal.advice);
        return std::move(result);
    };
    result.library = find_preload_library();
    if (result.library.empty())
        return refuse("libshardscope_preload.so is missing next to the tool: install again");
    if (result.library.find_first_of(": ") != std::string::npos) {
        std::string why = fmt::format("{} cannot be in LD_PRELOAD, for its blank or colon", result.library);
        result.library.clear();
        return refuse(why);
    }
    auto ring = std::make_unique<TimerRing>(session_directory, options.sample_hertz);
    if (!ring->refusal().empty()) {
        result.library.clear();
        return refuse(ring->refusal());
    }
    result.source = std::move(ring);

    result.notice = "threads are sampled by timers inside the program";
    if (const int most = TimerRing::most_hertz(); most < options.sample_hertz)
        result.notice += fmt::format(", {} times per second at most (the kernel's tick)", most);
    if (!refusal.reason.empty()) result.notice += fmt::format(", because {}", refusal.reason);
    const std::string obstacle = why_not_preloaded(options.command[0]);
    if (!obstacle.empty())
        result.notice +=
            fmt::format("; {} {}, so only programs that it starts are sampled", options.command[0], obstacle);
    result.notice = joined(result.notice, refusal.advice);
    return result;
}

}  // namespace

StackSource make_stack_source(const RecordOptions& options, const std::string& session_directory) {
    if (options.sample_by == SampleBy::timer) return by_timers(options, session_directory, {});
    StackSource result;
    auto rings = std::make_unique<PerfRings>(options.sample_hertz);
    const PerfRefusal refusal = rings->refusal();
    if (refusal.reason.empty()) {
        result.source = std::move(rings);
    } else if (options.sample_by == SampleBy::perf) {
        result.notice = joined("threads are not sampled: " + refusal.reason, refusal.advice);
    } else {
        return by_timers(options, session_directory, refusal);
    }
    return result;
}

}  // namespace shardscope::profiler
