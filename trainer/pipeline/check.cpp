#include "trainer/pipeline/check.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include <fmt/core.h>

#include "traces/schema/joined.h"
#include "trainer/pipeline/walk.h"

namespace shardscope::trainer::pipeline {

namespace {

using Problem = std::optional<ScheduleProblem>;
using Kind = ActionKind;

// What has to come before an action on the same rank, for the same stage and micro-batch.
struct Predecessor {
    Kind kind, before;
};
constexpr Predecessor kPredecessors[] = {
    {Kind::backward, Kind::forward},
    {Kind::backward_input, Kind::forward},
    {Kind::backward_weight, Kind::backward_input},
    {Kind::send_forward, Kind::forward},
    {Kind::wait_send_forward, Kind::send_forward},
    {Kind::wait_send_backward, Kind::send_backward},
};

class Checker {
  public:
    explicit Checker(const Schedule& schedule) : s_(schedule) {}

    Problem first() {
        Problem problem = places();
        if (!problem) problem = missing_forward();
        if (problem) return problem;
        seen_.resize(s_.index(s_.stages(), 0));
        for (int rank = 0; rank < s_.ranks() && !problem; ++rank) problem = order_on(rank);
        if (!problem) problem = missing_backward();
        if (!problem && s_.has_transfers()) problem = transfers();
        return problem ? problem : deadlock();
    }

  private:
    const std::vector<Action>& actions_of(int rank) const {
        return s_.actions[static_cast<std::size_t>(rank)];
    }
    int rank_of(int stage) const { return s_.rank_of_stage[static_cast<std::size_t>(stage)]; }
    static unsigned bit(Kind kind) { return 1U << static_cast<unsigned>(kind); }
    bool seen(Kind kind, const Action& a) const {
        return (seen_[s_.index(a.stage, a.micro_batch)] & bit(kind)) != 0;
    }
    Problem missing(int stage, Kind kind, int micro_batch, const char* what) const {
        return ScheduleProblem{rank_of(stage), std::nullopt,
                               fmt::format("{} is missing; {}", text_of({stage, kind, micro_batch}), what)};
    }

    // Each action is on the rank of its stage.
    Problem places() const {
        for (int rank = 0; rank < s_.ranks(); ++rank) {
            const std::vector<Action>& own = actions_of(rank);
            for (std::size_t i = 0; i < own.size(); ++i) {
                const Action& a = own[i];
                if (a.stage < 0 || a.stage >= s_.stages() || a.micro_batch < 0 ||
                    a.micro_batch >= s_.micro_batches)
                    return ScheduleProblem{rank, i,
                                           fmt::format("{} is outside {} stages and {} micro-batches",
                                                       text_of(a), s_.stages(), s_.micro_batches)};
                if (rank_of(a.stage) != rank)
                    return ScheduleProblem{
                        rank, i,
                        fmt::format("{} is on rank {}, but stage {} is on rank {}; move it there", text_of(a),
                                    rank, a.stage, rank_of(a.stage))};
            }
        }
        return std::nullopt;
    }

    // Needs no table of all stages and micro-batches, which a file could make as large as it likes.
    Problem missing_forward() const {
        std::vector<std::size_t> forwards;
        for (const std::vector<Action>& own : s_.actions) {
            for (const Action& a : own) {
                if (a.kind == Kind::forward) forwards.push_back(s_.index(a.stage, a.micro_batch));
            }
        }
        std::sort(forwards.begin(), forwards.end());
        forwards.erase(std::unique(forwards.begin(), forwards.end()), forwards.end());
        std::size_t first = 0;
        while (first < forwards.size() && forwards[first] == first) ++first;
        if (first == s_.index(s_.stages(), 0)) return std::nullopt;
        const auto micro_batches = static_cast<std::size_t>(s_.micro_batches);
        return missing(static_cast<int>(first / micro_batches), Kind::forward,
                       static_cast<int>(first % micro_batches),
                       "each stage does the forward of each micro-batch");
    }

