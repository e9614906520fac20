// Where a step's time goes, which of several runs is faster, and which communication is exposed.
#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include <fmt/core.h>

#include "traces/analysis/advice/advice_facts.h"
#include "traces/analysis/answers/answer_parts.h"
#include "traces/store/columns/trace.h"
#include "traces/store/grouped.h"

namespace shardscope::traces::analysis {
namespace {

constexpr std::size_t kTimesNamed = 4;
constexpr double kLeastTime = 1;        // percent of a step
constexpr double kMeanDiffers = 0.05;   // share of the median: with more difference, the mean is given, too
constexpr double kHiddenPercent = 0.5;  // of a step: with less exposed communication, all of it is hidden

constexpr std::string_view kNoUnit = "(no unit)";

// The categories by their time, largest first; those that are unknown are omitted.
std::vector<std::size_t> by_time(const RunColumn& run) {
    std::vector<std::size_t> order;
    for (std::size_t c = 0; c < run.categories_us.size(); ++c) {
        if (!std::isnan(run.categories_us[c])) order.push_back(c);
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return run.categories_us[a] > run.categories_us[b];
    });
    return order;
}

double share_of(double us, const RunColumn& run) {
    return run.average_step_us > 0 ? 100 * us / run.average_step_us : 0;
}

// How the runs' lengths are compared: medians of steps, or the whole trace.
double length_of(const RunColumn& run) {
    return run.stepped ? run.median_step_us : run.average_step_us;
}

std::string_view per(const RunColumn& run) {
    return run.stepped ? "us/step" : "us";
}

// " per step (25.1 %)".
std::string share_text(double us, const RunColumn& run) {
    return fmt::format("{} ({})", run.stepped ? " per step" : "", percent_text(share_of(us, run)));
}

struct WorstUnit {
    const UnitPhase* exposed = nullptr;  // of which the gather or the reduction has the most exposed time
    const UnitPhase* waits = nullptr;    // whose compute waits longest
};

std::int64_t most_exposed(const UnitPhase& row) {
    return std::max(row.sum.gather_exposed_ns, row.sum.reduce_exposed_ns);
}

WorstUnit worst_of(const UnitsReport& units) {
    WorstUnit worst;
    for (const UnitPhase& row : units.all_ranks) {
        if (row.name == kNoUnit) continue;
        if (most_exposed(row) > (worst.exposed != nullptr ? most_exposed(*worst.exposed) : 0))
            worst.exposed = &row;
        if (row.sum.wait_ns > (worst.waits != nullptr ? worst.waits->sum.wait_ns : 0)) worst.waits = &row;
    }
    return worst;
}

std::string in_phase(const UnitPhase& row) {
    return row.phase == schema::Phase::none ? "" : fmt::format(" in the {}", name(row.phase));
}

// "Of 7 units, most exposed is the gather of blocks.3 in the backward (4.1 ms), for which that module waits
// 3.2 ms."
std::string unit_sentence(const AdviceFacts& f, const WorstUnit& worst) {
    const UnitCosts& costs = worst.exposed->sum;
    const bool gather = costs.gather_exposed_ns >= costs.reduce_exposed_ns;
    std::set<std::string_view> names;
    for (const UnitPhase& row : f.units.all_ranks) {
        if (row.name != kNoUnit) names.insert(row.name);
    }
    std::string text =
        fmt::format(" Of {}, most exposed is the {} of {}{} ({})",
                    store::counted(static_cast<std::int64_t>(names.size()), "unit", "units"),
                    gather ? "gather" : "reduction", shown(worst.exposed->name), in_phase(*worst.exposed),
                    us_text(f.per_step_us(most_exposed(*worst.exposed))));
    if (worst.waits == nullptr) return text + "; no unit's compute waits for a gather.";
    const std::string waited = us_text(f.per_step_us(worst.waits->sum.wait_ns));
    if (gather && worst.waits == worst.exposed)
        return text + fmt::format(", for which that module waits {}.", waited);
    return text + fmt::format("; longest waits {}{}, {} for its gather.", shown(worst.waits->name),
                              in_phase(*worst.waits), waited);
}

// The operation with the most exposed time.
const OperationStats* worst_operation(const RunColumn& run) {
    const OperationStats* worst = nullptr;
    for (const OperationStats& stats : run.collectives) {
        if (!stats.on_host && stats.exposed_us > (worst != nullptr ? worst->exposed_us : 0)) worst = &stats;
    }
    return worst;
}

// The runs' difference by category, largest first: which one makes the faster run faster.
std::size_t largest_saving(const RunColumn& fast, const RunColumn& slow) {
    std::size_t most = fast.categories_us.size();
    double saved = 0;
    for (std::size_t c = 0; c < fast.categories_us.size(); ++c) {
        const double less = slow.categories_us[c] - fast.categories_us[c];
        if (less > saved) {  // false for unknown ones
            most = c;
            saved = less;
        }
    }
    return most;
}

}  // namespace

