#include "trainer/checkpoint/run_layout.h"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "traces/schema/sort_rows.h"
#include "trainer/model/tensor_parallel.h"
#include "trainer/sharding/program.h"

namespace shardscope::trainer::checkpoint {

namespace {

// Cuts [first, end) of a held piece into pieces of at most `most` elements.
void append_parts(std::vector<OwnedPiece>& owned, const OwnedPiece& held, std::int64_t first,
                  std::int64_t most) {
    const std::int64_t end = held.piece.first + held.piece.elements;
    while (first < end) {
        OwnedPiece part = held;
        part.piece.first = first;
        part.piece.elements = std::min(most, end - first);
        part.piece.where = elements_of(held.piece.where, first - held.piece.first, part.piece.elements);
        first += part.piece.elements;
        owned.push_back(std::move(part));
    }
}

// Appends the runs of a rank's piece of its part of a parameter that are neighbours in the whole parameter.
void append_whole(std::vector<sharding::StatePiece>& held, const sharding::StatePiece& piece,
                  const model::Parameter& parameter, int place) {
    if (parameter.cut.cut == model::Cut::none || piece.one_number) return held.push_back(piece);
    const std::int64_t end = piece.first + piece.elements;
    for (std::int64_t first = piece.first; first < end;) {
        const model::WholeRun run = model::whole_run(parameter, first, place);
        // What lies beyond the whole parameter is padding.
        const std::int64_t last = std::min(end, run.end);
        sharding::StatePiece part = piece;
        part.first = run.whole;
        part.elements = std::min(last - first, parameter.whole_elements - run.whole);
        part.where = elements_of(piece.where, first - piece.first, part.elements);
        if (part.elements > 0) held.push_back(std::move(part));
        first = last;
    }
}

}  // namespace

RunLayout layout_of(const sharding::Program& program) {
    RunLayout layout;
    layout.mesh = program.mesh();
    for (const model::Parameter* parameter : program.modules().parameters) {
        const std::int64_t width =
            parameter->width * (parameter->cut.cut == model::Cut::columns ? parameter->cut.ranks : 1);
        layout.parameters.push_back({parameter->path, parameter->whole_elements / width, width,
                                     parameter->window, parameter->trained, parameter->pixels});
    }
    // The buffers of modules are numbered after the parameters. Those of the first rank are kept, as in
    // PyTorch's state dict.
    std::vector<sharding::StatePiece> buffers;
    for (const model::ModuleBuffer* buffer : program.modules().buffers) {
        buffers.push_back({.parameter = static_cast<int>(layout.parameters.size()),
                           .state = {},
                           .first = 0,
                           .elements = buffer->elements,
                           .where = program.buffer(*buffer)});
        layout.parameters.push_back({buffer->path, buffer->elements, 1, 0, false});
    }
    for (int role = 0; role < program.roles(); ++role) {
        const sharding::OptimizerPlanner& optimizer = program.role(role).optimizer();
        for (int place = 0; place < layout.mesh.copy_size(); ++place) {
            std::vector<sharding::StatePiece>& held = layout.places.emplace_back();
            const int rank = layout.mesh.servers > 0 ? layout.mesh.first_of_role(role)
                                                     : layout.mesh.rank_in_copy(0, place);
            for (const sharding::StatePiece& piece : optimizer.pieces(rank)) {
                const model::Parameter& parameter =
                    *program.modules().parameters[static_cast<std::size_t>(piece.parameter)];
                append_whole(held, piece, parameter, layout.mesh.place(parameter.cut.group, rank));
            }
            if (program.role(role).computes()) held.insert(held.end(), buffers.begin(), buffers.end());
        }
    }
    return layout;
}

std::vector<OwnedPiece> owned_pieces(const RunLayout& layout, std::int64_t most) {
    std::map<std::pair<int, std::string>, std::vector<OwnedPiece>> held;
    for (std::size_t place = 0; place < layout.places.size(); ++place) {
        for (const sharding::StatePiece& piece : layout.places[place]) {
            if (piece.elements > 0) {
                held[{piece.parameter, piece.state}].push_back({static_cast<int>(place), piece});
            }
        }
    }
    for (std::size_t id = 0; id < layout.parameters.size(); ++id)
        held.try_emplace({static_cast<int>(id), ""});
    std::vector<OwnedPiece> owned;
    for (auto& [key, pieces] : held) {
        traces::schema::sort_rows(pieces, [](const OwnedPiece& a, const OwnedPiece& b) {
            return std::tie(a.piece.first, a.place) < std::tie(b.piece.first, b.place);
        });
        const ParameterShape& shape = layout.parameters.at(static_cast<std::size_t>(key.first));
        std::int64_t covered = 0;
        for (const OwnedPiece& piece : pieces) {
            if (piece.piece.first > covered) break;
            append_parts(owned, piece, covered, most);
            covered = std::max(covered, piece.piece.first + piece.piece.elements);
        }
        const bool one_number = !pieces.empty() && pieces.front().piece.one_number;
        if (covered != (one_number ? 1 : shape.elements())) {
            throw std::logic_error(
                fmt::format("element {} of {} {} belongs to no rank", covered, shape.path, key.second));
        }
    }
    return owned;
}

}  // namespace shardscope::trainer::checkpoint