    Problem order_on(int rank) {
        const std::vector<Action>& own = actions_of(rank);
        for (std::size_t i = 0; i < own.size(); ++i) {
            const Action& a = own[i];
            if (!is_compute(a.kind) && !is_transfer(a.kind)) continue;
            if (i > 0 && own[i - 1].with_next && own[i - 1].stage == a.stage &&
                own[i - 1].micro_batch == a.micro_batch)
                return ScheduleProblem{
                    rank, i,
                    fmt::format("{} needs {}, with which it is to run; do one after the other", text_of(a),
                                text_of(own[i - 1]))};
            std::string wrong = wrong_order(a);
            if (!wrong.empty()) return ScheduleProblem{rank, i, std::move(wrong)};
            seen_[s_.index(a.stage, a.micro_batch)] |= bit(a.kind);
        }
        return std::nullopt;
    }

    std::string wrong_order(const Action& a) const {
        if (seen(a.kind, a)) return fmt::format("{} is there twice; omit one", text_of(a));
        const bool whole =
            a.kind == Kind::backward && (seen(Kind::backward_input, a) || seen(Kind::backward_weight, a));
        const bool split =
            (a.kind == Kind::backward_input || a.kind == Kind::backward_weight) && seen(Kind::backward, a);
        if (whole || split)
            return fmt::format(
                "{} is a second backward of stage {} and micro-batch {}; a backward is B, or I and W",
                text_of(a), a.stage, a.micro_batch);
        for (const Predecessor& rule : kPredecessors) {
            if (rule.kind != a.kind || seen(rule.before, a)) continue;
            return fmt::format("{} comes before {}; move it behind", text_of(a),
                               text_of({a.stage, rule.before, a.micro_batch}));
        }
        if (a.kind == Kind::send_backward && !seen(Kind::backward, a) && !seen(Kind::backward_input, a))
            return fmt::format("{} comes before {}; move it behind", text_of(a),
                               text_of({a.stage, Kind::backward, a.micro_batch}));
        if (a.kind == Kind::recv_forward && seen(Kind::forward, a))
            return fmt::format("{} comes after {}, which needs it; move it before", text_of(a),
                               text_of({a.stage, Kind::forward, a.micro_batch}));
        if (a.kind == Kind::recv_backward && (seen(Kind::backward, a) || seen(Kind::backward_input, a)))
            return fmt::format("{} comes after the backward that needs it; move it before", text_of(a));
        return "";
    }

    Problem missing_backward() const {
        for (int stage = 0; stage < s_.stages(); ++stage) {
            for (int k = 0; k < s_.micro_batches; ++k) {
                const Action at{stage, Kind::forward, k};
                if (seen(Kind::backward, at) || seen(Kind::backward_weight, at)) continue;
                if (seen(Kind::backward_input, at))
                    return missing(stage, Kind::backward_weight, k, "it follows the I of its micro-batch");
                return missing(stage, Kind::backward, k,
                               "each forward has a backward on its rank: B, or I and then W");
            }
        }
        return std::nullopt;
    }