std::string_view words_of(TimeCategory category) {
    switch (category) {
        case TimeCategory::kernel:
            return "compute";
        case TimeCategory::memcpy:
            return "copies";
        case TimeCategory::memset:
            return "fills of memory";
        case TimeCategory::communication:
            return "exposed communication";
        case TimeCategory::runtime:
            return "runtime calls";
        case TimeCategory::data_loader:
            return "loading of data";
        case TimeCategory::cpu_exec:
            return "other work of the host";
        case TimeCategory::other:
            return "nothing recorded";
    }
    return "";
}

Answer time_answer(const AdviceFacts& facts, const RunColumn& run) {
    if (run.average_step_us <= 0) {
        return unknown_answer(Question::time,
                              facts.trace.steps.empty()
                                  ? "Where the time goes is unknown, because the trace records no work."
                                  : "Where a step's time goes is unknown, because no step was kept.");
    }
    Answer answer{.question = Question::time, .command = "summary"};
    std::string parts;
    std::size_t named = 0;
    answer.figures = {{run.stepped ? "median_step" : "whole_trace", length_of(run), per(run)}};
    for (const std::size_t c : by_time(run)) {
        const double us = run.categories_us[c], share = share_of(us, run);
        if (us > 0) answer.figures.push_back({std::string(kTimeCategoryNames[c]), us, per(run)});
        if (named >= kTimesNamed || share < kLeastTime) continue;
        ++named;
        parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", words_of(static_cast<TimeCategory>(c)),
                             percent_text(share));
    }
    const std::int64_t steps = run.steps - (run.first_left_out ? 1 : 0);
    std::string of_steps = steps > 1 ? fmt::format("median of {} steps", steps) : "one step";
    if (std::abs(run.average_step_us - run.median_step_us) > kMeanDiffers * run.median_step_us)
        of_steps += fmt::format("; mean {}", us_text(run.average_step_us));
    answer.says = run.stepped
                      ? fmt::format("A step takes {} ({}): {}.", us_text(length_of(run)), of_steps, parts)
                      : fmt::format("The whole trace, which has no steps, takes {}: {}.",
                                    us_text(length_of(run)), parts);
    if (facts.trace.device.size() == 0)
        answer.says += " What devices did is unknown: nothing is recorded on one.";
    return answer;
}

