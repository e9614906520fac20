#include "trainer/lift/host_engine.h"

#include <algorithm>

namespace shardscope::trainer::lift {

namespace {

// Measured with PyTorch 2.15 on two ranks, under its profiler, from units of 2 to 57 parameters: what a
// collective's hooks cost beside the handling of its parameters, as a number of parameters, and what a
// parameter costs, as a number of overheads of small operators.
struct Typical {
    double parameters_per_call = 0, overheads_per_parameter = 0;
};
constexpr Typical kFullyShard{5, 25}, kFlatParameters{33, 10};

const Typical& typical(FsdpLayout layout) {
    return layout == FsdpLayout::fsdp2 ? kFullyShard : kFlatParameters;
}

}  // namespace

double HostEngine::shares_of(const Program& program) const {
    if (program.job().parallel.mode != ParallelMode::fsdp) return 0;
    std::int64_t elements = 0;
    for (const UnitInfo& unit : program.units()) elements += unit.elements;
    const auto parameters = static_cast<double>(program.modules().parameters.size());
    double calls = 0, moved = 0;
    for (const Op& op : program.step(program.warm_up_steps()).ops) {
        if (op.kind != OpKind::collective || op.unit < 0) continue;
        ++calls;
        moved += static_cast<double>(program.units()[static_cast<std::size_t>(op.unit)].elements);
    }
    return typical(program.job().fsdp.layout).parameters_per_call * calls +
           moved / static_cast<double>(std::max<std::int64_t>(elements, 1)) * parameters;
}

HostEngine::HostEngine(const Program& recorded, std::int64_t host_ns, std::int64_t operator_ns) {
    const double shares = shares_of(recorded);
    for (const FsdpLayout layout : {FsdpLayout::fsdp1, FsdpLayout::fsdp2})
        share_ns_[layout == FsdpLayout::fsdp2] =
            typical(layout).overheads_per_parameter * static_cast<double>(operator_ns);
    if (shares == 0) {
        ddp_ = true;
        other_ns_ = static_cast<double>(host_ns);
        return;
    }
    // The layout that was not recorded costs more or less in the typical proportion.
    const FsdpLayout own = recorded.job().fsdp.layout;
    const double scale = static_cast<double>(host_ns) / shares / share_ns_[own == FsdpLayout::fsdp2];
    for (double& each : share_ns_) each *= scale;
}

std::int64_t HostEngine::step_ns(const Program& program) const {
    if (program.job().parallel.mode != ParallelMode::fsdp)
        return ddp_ ? static_cast<std::int64_t>(other_ns_) : 0;
    return static_cast<std::int64_t>(shares_of(program) *
                                     share_ns_[program.job().fsdp.layout == FsdpLayout::fsdp2]);
}

}  // namespace shardscope::trainer::lift
