// Which elements of which parameter lie where in a run: what checkpoints know of a Program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "trainer/plan/host_view.h"
#include "trainer/plan/mesh.h"
#include "trainer/plan/plan.h"
#include "trainer/sharding/optimizer.h"

namespace shardscope::trainer {

class Program;

struct ParameterShape {
    std::string path;
    std::int64_t rows = 0, width = 1;

    std::int64_t elements() const { return rows * width; }
};

struct RunLayout {
    Mesh mesh;
    std::vector<ParameterShape> parameters;       // by id
    std::vector<std::vector<StatePiece>> places;  // what a rank at each place of a shard group holds
};

RunLayout layout_of(const Program& program);

// Samples that all ranks train on in one step.
std::int64_t samples_per_step(const Job& job);

// The bytes that an Arg names in one rank's memory, in whichever space; empty while its buffer is not
// allocated.
using RankMemory = std::function<HostView(const Arg&)>;

// The sub-view of `count` elements of fp32 from element `first` of a view on.
constexpr Arg elements_of(Arg view, std::int64_t first, std::int64_t count) {
    view.offset += 4 * first;
    view.bytes = 4 * count;
    return view;
}

// A piece that one place writes for all that hold it.
struct OwnedPiece {
    int place = 0;
    StatePiece piece;
};

// Every element of every parameter and state once, in the order of parameter, state and element. What several
// places hold belongs to the lowest. No piece is larger than `most` elements. Throws std::logic_error where
// an element of a parameter, or of a state of it that some place holds, is held nowhere.
std::vector<OwnedPiece> owned_pieces(const RunLayout& layout, std::int64_t most);

}  // namespace shardscope::trainer
