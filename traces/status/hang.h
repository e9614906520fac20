// Who waits for whom, from what each rank says of its collectives: the rank that all the others wait for, in
// one sentence, while they wait.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace shardscope::traces::status {

// How far a rank has come in a group (communicator). Collectives of a group are entered in order.
struct GroupProgress {
    std::int64_t group = 0;
    std::int64_t entered = 0;  // collectives that the rank has entered
    std::int64_t left = 0;     // of these, those that it has left
    double for_s = 0;          // since it last entered or left one
    std::string operation;     // of the one entered last
};

struct RankProgress {
    int rank = 0;
    double silent_s = 0;  // since its process was last heard
    std::vector<GroupProgress> groups;
};

struct Hang {
    int rank = -1;  // that the others wait for; -1: they wait for each other
    std::vector<int> waiting;
    double for_s = 0;  // the longest wait
    // "rank 5 has not entered all_gather 12 of group 1 for 3.0 s; ranks 0-4, 6 and 7 wait for it"
    std::string sentence;
};

// The ranks of a group; empty: unknown.
using GroupMembers = std::function<std::vector<int>(std::int64_t group)>;

// Follows each rank that has been in a collective for at least `after_s` to the member that has not entered
// it, from there, if that one is in another collective, to the next, and so on. A rank that has been silent
// for `after_s` is at fault also where all have entered. nullopt: no rank waits that long, or what is waited
// for is only data on its way. Of several ranks at fault, the one for which most wait.
std::optional<Hang> find_hang(const std::vector<RankProgress>& ranks, const GroupMembers& members,
                              double after_s, double silent_after_s);

// "0-4, 6 and 7"; the ranks in increasing order.
std::string rank_list(const std::vector<int>& ranks);

}  // namespace shardscope::traces::status
