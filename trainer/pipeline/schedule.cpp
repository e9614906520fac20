#include "trainer/pipeline/schedule.h"

#include <algorithm>

namespace shardscope::trainer::pipeline {

std::string_view name(Placement placement) {
    switch (placement) {
        case Placement::loop:
            return "loop";
        case Placement::v:
            return "V";
        case Placement::own:
            break;
    }
    return "own";
}

int stage_of(Placement placement, const Shape& shape, int rank, int chunk) {
    return placement == Placement::v && chunk == 1 ? 2 * shape.ranks - 1 - rank : rank + chunk * shape.ranks;
}

Placement Schedule::placement() const {
    const int p = ranks();
    bool loop = true, v = stages() == 2 * p;
    for (int s = 0; s < stages(); ++s) {
        const int rank = rank_of_stage[static_cast<std::size_t>(s)];
        loop = loop && rank == s % p;
        v = v && rank == (s < p ? s : 2 * p - 1 - s);
    }
    return loop ? Placement::loop : v ? Placement::v : Placement::own;
}

std::vector<int> Schedule::stages_of(int rank) const {
    std::vector<int> own;
    for (int s = 0; s < stages(); ++s) {
        if (rank_of_stage[static_cast<std::size_t>(s)] == rank) own.push_back(s);
    }
    return own;
}

bool Schedule::has_transfers() const {
    return std::any_of(actions.begin(), actions.end(), [](const std::vector<Action>& own) {
        return std::any_of(own.begin(), own.end(), [](const Action& a) { return is_transfer(a.kind); });
    });
}

}  // namespace shardscope::trainer::pipeline
