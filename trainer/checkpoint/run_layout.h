// Which elements of which parameter are where in a run: the part of a Program that checkpoints need.
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

namespace shardscope::trainer::sharding {
class Program;
}

namespace shardscope::trainer::checkpoint {

struct ParameterShape {
    std::string path;
    std::int64_t rows = 0, width = 1;
    int window = 0;  // of a convolution's filters [rows, window, window, channels]; 0: not one
    bool trained = true;
    // Of the weight of a Linear that reads images: its rows are [pixels, channels], and [channels, pixels] in
    // PyTorch.
    std::int64_t pixels = 1;

    std::int64_t elements() const { return rows * width; }
    // As PyTorch's tensor of the name has them; filters are [rows, channels, window, window] there, and ours
    // are those in channels_last.
    std::vector<std::int64_t> dims() const {
        if (window > 0) return {rows, width / (window * window), window, window};
        return width == 1 ? std::vector{rows} : std::vector{rows, width};
    }
};

struct RunLayout {
    plan::Mesh mesh;
    std::vector<ParameterShape> parameters;  // whole ones, indexed by parameter id
    // What each rank of a copy of the parameters holds, as elements of whole parameters, by place_of(rank).
    std::vector<std::vector<sharding::StatePiece>> places;

    // The rank's place in its copy: role by role (sharding::Program), in each as Mesh::copy_index. And the
    // rank of the first copy that has the place.
    int place_of(int rank) const {
        if (mesh.servers > 0) return mesh.role(rank);
        return mesh.pipeline_index(rank) * mesh.copy_size() + mesh.copy_index(rank);
    }
    int rank_at(int place) const {
        if (mesh.servers > 0) return mesh.first_of_role(place);
        return mesh.rank_in_copy(place / mesh.copy_size(), place % mesh.copy_size());
    }
};

// The tensor that has a piece's elements: the parameter's, or a state's that is one number.
inline ParameterShape tensor_of(const sharding::StatePiece& piece,
                                const std::vector<ParameterShape>& parameters) {
    const ParameterShape& shape = parameters[static_cast<std::size_t>(piece.parameter)];
    return piece.one_number ? ParameterShape{shape.path, 1} : shape;
}

RunLayout layout_of(const sharding::Program& program);

// The bytes that an Arg names in one rank's memory, in any memory space; empty while its buffer is not
// allocated.
using RankMemory = std::function<plan::HostView(const plan::Arg&)>;

// The part of a view that begins at element `first` and has `count` elements of fp32.
constexpr plan::Arg elements_of(plan::Arg view, std::int64_t first, std::int64_t count) {
    view.offset += 4 * first;
    view.bytes = 4 * count;
    return view;
}

// A piece that one place writes on behalf of all places that hold it.
struct OwnedPiece {
    int place = 0;
    sharding::StatePiece piece;
};

// Every element of every parameter and state exactly once, sorted by parameter, state and element. What
// several places hold belongs to the lowest of them. No piece is larger than `most` elements. Throws
// std::logic_error if an element of a parameter, or of a state that some place holds, is held nowhere.
std::vector<OwnedPiece> owned_pieces(const RunLayout& layout, std::int64_t most);

}  // namespace shardscope::trainer::checkpoint
