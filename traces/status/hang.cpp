#include "traces/status/hang.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/core.h>

namespace shardscope::traces::status {

namespace {

// One rank waits in a collective for another rank.
struct Wait {
    int whom = -1;
    const GroupProgress* in = nullptr;
    bool entered = false;  // whether the other has entered it, too
};

class Waits {
  public:
    Waits(const std::vector<RankProgress>& ranks, const GroupMembers& members, double after_s,
          double silent_after_s)
        : members_(members), after_s_(after_s), silent_after_s_(silent_after_s) {
        for (const RankProgress& rank : ranks) ranks_.emplace(rank.rank, &rank);
    }

    // The collective in which the rank has been longest, if it has been in one for `after_s`.
    const GroupProgress* oldest(int rank) const {
        const auto found = ranks_.find(rank);
        if (found == ranks_.end() || is_silent(*found->second)) return nullptr;
        const GroupProgress* oldest = nullptr;
        for (const GroupProgress& group : found->second->groups) {
            if (group.entered <= group.left || group.for_s < after_s_) continue;
            if (!oldest || group.for_s > oldest->for_s) oldest = &group;
        }
        return oldest;
    }

    // Whom the rank waits for in that collective: a member that has not entered it, one that is not waiting
    // itself before one that is; if all have, a silent one.
    Wait of(int rank) const {
        Wait wait;
        wait.in = oldest(rank);
        if (!wait.in) return wait;
        int silent = -1, busy = -1, waiting = -1;
        for (const int member : members_(wait.in->group)) {
            const auto found = ranks_.find(member);
            if (member == rank || found == ranks_.end()) continue;
            if (has_entered(*found->second, *wait.in)) {
                if (silent < 0 && is_silent(*found->second)) silent = member;
            } else if (oldest(member)) {
                if (waiting < 0) waiting = member;
            } else if (busy < 0 || (is_silent(*found->second) && !is_silent(*ranks_.at(busy)))) {
                busy = member;
            }
        }
        wait.entered = busy < 0 && waiting < 0;
        wait.whom = busy >= 0 ? busy : waiting >= 0 ? waiting : silent;
        return wait;
    }

    bool is_silent(const RankProgress& rank) const { return rank.silent_s >= silent_after_s_; }
    const RankProgress& rank(int rank) const { return *ranks_.at(rank); }

  private:
    static bool has_entered(const RankProgress& rank, const GroupProgress& in) {
        return std::any_of(rank.groups.begin(), rank.groups.end(), [&](const GroupProgress& own) {
            return own.group == in.group && own.entered > in.left;
        });
    }

    std::map<int, const RankProgress*> ranks_;
    const GroupMembers& members_;
    const double after_s_, silent_after_s_;
};

// "all_gather 12 of group 1"; the number is that of the oldest which the rank has not left.
std::string title(const GroupProgress& group) {
    return fmt::format("{} {} of group {}", group.operation, group.left, group.group);
}

std::string of_ranks(const std::vector<int>& ranks) {
    return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", rank_list(ranks));
}

struct Chain {
    Wait last;      // the link that ends at the rank at fault
    int from = -1;  // the rank that waits in it
    bool cycle = false;
};

Chain follow(const Waits& waits, int rank) {
    std::set<int> seen;
    Chain chain;
    while (true) {
        const Wait wait = waits.of(rank);
        if (wait.whom < 0) return chain;
        if (!seen.insert(rank).second) {
            chain.cycle = true;
            return chain;
        }
        chain.last = wait;
        chain.from = rank;
        rank = wait.whom;
    }
}

}  // namespace

std::string rank_list(const std::vector<int>& ranks) {
    std::vector<std::string> parts;
    for (std::size_t first = 0; first < ranks.size();) {
        std::size_t last = first;
        while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
        if (last - first < 2) {
            for (std::size_t i = first; i <= last; ++i) parts.push_back(std::to_string(ranks[i]));
        } else {
            parts.push_back(fmt::format("{}-{}", ranks[first], ranks[last]));
        }
        first = last + 1;
    }
    std::string text;
    for (std::size_t i = 0; i < parts.size(); ++i)
        text += (i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ") + parts[i];
    return text;
}

std::optional<Hang> find_hang(const std::vector<RankProgress>& ranks, const GroupMembers& members,
                              double after_s, double silent_after_s) {
    const Waits waits(ranks, members, after_s, silent_after_s);
    struct Fault {
        std::vector<int> waiting;
        Chain chain;
        double for_s = 0;
    };
    std::map<int, Fault> faults;  // by the rank at fault; -1: a cycle
    for (const RankProgress& rank : ranks) {
        const GroupProgress* in = waits.oldest(rank.rank);
        if (!in) continue;
        Chain chain = follow(waits, rank.rank);
        if (chain.last.whom < 0) continue;  // data on its way
        Fault& fault = faults[chain.cycle ? -1 : chain.last.whom];
        if (fault.waiting.empty() || in->for_s > fault.for_s) fault.chain = chain;
        fault.for_s = std::max(fault.for_s, in->for_s);
        fault.waiting.push_back(rank.rank);
    }
    if (faults.empty()) return std::nullopt;
    auto& [at, fault] = *std::max_element(faults.begin(), faults.end(), [](const auto& a, const auto& b) {
        return a.second.waiting.size() < b.second.waiting.size();
    });
    Hang hang;
    hang.rank = at;
    hang.waiting = fault.waiting;
    std::sort(hang.waiting.begin(), hang.waiting.end());
    hang.for_s = fault.for_s;
    const GroupProgress& in = *fault.chain.last.in;
    if (at < 0) {
        hang.sentence = fmt::format("{} wait for each other, rank {} in {} for {:.1f} s",
                                    of_ranks(hang.waiting), fault.chain.from, title(in), hang.for_s);
        return hang;
    }
    const RankProgress& culprit = waits.rank(at);
    const std::string silence =
        waits.is_silent(culprit) ? fmt::format(" and has not answered for {:.1f} s", culprit.silent_s) : "";
    hang.sentence = fmt::format("rank {} has not {} {} for {:.1f} s{}; {} wait{} for it", at,
                                fault.chain.last.entered ? "finished" : "entered", title(in), in.for_s,
                                silence, of_ranks(hang.waiting), hang.waiting.size() == 1 ? "s" : "");
    return hang;
}

}  // namespace shardscope::traces::status
