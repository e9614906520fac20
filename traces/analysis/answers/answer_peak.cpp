// What makes up the peak, and which of several runs peaks lower.
#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/core.h>

#include "traces/analysis/advice/advice_facts.h"
#include "traces/analysis/answers/answer_parts.h"
#include "traces/analysis/base/shown_ranks.h"
#include "traces/analysis/memory/memory.h"
#include "traces/analysis/memory/memory_explanation.h"
#include "traces/store/columns/trace.h"
#include "traces/store/grouped.h"

namespace shardscope::traces::analysis {
namespace {

constexpr std::size_t kCategoriesNamed = 3;
constexpr double kLeastCategory = 2;       // percent of the peak
constexpr double kMostUnnamed = 90;        // percent in category "other": the categories say nothing
constexpr double kAlikePercent = 0.05;     // peaks that differ by less are alike
constexpr std::size_t kSettingsNamed = 2;  // if the runs differ in more settings, none is named
constexpr std::size_t kLongestSetting = 40;

std::string on_what(schema::MemorySpace space) {
    return space == schema::MemorySpace::device ? "" : fmt::format(" of {} memory", name(space));
}

// "activations 62.0 %, unsharded parameters 20.1 %"; the largest first.
std::string largest_categories(const CategoryBytes& at_peak, std::int64_t peak) {
    std::array<std::size_t, schema::kMemoryCategories> order{};
    for (std::size_t c = 0; c < order.size(); ++c) order[c] = c;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return at_peak[a] > at_peak[b]; });
    std::string text;
    for (std::size_t i = 0; i < kCategoriesNamed; ++i) {
        const double share = 100 * static_cast<double>(at_peak[order[i]]) / static_cast<double>(peak);
        if (share < kLeastCategory) break;
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ",
                            words_of(static_cast<schema::MemoryCategory>(order[i])), percent_text(share));
    }
    return text;
}

// What holds most where no category is known: "most, 45.0 %, was allocated in train.py:30".
std::string largest_holder(const RankMemory& memory) {
    for (const auto holders : {&RankMemory::stacks, &RankMemory::modules, &RankMemory::annotations}) {
        const std::vector<MemoryHolder> held = holders_at_peak(memory.*holders);
        if (held.empty() || held.front().name.starts_with("(")) continue;
        const double share =
            100 * static_cast<double>(held.front().bytes) / static_cast<double>(memory.peak_bytes);
        return fmt::format("the trace does not record what it holds; most, {}, was allocated in {}",
                           percent_text(share), shown(held.front().name));
    }
    return "the trace does not record what it holds";
}

// " in the backward of step 2".
std::string moment_text(const PeakMoment& moment) {
    const std::string step = moment.step ? fmt::format("step {}", *moment.step) : "";
    const std::string_view phase = moment.phase == schema::Phase::none ? "" : name(moment.phase);
    if (!phase.empty() && !step.empty()) return fmt::format(" in the {} of {}", phase, step);
    if (!phase.empty()) return fmt::format(" in the {}", phase);
    return step.empty() ? "" : " in " + step;
}

// The settings in which the second run differs from the first: " (fsdp.wrap = module:Block instead of root)".
std::string settings_text(const RunColumn& run, const RunColumn& other) {
    std::string text;
    std::size_t differing = 0;
    for (std::size_t k = 0; k < run.config.size(); ++k) {
        const std::string &own = run.config[k].second, &others = other.config[k].second;
        if (own == others) continue;
        if (++differing > kSettingsNamed || own.size() > kLongestSetting || others.size() > kLongestSetting)
            return "";
        text += fmt::format("{}{} = {} instead of {}", text.empty() ? "" : ", ", run.config[k].first,
                            own.empty() ? "none" : own, others.empty() ? "none" : others);
    }
    return text.empty() ? text : " (" + text + ")";
}

}  // namespace

std::string words_of(schema::MemoryCategory category) {
    if (category == schema::MemoryCategory::other) return "other memory";
    std::string words(name(category));
    std::replace(words.begin(), words.end(), '_', ' ');
    return words;
}

