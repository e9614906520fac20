#include "trainer/sharding/replicated.h"

#include "trainer/kernels/random.h"

namespace shardscope::trainer {

void Parallelism::initialize(PlanBuilder& builder, const Parameter& parameter, const Arg& to,
                             std::int64_t first, std::int64_t per_rank) {
    const auto key = static_cast<std::int64_t>(kernels::stream_of(parameter.path));
    const Kernel kernel = parameter.init.kind == InitKind::normal    ? Kernel::init_normal
                          : parameter.init.kind == InitKind::uniform ? Kernel::init_uniform
                                                                     : Kernel::init_constant;
    Op& op = builder.kernel(kernel, "initialize", {to}, {key, first, parameter.elements, per_rank});
    op.scalars = {parameter.init.a, parameter.init.b};
}

Replicated::Replicated(const ModuleTree& tree, const OptimizerSection& optimizer)
    : Parallelism(optimizer), tree_(tree) {
    for (const Parameter* parameter : tree.parameters) {
        optimizer_.add_slot(persistent_, parameter->path, parameter->elements, -1,
                            tree.owners[static_cast<std::size_t>(parameter->id)]);
    }
}

void Replicated::setup(PlanBuilder& builder) {
    optimizer_.allocate_parameters(builder);
    for (const Parameter* parameter : tree_.parameters) {
        const OptimizerSlot& slot = optimizer_.slot(static_cast<std::size_t>(parameter->id));
        const PlanBuilder::Scope scope(builder, Phase::setup, slot.module, slot.unit);
        initialize(builder, *parameter, builder.whole(slot.parameter), 0, 0);
    }
}

Arg Replicated::parameter(const Parameter& parameter) {
    return builder().whole(optimizer_.slot(static_cast<std::size_t>(parameter.id)).parameter);
}

Tensor Replicated::new_gradient(const Parameter& parameter) {
    const BufferId gradient = optimizer_.slot(static_cast<std::size_t>(parameter.id)).gradient;
    builder().allocate(gradient, Stream::compute);
    return {nullptr, builder().whole(gradient), -1};
}

}  // namespace shardscope::trainer