    // Both ends of each transfer are there, and messages from one rank to another are received in the order
    // in which they are sent.
    Problem transfers() const {
        for (int stage = 0; stage + 1 < s_.stages(); ++stage) {
            if (rank_of(stage) == rank_of(stage + 1)) continue;
            for (int k = 0; k < s_.micro_batches; ++k) {
                const std::array ends = {
                    Action{stage, Kind::send_forward, k}, Action{stage + 1, Kind::recv_forward, k},
                    Action{stage + 1, Kind::send_backward, k}, Action{stage, Kind::recv_backward, k}};
                for (const Action& end : ends) {
                    if (!seen(end.kind, end))
                        return missing(end.stage, end.kind, k,
                                       "the stages before and after it are on other ranks");
                }
            }
        }
        struct Messages {
            std::vector<std::pair<Action, std::size_t>> sent, received;  // with their places
        };
        std::map<std::pair<int, int>, Messages> between;  // from, to
        for (int rank = 0; rank < s_.ranks(); ++rank) {
            const std::vector<Action>& own = actions_of(rank);
            for (std::size_t i = 0; i < own.size(); ++i) {
                const Action& a = own[i];
                const bool sends = a.kind == Kind::send_forward || a.kind == Kind::send_backward;
                if (!sends && a.kind != Kind::recv_forward && a.kind != Kind::recv_backward) continue;
                const int other =
                    a.stage + (a.kind == Kind::send_forward || a.kind == Kind::recv_backward ? 1 : -1);
                if (other < 0 || other >= s_.stages() || rank_of(other) == rank)
                    return ScheduleProblem{
                        rank, i, fmt::format("{} has no other rank at its other end; omit it", text_of(a))};
                if (sends) {
                    between[{rank, rank_of(other)}].sent.push_back({a, i});
                } else {  // named by its SEND
                    const Kind kind = a.kind == Kind::recv_forward ? Kind::send_forward : Kind::send_backward;
                    between[{rank_of(other), rank}].received.push_back({{other, kind, a.micro_batch}, i});
                }
            }
        }
        for (const auto& [ranks, all] : between) {
            for (std::size_t i = 0; i < all.sent.size(); ++i) {  // as many of both: each has its other end
                if (all.sent[i].first == all.received[i].first) continue;
                return ScheduleProblem{
                    ranks.second, all.received[i].second,
                    fmt::format("{} is received where rank {} sends {}; messages between two ranks are "
                                "received in the "
                                "order in which they are sent",
                                text_of(all.received[i].first), ranks.first, text_of(all.sent[i].first))};
            }
        }
        return std::nullopt;
    }

    // Ranks that wait for each other: from any blocked rank, the one that it waits for, and so on until one
    // repeats.
    Problem deadlock() const {
        const std::vector<BlockedRank> blocked = walk(s_, [](int, std::span<const Action>) {});
        if (blocked.empty()) return std::nullopt;
        const auto of_rank = [&](int rank) {
            return *std::find_if(blocked.begin(), blocked.end(),
                                 [&](const BlockedRank& b) { return b.rank == rank; });
        };
        std::vector<int> order;
        int rank = blocked.front().rank;
        while (std::find(order.begin(), order.end(), rank) == order.end()) {
            order.push_back(rank);
            rank = rank_of(of_rank(rank).for_action.stage);
        }
        std::vector<std::string> links;
        for (auto i = std::find(order.begin(), order.end(), rank); i != order.end(); ++i) {
            const BlockedRank own = of_rank(*i);
            // The whole backward stands for I in `for_action`; the text is that of the schedule.
            Action other = own.for_action;
            const bool split = (seen_[s_.index(other.stage, other.micro_batch)] & bit(Kind::backward)) == 0;
            if (other.kind == Kind::backward && split) other.kind = Kind::backward_input;
            links.push_back(fmt::format("rank {} at {} for {} of rank {}", own.rank, text_of(own.waits),
                                        text_of(other), rank_of(other.stage)));
        }
        return ScheduleProblem{
            rank, of_rank(rank).at,
            fmt::format("deadlock: {} wait{}; change the order on one of these ranks",
                        traces::schema::joined(links, ", "), links.size() == 1 ? "s" : "")};
    }

    const Schedule& s_;
    std::vector<std::uint32_t> seen_;  // bits of the kinds, by stage and micro-batch
};

}  // namespace

std::optional<ScheduleProblem> find_problem(const Schedule& schedule) {
    return Checker(schedule).first();
}

void check(const Schedule& schedule) {
    if (const auto problem = find_problem(schedule))
        throw ScheduleError(fmt::format("rank {}: {}", problem->rank, problem->text));
}

}  // namespace shardscope::trainer::pipeline
