#include <algorithm>
#include <optional>
#include <vector>

#include <fmt/core.h>

#include "trainer/comm/inquiry.h"

namespace shardscope::trainer::comm {

namespace {

struct Waiting {
    int rank;
    Standing standing;
};

// What follows "rank 3 ", the rank for which the last of the chain waits.
std::string fault(const std::vector<Waiting>& chain, bool answers, double timeout_s) {
    const Waiting& last = chain.back();
    const std::string what = fmt::format(
        "{} {}", last.standing.waited_began ? "has not finished" : "has not begun", last.standing.collective);
    const std::string silence = answers ? "" : ", and does not answer";
    if (chain.size() == 1)
        return fmt::format("{} within the {} s of run.timeout{}", what, timeout_s, silence);
    return fmt::format(
        "{}, in which rank {} waits{}; rank {} has waited for more than the {} s of run.timeout", what,
        last.rank, silence, chain.front().rank, timeout_s);
}

// "ranks 0 and 2 have waited for each other ...": the ranks of the chain from `first` on.
std::string circle(const std::vector<Waiting>& chain, std::size_t first, double timeout_s) {
    std::string ranks, where;
    for (std::size_t i = first; i < chain.size(); ++i) {
        const bool last = i + 1 == chain.size();
        ranks += fmt::format("{}{}", i == first ? "" : last ? " and " : ", ", chain[i].rank);
        where += fmt::format("{}rank {} in {}",
                             i == first ? ""
                             : last     ? " and "
                                        : ", ",
                             chain[i].rank, chain[i].standing.collective);
    }
    return fmt::format(
        "ranks {} have waited for each other for more than the {} s of run.timeout: {}; all ranks must begin "
        "the collectives of their communicators in the same order",
        ranks, timeout_s, where);
}

}  // namespace

CollectiveTrouble end_of_chain(int rank, const Standing& own, double timeout_s, const Inquiry* asked) {
    const auto not_over = [&] {
        return CollectiveTrouble{
            -1, fmt::format("{} did not end within the {} s of run.timeout", own.collective, timeout_s)};
    };
    if (own.waits_for < 0) return not_over();
    std::vector<Waiting> chain = {{rank, own}};
    while (true) {
        const Standing& last = chain.back().standing;
        const auto met = std::find_if(chain.begin(), chain.end(),
                                      [&](const Waiting& link) { return link.rank == last.waits_for; });
        if (met != chain.end()) {
            const bool orders_differ = std::any_of(
                met, chain.end(), [](const Waiting& link) { return !link.standing.waited_began; });
            if (!orders_differ) return not_over();  // all have begun: data that was sent is missing
            return {-1, circle(chain, static_cast<std::size_t>(met - chain.begin()), timeout_s)};
        }
        std::optional<Standing> next;
        if (asked) next = asked->of(last.waits_for);
        const bool computes = next && next->waits_for < 0;
        // That rank has finished the collective: it has sent what does not arrive.
        if (computes && last.waited_began) return not_over();
        if (!next || computes) {
            // Without an inquiry, nothing is known about data that do not arrive.
            if (!asked && last.waited_began) return not_over();
            return {last.waits_for, fault(chain, next || !asked, timeout_s)};
        }
        chain.push_back({last.waits_for, std::move(*next)});
    }
}

}  // namespace shardscope::trainer::comm
