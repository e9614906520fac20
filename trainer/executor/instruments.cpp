#include "trainer/executor/instruments.h"

#include <sstream>

#include <fmt/format.h>

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
    reserved_bytes = recorder.name("reserved_bytes");
    add(program.setup());
    for (std::size_t i = 0; i <= program.warm_up_steps(); ++i) add(program.step(i));
    add(program.finish());
}

void Instruments::add(const Plan& plan) {
    PlanNames& names = plans_[&plan];
    for (const std::string& name : plan.names) names.names.push_back(recorder_.name(name));
    for (const Buffer& buffer : plan.buffers) names.buffers.push_back(recorder_.name(buffer.name));
}

void describe_program(profiler::Recorder& recorder, const Program& program) {
    for (const auto& [key, value] : describe(program.job()))
        recorder.describe(traces::RunInfoRow{key, value});
    const ModuleTree& tree = program.modules();
    const auto& units = program.units();
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
        for (const Parameter& parameter : module.parameters()) row.parameters += parameter.elements;
        recorder.describe(row);
    }
    for (std::size_t u = 0; u < units.size(); ++u) {
        constexpr std::int64_t kFloat = sizeof(float);
        recorder.describe(traces::UnitRow{
            static_cast<int>(u), units[u].module, units[u].name, units[u].elements, units[u].padded_elements,
            units[u].shard_elements * kFloat, units[u].padded_elements * kFloat});
    }
    const MemoryPeak peak = program.predict_peak();
    for (int rank = 0; rank < program.job().run.ranks; ++rank) {
        for (int stream = 0; stream < kStreams; ++stream) {
            recorder.describe(
                traces::StreamRow{rank, stream, std::string(kStreamNames[static_cast<std::size_t>(stream)])});
        }
        traces::PredictionRow row;
        row.rank = rank;
        row.peak_bytes = peak.bytes;
        row.where = peak.where;
        for (std::size_t c = 0; c < traces::kMemoryCategories; ++c) row.at_peak[c] = peak.at_peak[c];
        recorder.describe(row);
    }
}

}  // namespace shardscope::trainer
