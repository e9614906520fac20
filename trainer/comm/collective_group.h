// The process group of the CPU: carries out every collective of a rank as messages over one Wire, on one
// thread, while the rank's workers compute.
//
// Sums are in rank order, element by element, and divided once at the end, which gives the same bits as the
// `local` process group. Sums::ring adds along a ring instead.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "trainer/collective/delays.h"
#include "trainer/comm/inquiry.h"
#include "trainer/comm/process_group.h"
#include "trainer/comm/wire.h"
#include "trainer/plan/mesh.h"

namespace shardscope::trainer::comm {

enum class Sums : std::uint8_t { ordered, ring };

struct CollectiveGroupOptions {
    plan::Mesh mesh;
    Sums sums = Sums::ordered;
    double timeout_s = 0;                            // of a collective, from this rank's begin(); 0: no limit
    std::function<std::string(int unit)> unit_name;  // for messages; may be empty
    // Called once, on the group's thread, if the group itself detects a failure (a member that is late or
    // calls something else, a broken wire); all collectives then end with a CollectiveError.
    std::function<void(const CollectiveTrouble&)> on_trouble;
    // Finds out whom the others wait for, before a rank is blamed; null: the first that is missing is blamed.
    std::shared_ptr<Inquiry> inquiry;
    collective::Delays* delays = nullptr;  // for tests: sleeps before each part; null: none
};

// The members' calls are compared: each sends the others the operation, type, size, unit and step of the
// collective that it begins.
std::unique_ptr<ProcessGroup> make_collective_group(std::unique_ptr<Wire> wire,
                                                    const CollectiveGroupOptions& options);

}  // namespace shardscope::trainer::comm
