#include "trainer/executor/instruments.h"

#include <sstream>

#include <fmt/format.h>

#include "trainer/executor/nccl_payloads.h"
#include "trainer/model/models.h"
#include "trainer/sharding/program.h"

namespace shardscope::trainer {

Instruments::Instruments(profiler::Recorder& recorder, const Program& program) : recorder_(recorder) {
    launch_kernel = recorder.name("cudaLaunchKernel_v7000");
    launch_collective = recorder.name("cudaLaunchKernelExC_v11060");
    memcpy_async = recorder.name("cudaMemcpyAsync_v3020");
    memset_async = recorder.name("cudaMemsetAsync_v3020");
    event_record = recorder.name("cudaEventRecord_v3020");
    stream_wait_event = recorder.name("cudaStreamWaitEvent_v3020");
    event_synchronize = recorder.name("cudaEventSynchronize_v3020");
    malloc_device = recorder.name("cudaMalloc_v3020");
    malloc_host = recorder.name("cudaHostAlloc_v3020");
    for (std::size_t i = 0; i < traces::kOperations; ++i) {
        collective_kernel[i] =
            recorder.name(fmt::format("ncclDevKernel_{}_local", traces::kOperationNcclNames[i]));
        collective_call[i] = recorder.name(fmt::format("nccl{}", traces::kOperationNcclNames[i]));
    }
    nccl_domain = recorder.name("NCCL");
    active_bytes = recorder.name("active_bytes");
    reserved_bytes = recorder.name("reserved_bytes");
    device_bytes = recorder.name("device_bytes");
    host_copy = recorder.name("aten::copy_");
    host_zero = recorder.name("aten::zero_");
    for (const Plan* plan : program.plans()) add(*plan);
}

void Instruments::add(const Plan& plan) {
    PlanNames& names = plans_[&plan];
    for (const std::string& name : plan.names) names.names.push_back(recorder_.name(name));
    for (const Buffer& buffer : plan.buffers) names.buffers.push_back(recorder_.name(buffer.name));
}

namespace {

void describe_modules(profiler::Recorder& recorder, const Program& program) {
    const ModuleTree& tree = program.modules();
    std::vector<int> unit_of_module(tree.modules.size(), -1);
    for (const Parameter* parameter : tree.parameters) {
        unit_of_module[static_cast<std::size_t>(tree.owners[static_cast<std::size_t>(parameter->id)])] =
            program.unit_of(*parameter);
    }
    for (std::size_t i = 0; i < tree.modules.size(); ++i) {
        const Module& module = *tree.modules[i];
        traces::ModuleRow row{static_cast<int>(i),
                              tree.parents[i],
                              module.name,
                              module.class_name(),
                              module.path,
                              unit_of_module[i],
                              0};
        for (const Parameter& parameter : module.parameters()) row.parameters += parameter.elements();
        recorder.describe(row);
    }
}

void describe_units(profiler::Recorder& recorder, const Program& program) {
    const auto& units = program.units();
    for (std::size_t u = 0; u < units.size(); ++u) {
        recorder.describe(traces::UnitRow{
            static_cast<int>(u), units[u].module, units[u].name, units[u].elements, units[u].padded_elements,
            units[u].shard_elements * size_of(DType::fp32), units[u].gather_bytes});
    }
}

// The memory account's prediction is the same for every rank.
void describe_prediction(profiler::Recorder& recorder, const MemoryPrediction& prediction, int rank) {
    traces::PredictionRow row;
    row.rank = rank;
    row.peak_bytes = prediction.peak.bytes;
    row.where = prediction.peak.where;
    for (std::size_t c = 0; c < traces::kMemoryCategories; ++c) row.at_peak[c] = prediction.peak.at_peak[c];
    recorder.describe(row);
    // `first`: the id of bytes[0].
    const auto parts = [&](traces::PredictionPart kind, const std::vector<std::int64_t>& bytes,
                           std::int64_t first) {
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            if (bytes[i] == 0) continue;
            recorder.describe(
                traces::PredictionPartRow{rank, kind, first + static_cast<std::int64_t>(i), bytes[i], {}});
        }
    };
    parts(traces::PredictionPart::unit, prediction.peak.units, -1);
    parts(traces::PredictionPart::module, prediction.peak.modules, -1);
    parts(traces::PredictionPart::step, prediction.steps, 0);
}

}  // namespace

void describe_program(profiler::Recorder& recorder, const Program& program) {
    for (const auto& [key, value] : describe(program.job()))
        recorder.describe(traces::RunInfoRow{key, value});
    describe_nccl_payloads(recorder);
    describe_modules(recorder, program);
    describe_units(recorder, program);
    const MemoryPrediction prediction = program.predict();
    for (int rank = 0; rank < program.job().run.ranks; ++rank) {
        for (int stream = 0; stream < kStreams; ++stream) {
            recorder.describe(
                traces::StreamRow{rank, stream, std::string(kStreamNames[static_cast<std::size_t>(stream)])});
        }
        describe_prediction(recorder, prediction, rank);
    }
}

}  // namespace shardscope::trainer
