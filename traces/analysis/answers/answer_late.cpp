// Which rank is late, and what to change first.
#include <algorithm>

#include <fmt/core.h>

#include "traces/analysis/advice/advice_facts.h"
#include "traces/analysis/answers/answer_parts.h"
#include "traces/analysis/base/shown_ranks.h"
#include "traces/analysis/communication/stopped.h"
#include "traces/analysis/time/overlap.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

constexpr double kNoticedPercent = 5;  // of a step: with less difference in waiting, no rank is late

// The number of ranks that took part in the trace's collectives, or that the run is known to have.
int ranks_that_met(const store::Trace& trace) {
    int ranks = ranks_of_run(trace);
    const store::Collectives& all = trace.collectives;
    for (std::size_t i = 0; i < all.size(); ++i) ranks = std::max(ranks, static_cast<int>(all.group_size[i]));
    return ranks;
}

std::string_view per(const AdviceFacts& f) {
    return f.trace.steps.empty() ? "us" : "us/step";
}

Answer late_on_hosts(const AdviceFacts& f) {
    const HostCommunication& hosts = f.on_host;
    const double differ = hosts.most_waiting_us - hosts.least_waiting_us;
    Answer answer{.question = Question::late, .command = "distributed"};
    if (hosts.waited_for < 0 || f.percent_of_any_step(differ) < kNoticedPercent) {
        answer.says = fmt::format("No rank is late: all wait alike in {}'s collectives, {}{}.", hosts.library,
                                  us_text(hosts.waiting_us), f.a_step());
        return answer;
    }
    answer.rank = hosts.waited_for;
    answer.says = fmt::format("Rank {} is late: in {}'s collectives it waits {}{}, and others up to {}.",
                              hosts.waited_for, hosts.library, us_text(hosts.least_waiting_us), f.a_step(),
                              us_text(hosts.most_waiting_us));
    answer.figures = {{"rank", static_cast<double>(hosts.waited_for), ""},
                      {"most_waiting", hosts.most_waiting_us, per(f)},
                      {"least_waiting", hosts.least_waiting_us, per(f)}};
    return answer;
}

// Exposed communication per step, with waiting.
struct ExposedByRank {
    double others_us = 0, own_us = 0;  // mean of the other ranks, and of this one
    std::size_t others = 0;
};
ExposedByRank exposed_by_rank(const AdviceFacts& f, int rank) {
    ExposedByRank found;
    for (const RankOverlap& overlap : overlap_report(f.trace, f.selection).ranks) {
        const double us = overlap.mean_us(overlap.sum.exposed_communication);
        if (overlap.rank == rank) {
            found.own_us = us;
        } else if (!overlap.steps.empty()) {
            found.others_us += us;
            ++found.others;
        }
    }
    if (found.others > 0) found.others_us /= static_cast<double>(found.others);
    return found;
}

Answer late_rank(const AdviceFacts& f, const WaitingForOne& waiting) {
    Answer answer{.question = Question::late, .command = "stragglers", .rank = waiting.rank};
    const store::RankIndex at = f.trace.rank_of_number(waiting.rank);
    const std::string words = at.known() ? slowness_of(f, at.at()).words : "";
    const ExposedByRank exposed = exposed_by_rank(f, waiting.rank);
    const std::string others = exposed.others == 1 ? "the other rank waits"
                                                   : fmt::format("the other {} ranks{} wait", exposed.others,
                                                                 shows_some_ranks(f.trace) ? " shown" : "");
    answer.says = fmt::format(
        "Rank {} is late: {} in communication for {}{} ({}), rank {} for {}, {}.", waiting.rank, others,
        us_text(exposed.others_us), f.a_step(), percent_text(f.percent_of_step(exposed.others_us)),
        waiting.rank, us_text(exposed.own_us),
        words.empty() ? "and why is unknown: its compute, copies and host take no longer than theirs"
                      : "because " + words);
    answer.figures = {{"rank", static_cast<double>(waiting.rank), ""},
                      {"exposed_on_others", exposed.others_us, per(f)},
                      {"exposed_on_rank", exposed.own_us, per(f)},
                      {"share_of_step", f.percent_of_step(exposed.others_us), "%"},
                      {"share_of_waiting", 100 * waiting.share, "%"}};
    return answer;
}

}  // namespace