Answer exposed_answer(const AdviceFacts& f, const RunColumn& run) {
    if (!f.on_host.library.empty()) {
        Answer answer = unknown_answer(
            Question::exposed,
            fmt::format("How much of {0}'s communication compute hides is unknown, because {0} works on host "
                        "threads; a rank spends {1}{2} in it.",
                        f.on_host.library, us_text(f.on_host.us), f.a_step()));
        answer.command = "distributed";
        return answer;
    }
    if (run.average_step_us <= 0 || std::isnan(run.communication_us)) {
        return unknown_answer(Question::exposed,
                              "Which communication is exposed is unknown, because the trace has no work of a "
                              "device.");
    }
    Answer answer{.question = Question::exposed, .command = "overlap"};
    if (run.communication_us <= 0) {
        answer.says = "No communication is exposed: none is recorded on a device.";
        return answer;
    }
    const double us = run.exposed_communication_us;
    answer.figures = {{"exposed", us, per(run)},
                      {"share_of_step", share_of(us, run), "%"},
                      {"communication", run.communication_us, per(run)},
                      {"exposed_transfers", f.exposed.all_us, per(run)}};
    if (share_of(us, run) < kHiddenPercent) {
        answer.says = fmt::format("Compute hides the communication: of {}{} only {} are exposed.",
                                  us_text(run.communication_us), run.stepped ? " per step" : "", us_text(us));
        return answer;
    }
    const OperationStats* operation = worst_operation(run);
    answer.says =
        fmt::format("No compute hides {} of communication{}{}", us_text(us), share_text(us, run),
                    operation != nullptr ? fmt::format(", most in {}", name(operation->operation)) : "");
    if (f.exposed.all_us < us / 2) {
        answer.says += fmt::format("; only {} of it are transfers, the rest is waiting for other ranks",
                                   us_text(f.exposed.all_us));
    }
    answer.says += ".";
    const WorstUnit worst = worst_of(f.units);
    if (worst.exposed != nullptr) {
        answer.command = "units";
        answer.unit = worst.exposed->name;
        answer.phase = worst.exposed->phase;
        answer.says += unit_sentence(f, worst);
        if (worst.waits != nullptr) {
            answer.figures.push_back({"wait_of_unit", f.per_step_us(worst.waits->sum.wait_ns), per(run)});
        }
        return answer;
    }
    answer.command = "collectives";
    answer.says += " Which module waits is unknown, because the trace has no FSDP units.";
    return answer;
}

Answer compared_time(const Comparison& comparison, const std::vector<std::string>& names) {
    const std::vector<RunColumn>& runs = comparison.runs;
    Answer answer{.question = Question::time, .compares = true, .command = "compare"};
    std::size_t fast = 0, slow = 0;
    for (std::size_t r = 0; r < runs.size(); ++r) {
        if (!runs[r].stepped || runs[r].median_step_us <= 0) {
            answer.known = false;
            answer.says =
                fmt::format("Which configuration is faster is unknown, because {} has no steps.", names[r]);
            answer.figures.clear();
            return answer;
        }
        constexpr auto kKernel = static_cast<std::size_t>(TimeCategory::kernel);
        if (std::isnan(runs[r].categories_us[kKernel]) != std::isnan(runs.front().categories_us[kKernel])) {
            answer.known = false;
            answer.says =
                "Which configuration is faster is unknown, because only some of the runs record a "
                "device.";
            answer.figures.clear();
            return answer;
        }
        if (runs[r].median_step_us < runs[fast].median_step_us) fast = r;
        if (runs[r].median_step_us > runs[slow].median_step_us) slow = r;
        answer.figures.push_back({names[r], runs[r].median_step_us, "us/step"});
    }
    std::stable_sort(answer.figures.begin(), answer.figures.end(),
                     [](const AdviceFigure& a, const AdviceFigure& b) { return a.value < b.value; });
    if (fast == slow || inside_spread(runs[fast], runs[slow])) {
        answer.says = fmt::format("No run is faster: a step takes {} to {}, within the spread of the steps.",
                                  us_text(runs[fast].median_step_us), us_text(runs[slow].median_step_us));
        return answer;
    }
    const double percent =
        100 * (runs[slow].median_step_us - runs[fast].median_step_us) / runs[slow].median_step_us;
    answer.says = fmt::format("{} is {}: a step takes {} instead of {} ({}, -{})", names[fast],
                              runs.size() > 2 ? "fastest" : "faster", us_text(runs[fast].median_step_us),
                              us_text(runs[slow].median_step_us), names[slow], percent_text(percent));
    if (const std::size_t most = largest_saving(runs[fast], runs[slow]); most < kTimeCategories) {
        answer.says += fmt::format(", mostly because of {} less {}",
                                   us_text(runs[slow].categories_us[most] - runs[fast].categories_us[most]),
                                   words_of(static_cast<TimeCategory>(most)));
    }
    answer.says += ".";
    return answer;
}

}  // namespace shardscope::traces::analysis
