#include "trainer/lift/host_engine.h"

#include <algorithm>
#include <cmath>

namespace shardscope::trainer::lift {

namespace {

// Measured with PyTorch 2.15 on two ranks, under its profiler, from units of 2 to 57 parameters. What the
// hooks around a collective cost, as a number of parameters that FSDP moves: of FSDP, and of a bucket of DDP.
constexpr double kParametersPerCall = 20, kParametersPerBucket = 6;
// A gradient that DDP puts into its bucket.
constexpr double kShareOfGradient = 0.6;
// What is left of these costs on one rank, which requests no collective and waits for none.
constexpr double kAlone = 0.5;
// A parameter that FSDP moves took 30 to 50 us (here ns) of any model under any wrap. A run of DDP shows too
// little of it to be followed alone: this counts as much as so many recorded ones.
constexpr double kTypicalShare = 45e3, kSharesOfTypical = 40;
// The dispatch of an operator of DTensors, as a number of overheads of small operators.
constexpr double kOverheadsPerDispatch = 8;
// The part of the latter that operators of small DTensors do not show.
constexpr std::int64_t kUnseenPerDispatch = 3;

bool is_fsdp(const job::Job& job) {
    return job.parallel.mode == job::ParallelMode::fsdp;
}

bool has_distributed_tensors(const job::Job& job) {
    return is_fsdp(job) && job.fsdp.layout == job::FsdpLayout::fsdp2;
}

// What the work of FSDP and DDP grows with: parameters that are moved, and calls of collectives.
double shares_of(const sharding::Program& program) {
    const bool fsdp = is_fsdp(program.job());
    std::int64_t elements = 0;
    for (const sharding::UnitInfo& unit : program.units()) elements += unit.elements;
    double calls = 0, moved = 0;
    for (const plan::Op& op : program.step(program.warm_up_steps()).ops) {
        if (op.kind != plan::OpKind::collective) continue;
        if (fsdp && op.unit >= 0)
            moved += static_cast<double>(program.units()[static_cast<std::size_t>(op.unit)].elements);
        calls += !fsdp || op.unit >= 0;
    }
    const auto parameters = static_cast<double>(program.modules().parameters.size());
    const double shares =
        fsdp ? kParametersPerCall * calls +
                   moved / static_cast<double>(std::max<std::int64_t>(elements, 1)) * parameters
             : kParametersPerBucket * calls + kShareOfGradient * parameters;
    return program.job().run.ranks > 1 ? shares : kAlone * shares;
}

}  // namespace

EngineFigures with_dispatch_on_host(EngineFigures engine, const job::Job& job, std::int64_t operator_ns) {
    if (!has_distributed_tensors(job)) return engine;
    const std::int64_t unseen =
        std::min(kUnseenPerDispatch * operator_ns * engine.optimizer_launches, engine.optimizer_ns / 2);
    engine.optimizer_ns -= unseen;
    engine.optimizer_host_ns += unseen;
    engine.optimizer_calls_ns += unseen;
    return engine;
}

HostEngine::HostEngine(const sharding::Program& recorded, const EngineFigures& engine,
                       std::int64_t operator_ns) {
    const auto overhead = static_cast<double>(operator_ns);
    own_ns_ = static_cast<double>(engine.host_ns);
    shares_ = shares_of(recorded);
    const double assumed = is_fsdp(recorded.job()) ? 0 : kSharesOfTypical;
    share_ns_ = (own_ns_ + assumed * kTypicalShare) / std::max(shares_ + assumed, 1.0);
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
    return std::llround(optimizer + std::max(0.0, own_ns_ + (shares_of(program) - shares_) * share_ns_));
}

}  // namespace shardscope::trainer::lift
