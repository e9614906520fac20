#include "trainer/executor/int8_weights.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <fmt/core.h>

#include "trainer/executor/run.h"
#include "trainer/kernels/int8_linear.h"

namespace shardscope::trainer::executor {

plan::HostView parameter_values(const sharding::Program& program, RankRunner& runner,
                                const plan::Arg& where) {
    const std::vector<sharding::OptimizerSlot>& slots = program.optimizer().slots();
    const auto slot = std::find_if(slots.begin(), slots.end(), [&](const sharding::OptimizerSlot& s) {
        return s.parameter.buffer == where.buffer;
    });
    if (slot == slots.end()) return runner.contents(where);
    const model::Parameter& parameter =
        *program.modules().parameters[static_cast<std::size_t>(slot->segments.front().parameter)];
    if (parameter.stored != plan::DType::int8) return runner.contents(where);
    const auto quantize = [&program, &runner, &parameter,
                           weight = slot->parameter](std::span<const std::byte> values) {
        plan::HostView to = runner.contents(weight), scales = runner.contents(program.scales(parameter));
        if (!kernels::quantize_rows(reinterpret_cast<const float*>(values.data()),
                                    reinterpret_cast<std::int8_t*>(to.bytes().data()),
                                    reinterpret_cast<float*>(scales.bytes().data()),
                                    static_cast<std::size_t>(parameter.rows),
                                    static_cast<std::size_t>(parameter.width))) {
            throw RunError(fmt::format(
                "{}: {} has a value that is not finite, which int8 does not have; load a checkpoint "
                "of an earlier step, or omit --weights",
                program.job().checkpoint.load, parameter.path));
        }
        to.commit();
        scales.commit();
    };
    return {std::vector<std::byte>(static_cast<std::size_t>(where.bytes)), quantize};
}

}  // namespace shardscope::trainer::executor