Answer peak_answer(const store::Trace& trace, const Selection& selection) {
    const schema::MemorySpace space = space_in_use(trace);
    const bool on_device = space == schema::MemorySpace::device;
    std::vector<RankExplanation> explained;
    if (on_device) {
        explained = explain_memory(trace, selection).ranks;
    } else {
        for (RankMemory& memory : memory_report(trace, selection, space).ranks)
            explained.push_back({std::move(memory), {}, {}, {}});
    }
    const auto most = std::max_element(explained.begin(), explained.end(), [](const auto& a, const auto& b) {
        return a.memory.peak_bytes < b.memory.peak_bytes;
    });
    if (most == explained.end() || most->memory.peak_bytes <= 0) {
        return unknown_answer(Question::peak,
                              "The peak is unknown, because the trace records no allocations.");
    }
    const RankMemory& memory = most->memory;
    Answer answer{.question = Question::peak, .rank = memory.rank};
    const auto unnamed =
        static_cast<double>(memory.at_peak[static_cast<std::size_t>(schema::MemoryCategory::other)]);
    const bool named = 100 * unnamed < kMostUnnamed * static_cast<double>(memory.peak_bytes);
    const bool alike = std::all_of(explained.begin(), explained.end(), [&](const RankExplanation& rank) {
        return rank.memory.peak_bytes == memory.peak_bytes;
    });
    // Of a simulation, the ranks that are not shown did what one of these did.
    const bool all = shows_some_ranks(trace) && explained.size() == trace.ranks.size();
    const std::int64_t ranks = all ? ranks_of_run(trace) : static_cast<std::int64_t>(explained.size());
    const std::string who = ranks == 1 ? fmt::format("Rank {} peaks", memory.rank)
                            : alike    ? fmt::format("Each of {} ranks peaks", store::grouped(ranks))
                                       : fmt::format("Rank {} peaks highest,", memory.rank);
    answer.says = fmt::format(
        "{} at {}{}{}: {}.", who, bytes_text(memory.peak_bytes), on_what(space), moment_text(most->moment),
        named ? largest_categories(memory.at_peak, memory.peak_bytes) : largest_holder(memory));
    answer.figures = {{"peak", static_cast<double>(memory.peak_bytes), "bytes"}};
    for (std::size_t c = 0; c < memory.at_peak.size(); ++c) {
        if (memory.at_peak[c] > 0) {
            answer.figures.push_back({std::string(schema::kMemoryCategoryNames[c]),
                                      static_cast<double>(memory.at_peak[c]), "bytes"});
        }
    }
    std::stable_sort(answer.figures.begin() + 1, answer.figures.end(),
                     [](const AdviceFigure& a, const AdviceFigure& b) { return a.value > b.value; });
    answer.command = fmt::format("memory{} --rank {}", on_device ? " --explain" : "", memory.rank);
    return answer;
}

Answer compared_peak(const Comparison& comparison, const std::vector<std::string>& names) {
    const std::vector<RunColumn>& runs = comparison.runs;
    const auto unknown = [](std::string why) {
        Answer answer = unknown_answer(
            Question::peak, "Which configuration peaks lower is unknown, because " + std::move(why) + ".");
        answer.compares = true;
        answer.command = "compare";
        return answer;
    };
    for (std::size_t r = 0; r < runs.size(); ++r) {
        if (runs[r].peak_bytes <= 0) return unknown(names[r] + " records no allocations");
        if (runs[r].space != runs.front().space) {
            return unknown(fmt::format("{} allocated {} memory, and {} {} memory", names.front(),
                                       name(runs.front().space), names[r], name(runs[r].space)));
        }
    }
    std::vector<std::size_t> order;
    for (std::size_t r = 0; r < runs.size(); ++r) order.push_back(r);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return runs[a].peak_bytes < runs[b].peak_bytes; });
    const RunColumn &lowest = runs[order.front()], &highest = runs[order.back()];
    Answer answer{.question = Question::peak, .compares = true, .command = "compare"};
    for (const std::size_t r : order)
        answer.figures.push_back({names[r], static_cast<double>(runs[r].peak_bytes), "bytes"});
    const std::int64_t less = highest.peak_bytes - lowest.peak_bytes;
    const double percent = 100 * static_cast<double>(less) / static_cast<double>(highest.peak_bytes);
    if (percent < kAlikePercent) {
        answer.says = fmt::format("{} peak alike, at {}.",
                                  runs.size() == 2 ? "Both runs" : fmt::format("All {} runs", runs.size()),
                                  bytes_text(lowest.peak_bytes));
        return answer;
    }
    // The categories that make the difference.
    std::size_t most = 0;
    for (std::size_t c = 1; c < lowest.at_peak.size(); ++c) {
        if (highest.at_peak[c] - lowest.at_peak[c] > highest.at_peak[most] - lowest.at_peak[most]) most = c;
    }
    answer.says = fmt::format(
        "{} peaks {}, at {}{}: {} less than {}{}, mostly because it holds {} less in {} at the peak.",
        names[order.front()], runs.size() > 2 ? "lowest" : "lower", bytes_text(lowest.peak_bytes),
        on_what(lowest.space), percent_text(percent), names[order.back()], settings_text(lowest, highest),
        bytes_text(highest.at_peak[most] - lowest.at_peak[most]),
        words_of(static_cast<schema::MemoryCategory>(most)));
    return answer;
}

}  // namespace shardscope::traces::analysis
