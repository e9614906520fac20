#include "trainer/lift/host_engine.h"

#include <algorithm>
#include <cmath>

namespace shardscope::trainer::lift {

namespace {

// Measured with PyTorch 2.15 on two ranks, under its profiler, from units of 2 to 57 parameters. What the
// hooks around a collective cost, as a number of parameters that it moves.
constexpr double kParametersPerCall = 5;
// As numbers of overheads of small operators: a parameter in a collective, and the dispatch of an operator of
// DTensors.
constexpr double kOverheadsPerParameter = 25, kOverheadsPerDispatch = 15;

bool is_fsdp(const job::Job& job) {
    return job.parallel.mode == job::ParallelMode::fsdp;
}

bool has_distributed_tensors(const job::Job& job) {
    return is_fsdp(job) && job.fsdp.layout == job::FsdpLayout::fsdp2;
}

// What FSDP's work grows with: parameters that are gathered or reduced, and calls of collectives.
double shares_of(const sharding::Program& program) {
    if (!is_fsdp(program.job())) return 0;
    std::int64_t elements = 0;
    for (const sharding::UnitInfo& unit : program.units()) elements += unit.elements;
    double calls = 0, moved = 0;
    for (const plan::Op& op : program.step(program.warm_up_steps()).ops) {
        if (op.kind != plan::OpKind::collective || op.unit < 0) continue;
        ++calls;
        moved += static_cast<double>(program.units()[static_cast<std::size_t>(op.unit)].elements);
    }
    const auto parameters = static_cast<double>(program.modules().parameters.size());
    return kParametersPerCall * calls +
           moved / static_cast<double>(std::max<std::int64_t>(elements, 1)) * parameters;
}

}  // namespace

HostEngine::HostEngine(const sharding::Program& recorded, const EngineFigures& engine,
                       std::int64_t operator_ns) {
    const auto overhead = static_cast<double>(operator_ns), host = static_cast<double>(engine.host_ns);
    const double shares = shares_of(recorded);
    share_ns_ = shares > 0 ? host / shares : kOverheadsPerParameter * overhead;
    ddp_ns_ = shares > 0 ? 0 : host;
    plain_optimizer_ns_ = distributed_optimizer_ns_ = static_cast<double>(engine.optimizer_host_ns);
    const auto launches = static_cast<double>(engine.optimizer_launches);
    if (has_distributed_tensors(recorded.job())) {
        // The calls of tensors would cost no more than those of other operators.
        const double excess = static_cast<double>(engine.optimizer_calls_ns) - launches * overhead;
        plain_optimizer_ns_ -= std::clamp(excess, 0.0, plain_optimizer_ns_);
    } else {
        distributed_optimizer_ns_ += launches * kOverheadsPerDispatch * overhead;
    }
}

std::int64_t HostEngine::step_ns(const sharding::Program& program) const {
    const double optimizer =
        has_distributed_tensors(program.job()) ? distributed_optimizer_ns_ : plain_optimizer_ns_;
    return std::llround(optimizer + (is_fsdp(program.job()) ? shares_of(program) * share_ns_ : ddp_ns_));
}

}  // namespace shardscope::trainer::lift
