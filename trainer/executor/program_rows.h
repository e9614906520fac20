// The rows of a trace that describe a run before it begins: configuration, modules, units, streams,
// prediction. `add` takes each row, whatever its type: a recorder's describe(), or a sink's add().
#pragma once

#include <string>
#include <vector>

#include "traces/schema/rows.h"
#include "trainer/sharding/program.h"

namespace shardscope::trainer::executor {

template <class Add>
void add_configuration_rows(const sharding::Program& program, const Add& add) {
    for (const auto& [key, value] : describe(program.job())) add(traces::schema::RunInfoRow{key, value});
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

// Without pipeline stages no rank has streams of messages.
template <class Add>
void add_stream_rows(const plan::Mesh& mesh, int rank, const Add& add) {
    const int streams = mesh.pipeline > 1 ? plan::kStreams : static_cast<int>(plan::Stream::send);
    for (int stream = 0; stream < streams; ++stream) {
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