Answer late_answer(const AdviceFacts& f) {
    const StopReport stopped = stop_report(f.trace);
    if (stopped.stopped) {
        if (stopped.first_rank < 0) return unknown_answer(Question::late, stop_sentence(stopped));
        Answer answer{.question = Question::late, .command = "distributed", .rank = stopped.first_rank};
        answer.says = stop_sentence(stopped);
        answer.figures = {{"rank", static_cast<double>(stopped.first_rank), ""}};
        return answer;
    }
    if (f.trace.ranks.size() < 2) {
        const int ranks = ranks_that_met(f.trace);
        if (ranks < 2 && f.ours()) {
            Answer answer{.question = Question::late, .command = "stragglers"};
            answer.says = "No rank is late: the run has one rank.";
            return answer;
        }
        const std::string which = ranks > 1               ? fmt::format("one of {} ranks", ranks)
                                  : f.trace.ranks.empty() ? "no rank"
                                                          : "one rank";
        return unknown_answer(Question::late,
                              fmt::format("Which rank is late is unknown, because the trace has {}.", which));
    }
    if (!f.on_host.library.empty()) return late_on_hosts(f);
    if (f.stragglers.collectives == 0) {
        return unknown_answer(Question::late,
                              "Which rank is late is unknown, because the trace has no collective of several "
                              "ranks with its times.");
    }
    if (const auto waiting = waiting_for_one(f)) {
        if (waiting->rank == latest_rank(f.stragglers)) return late_rank(f, *waiting);
        Answer answer = unknown_answer(Question::late, measures_disagree(f, *waiting));
        answer.command = "stragglers";
        return answer;
    }
    Answer answer{.question = Question::late, .command = "stragglers"};
    const auto waiting = waiting_of_ranks(f);
    if (!waiting) {
        answer.says = "No rank is late: none waits for another.";
        return answer;
    }
    const double share = f.percent_of_step(waiting->mean_us);
    const std::string waits =
        fmt::format("on average, a rank waits {}{}{} ({}) for others", share < kNoticedPercent ? "only " : "",
                    us_text(waiting->mean_us), f.a_step(), percent_text(share));
    answer.says = share < kNoticedPercent
                      ? fmt::format("No rank is late: {}.", waits)
                      : fmt::format("No single rank is late: {}, at most {} of it for one, rank {}.", waits,
                                    percent_text(100 * waiting->share), waiting->rank);
    answer.figures = {{"waiting", waiting->mean_us, per(f)}, {"share_of_step", share, "%"}};
    return answer;
}

Answer change_answer(const AdviceReport& report) {
    Answer answer{.question = Question::change, .command = "advice"};
    const auto first = std::find_if(report.findings.begin(), report.findings.end(), [](const Finding& f) {
        return f.weight != FindingWeight::minor || f.gain_us.value_or(0) > 0 || f.gain_bytes > 0;
    });
    if (first == report.findings.end()) {
        answer.says =
            report.findings.empty()
                ? fmt::format("Nothing: none of {} rules found its evidence in this trace.", report.rules)
                : fmt::format(
                      "Nothing: no change that {} rules suggest would make a step shorter or the peak "
                      "lower.",
                      report.findings.size());
        return answer;
    }
    answer.rule = first->id;
    answer.setting = first->job_setting;
    answer.says = fmt::format("{}. {} {}", first->title, first->change, first->expected);
    if (first->gain_us) answer.figures.push_back({"gain", *first->gain_us, "us/step"});
    if (first->gain_bytes > 0)
        answer.figures.push_back({"gain", static_cast<double>(first->gain_bytes), "bytes"});
    return answer;
}

}  // namespace shardscope::traces::analysis
