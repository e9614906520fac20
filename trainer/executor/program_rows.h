// The rows of a trace that describe a run before it begins: configuration, communicators, modules, units,
// streams, prediction. `add` takes each row, whatever its type: a recorder's describe(), or a sink's add().
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "traces/schema/rows.h"
#include "traces/store/number_list.h"
#include "trainer/pipeline/rows.h"
#include "trainer/plan/mesh.h"
#include "trainer/sharding/program.h"

namespace shardscope::trainer::executor {

template <class Add>
void add_configuration_rows(const sharding::Program& program, const Add& add) {
    for (const auto& [key, value] : describe(program.job())) add(traces::schema::RunInfoRow{key, value});
}

// The rank's place in the mesh.
inline void set_place(const plan::Mesh& mesh, int rank, traces::schema::RankRow& row) {
    row.data = mesh.place(plan::Axis::replica, rank);
    row.shard = mesh.place(plan::Axis::shard, rank);
    row.context = mesh.context_index(rank);
    row.tensor = mesh.tensor_index(rank);
    row.pipeline = mesh.pipeline_index(rank);
}

// The axes along which the ranks differ: "tensor", "data+shard".
inline std::string axes_of(const plan::Mesh& mesh, const std::vector<int>& ranks) {
    std::vector<traces::schema::RankRow> rows(ranks.size());
    for (std::size_t i = 0; i < ranks.size(); ++i) set_place(mesh, ranks[i], rows[i]);
    std::string names;
    for (const traces::schema::MeshAxis& axis : traces::schema::kMeshAxes) {
        const auto differs = [&](const auto& row) { return row.*axis.place != rows.front().*axis.place; };
        if (std::none_of(rows.begin(), rows.end(), differs)) continue;
        names += (names.empty() ? "" : "+") + std::string(axis.name);
    }
    return names;
}

// The communicators of these ranks (sorted).
template <class Add>
void add_group_rows(const plan::Mesh& mesh, const std::vector<int>& ranks, const Add& add) {
    const std::vector<std::vector<int>> communicators = mesh.communicators();
    for (std::size_t id = 0; id < communicators.size(); ++id) {
        std::vector<std::int64_t> members(communicators[id].begin(), communicators[id].end());
        const auto is_here = [&](std::int64_t rank) {
            return std::binary_search(ranks.begin(), ranks.end(), rank);
        };
        if (members.size() < 2 || std::none_of(members.begin(), members.end(), is_here)) continue;
        std::sort(members.begin(), members.end());
        const plan::Group of_experts = mesh.expert_group_of(plan::CommunicatorId(id));
        add(traces::schema::GroupRow{
            .group = static_cast<std::int64_t>(id),
            .axis = members.size() == 2 && mesh.serves(static_cast<int>(members[1])) ? "server"
                    : of_experts == plan::Group::world
                        ? axes_of(mesh, communicators[id])
                        : std::string(plan::kGroupNames[static_cast<std::size_t>(of_experts)]),
            .ranks = traces::store::number_list(members),
            .name = {},
            .description = {}});
    }
}

template <class Add>
void add_schedule_rows(const sharding::Program& program, int rank, const Add& add) {
    if (const pipeline::Schedule* schedule = program.schedule())
        for (const auto& row : pipeline::schedule_rows(*schedule, program.mesh().pipeline_index(rank), rank))
            add(row);
}

template <class Add>
void add_module_rows(const sharding::Program& program, const Add& add) {
    const model::ModuleTree& tree = program.modules();
    std::vector<int> unit_of_module(tree.modules.size(), -1);
    for (const model::Parameter* parameter : tree.parameters) {
        unit_of_module[static_cast<std::size_t>(tree.owners[static_cast<std::size_t>(parameter->id)])] =
            program.unit_of(*parameter);
    }
    for (std::size_t i = 0; i < tree.modules.size(); ++i) {
        const model::Module& module = *tree.modules[i];
        traces::schema::ModuleRow row{static_cast<int>(i),
                                      tree.parents[i],
                                      module.name,
                                      module.class_name(),
                                      module.path,
                                      unit_of_module[i],
                                      0};
        for (const model::Parameter& parameter : module.parameters()) row.parameters += parameter.elements();
        add(row);
    }
}

template <class Add>
void add_unit_rows(const sharding::Program& program, const Add& add) {
    const auto& units = program.units();
    for (std::size_t u = 0; u < units.size(); ++u) {
        add(traces::schema::UnitRow{
            static_cast<int>(u), units[u].module, units[u].name, units[u].elements, units[u].padded_elements,
            units[u].shard_elements * size_of(plan::DType::fp32), units[u].gather_bytes});
    }
}

// Only ranks that send messages have streams for them.
template <class Add>
void add_stream_rows(const plan::Mesh& mesh, int rank, const Add& add) {
    for (int stream = 0; stream < plan::kStreams; ++stream) {
        if (!has_stream(mesh, rank, static_cast<plan::Stream>(stream))) continue;
        add(traces::schema::StreamRow{rank, stream,
                                      std::string(plan::kStreamNames[static_cast<std::size_t>(stream)])});
    }
}

// `prediction`: that of the rank's role.
template <class Add>
void add_prediction_rows(const sharding::MemoryPrediction& prediction, int rank, const Add& add) {
    traces::schema::PredictionRow row;
    row.rank = rank;
    row.peak_bytes = prediction.peak.bytes;
    row.where = prediction.peak.where;
    for (std::size_t c = 0; c < traces::schema::kMemoryCategories; ++c)
        row.at_peak[c] = prediction.peak.at_peak[c];
    add(row);
    // `first`: the id of bytes[0].
    const auto add_parts = [&](traces::schema::PredictionPart kind, const std::vector<std::int64_t>& bytes,
                               std::int64_t first) {
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            if (bytes[i] == 0) continue;
            add(traces::schema::PredictionPartRow{
                rank, kind, first + static_cast<std::int64_t>(i), bytes[i], {}});
        }
    };
    add_parts(traces::schema::PredictionPart::unit, prediction.peak.units, -1);
    add_parts(traces::schema::PredictionPart::module, prediction.peak.modules, -1);
    add_parts(traces::schema::PredictionPart::step, prediction.steps, 0);
}

}  // namespace shardscope::trainer::executor
