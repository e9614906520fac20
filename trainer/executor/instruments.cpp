#include "trainer/executor/instruments.h"

#include <utility>

#include "trainer/executor/nccl_payloads.h"
#include "trainer/executor/program_rows.h"

namespace shardscope::trainer::executor {

Instruments::Instruments(profiler::Recorder& recorder, const sharding::Program& program, const char* engine,
                         const std::vector<const plan::Plan*>& more)
    : recorder_(recorder) {
    using namespace trace_names;
    for (std::size_t i = 0; i < calls.size(); ++i)
        calls[i] = recorder.name(trace_names::kRuntimeFunctionNames[i]);
    for (std::size_t i = 0; i < traces::schema::kOperations; ++i) {
        const auto operation = static_cast<traces::schema::Operation>(i);
        collective_kernel[i] = recorder.name(trace_names::collective_kernel(operation, engine));
        collective_call[i] = recorder.name(trace_names::collective_call(operation));
    }
    nccl_domain = recorder.name(trace_names::kNcclDomain);
    active_bytes = recorder.name(trace_names::kActiveBytes);
    reserved_bytes = recorder.name(trace_names::kReservedBytes);
    device_bytes = recorder.name(trace_names::kDeviceBytes);
    for (int role = 0; role < program.roles(); ++role)
        for (const plan::Plan* plan : program.role(role).plans()) add(*plan);
    for (const plan::Plan* plan : more) add(*plan);
}

void Instruments::add(const plan::Plan& plan) {
    PlanNames& names = plans_[&plan];
    for (const std::string& name : plan.names) names.names.push_back(recorder_.name(name));
    for (const plan::Buffer& buffer : plan.buffers) names.buffers.push_back(recorder_.name(buffer.name));
}

void describe_program(profiler::Recorder& recorder, const sharding::Program& program,
                      const std::vector<int>& ranks) {
    const auto add = [&](auto row) { recorder.describe(std::move(row)); };
    add_configuration_rows(program, add);
    recorder.describe_with([](traces::store::EventSink& sink) {
        describe_nccl_payloads(sink, sink.intern(trace_names::kNcclDomain));
    });
    add_group_rows(program.mesh(), ranks, add);
    add_module_rows(program, add);
    add_unit_rows(program, add);
    const std::vector<sharding::MemoryPrediction> predictions = program.predict_roles();
    for (const int rank : ranks) {
        add_stream_rows(program.mesh(), rank, add);
        add_schedule_rows(program, rank, add);
        add_prediction_rows(predictions[static_cast<std::size_t>(program.role_of(rank))], rank, add);
    }
}

}  // namespace shardscope::trainer::executor
