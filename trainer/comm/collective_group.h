// The process group of the CPU: every collective of a rank, made of messages over one Wire, carried on by one
// thread while the rank's workers compute.
//
// Sums are in rank order, element by element, and divided once at the end, as the `local` process group's:
// the same bits. Sums::ring adds along a ring instead.
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

namespace shardscope::trainer {

enum class Sums : std::uint8_t { ordered, ring };

struct CollectiveGroupOptions {
    Mesh mesh;
    Sums sums = Sums::ordered;
    double timeout_s = 0;                            // of a collective, from this rank's begin; 0: for ever
    std::function<std::string(int unit)> unit_name;  // for messages; may be empty
    // Told once, on the group's thread, of what the group finds out itself (a member that does not come in
    // time, one that calls something else, a wire that breaks); everything then ends with a CollectiveError.
    std::function<void(const CollectiveTrouble&)> on_trouble;
    // How to learn what the others wait for, before one of them is named; null: the first that has not come.
    std::shared_ptr<Inquiry> inquiry;
    Delays* delays = nullptr;  // for tests, before each part; null: none
};

// The members' calls are compared: each tells the others the operation, type, size, unit and step of what it
// begins.
std::unique_ptr<ProcessGroup> make_collective_group(std::unique_ptr<Wire> wire,
                                                    const CollectiveGroupOptions& options);

}  // namespace shardscope::trainer
