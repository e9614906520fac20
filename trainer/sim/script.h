// The Plans that a simulated run walks: those of a Program, or of a test.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/plan/mesh.h"
#include "trainer/plan/plan.h"

namespace shardscope::trainer::sim {

// What the ranks of one role walk (sharding::Program).
struct RoleScript {
    const plan::Plan* setup = nullptr;     // null: none
    std::vector<const plan::Plan*> steps;  // one per step; the last `cycle` ones repeat
    std::size_t cycle = 1;
    const plan::Plan* finish = nullptr;  // null: none

    std::size_t warm_up() const { return steps.size() - cycle; }
    const plan::Plan& step(std::int64_t number) const {
        const auto n = static_cast<std::size_t>(number);
        return *steps[n < warm_up() ? n : warm_up() + (n - warm_up()) % cycle];
    }
};

struct Script {
    plan::Mesh mesh;
    std::vector<RoleScript> roles = std::vector<RoleScript>(1);  // by role
    std::int64_t count = 1;                                      // number of steps
    bool batches_ahead = false;  // data.workers prepare batches: the host does not wait
    bool tf32 = false;
    int workers = 0;                      // run.workers: cores per node that the ranks may use; 0: all
    std::vector<std::string> unit_names;  // for messages

    const RoleScript& of(int rank) const { return roles[static_cast<std::size_t>(mesh.role(rank))]; }
};

}  // namespace shardscope::trainer::sim
