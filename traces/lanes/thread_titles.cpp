// See thread_titles.h.
#include "traces/lanes/thread_titles.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/core.h>

namespace shardscope::traces::lanes {
namespace {

constexpr std::int64_t kNumber = 0xFFFFFF;  // the thread's bits of a serialized id; the process's are above

std::int64_t tid_of(const store::HostThread& thread) {
    return thread.global_tid & kNumber;
}
std::int64_t pid_of(const store::HostThread& thread) {
    return thread.global_tid >> 24 & kNumber;
}

// "python3" from "thread 4242 (python3)"; nullopt for any other form.
std::optional<std::string_view> in_brackets(std::string_view name) {
    constexpr std::string_view kBefore = "thread ";
    const std::size_t bracket = name.find(" (");
    if (!name.starts_with(kBefore) || !name.ends_with(')') || bracket == std::string_view::npos)
        return std::nullopt;
    const std::string_view number = name.substr(kBefore.size(), bracket - kBefore.size());
    if (number.empty() || number.find_first_not_of("-0123456789") != std::string_view::npos)
        return std::nullopt;
    return name.substr(bracket + 2, name.size() - bracket - 3);
}

// Threads with a range that belongs to a forward, or that autograd's engine named (torch/csrc/autograd/
// function.h: "autograd::engine::evaluate_function: " and the function's name).
std::vector<bool> backward_threads(const store::Trace& trace) {
    std::vector<bool> found(trace.threads.size());
    std::vector<bool> of_engine(trace.strings.size());
    bool any = false;
    for (std::size_t i = 0; i < of_engine.size(); ++i) {
        of_engine[i] = trace.strings[static_cast<schema::StringId>(i)].starts_with(
            "autograd::engine::evaluate_function");
        any = any || of_engine[i];
    }
    const store::HostRanges& r = trace.ranges;
    if (!any && r.forward.empty()) return found;
    for (std::size_t i = 0; i < r.size(); ++i) {
        const bool backward =
            of_engine[static_cast<std::size_t>(r.name[i])] || (!r.forward.empty() && r.forward[i] >= 0);
        if (backward && r.thread[i] < found.size()) found[r.thread[i]] = true;
    }
    return found;
}

std::string title_of(const store::HostThread& thread, bool runs_backward) {
    const auto kineto = in_brackets(thread.name);
    if (!thread.name.empty() && !kineto) return thread.name;
    const std::string_view name = kineto.value_or("");
    // PyTorch's names for its own threads (c10::setThreadName).
    const bool is_main = name == "pt_main_thread" || tid_of(thread) == pid_of(thread);
    if (name.starts_with("pt_") && name != "pt_main_thread") return std::string(name);
    if (runs_backward && !is_main) return "autograd";
    if (is_main && kineto) return "main thread";
    return name.empty() ? fmt::format("thread {}", tid_of(thread)) : std::string(name);
}

}  // namespace

std::vector<std::string> thread_titles(const store::Trace& trace) {
    const std::vector<bool> backward = backward_threads(trace);
    std::vector<std::string> titles;
    std::map<std::pair<store::RankIndex, std::string>, int> called;  // number of uses in a rank
    for (std::size_t t = 0; t < trace.threads.size(); ++t) {
        titles.push_back(title_of(trace.threads[t], backward[t]));
        ++called[{trace.threads[t].rank, titles.back()}];
    }
    const auto tell_apart = [&](auto number) {
        std::map<std::pair<store::RankIndex, std::string>, int> now;
        for (std::size_t t = 0; t < titles.size(); ++t) {
            const store::HostThread& thread = trace.threads[t];
            if (called[{thread.rank, titles[t]}] > 1) titles[t] = number(thread, titles[t]);
            ++now[{thread.rank, titles[t]}];
        }
        called = std::move(now);
    };
    tell_apart([](const store::HostThread& thread, const std::string& title) {
        const std::string number = fmt::format("{}", tid_of(thread));
        return title.ends_with(" " + number) ? title : title + " " + number;
    });
    tell_apart([](const store::HostThread& thread, const std::string& title) {
        return fmt::format("{} of {}", title, pid_of(thread));
    });
    return titles;
}

}  // namespace shardscope::traces::lanes
