#include "trainer/sharding/stage_costs.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>

#include "trainer/sharding/job_mesh.h"
#include "trainer/sharding/program.h"
#include "trainer/sharding/stages.h"

namespace shardscope::trainer::sharding {

namespace {

bool is_of_the_model(plan::Phase phase) {
    return phase == plan::Phase::forward || phase == plan::Phase::backward || phase == plan::Phase::recompute;
}

}  // namespace

std::vector<std::int64_t> flops_by_child(const plan::Plan& step, const model::ModuleTree& tree,
                                         const model::Module& layers) {
    std::map<int, std::size_t> child_of;  // by module
    for (std::size_t i = 0; i < layers.children().size(); ++i) child_of[layers.children()[i]->id] = i;
    std::vector<std::int64_t> flops(layers.children().size());
    for (const plan::Op& op : step.ops) {
        if (op.flops == 0 || !is_of_the_model(op.phase)) continue;
        int module = op.module;
        while (module >= 0 && !child_of.contains(module))
            module = tree.parents[static_cast<std::size_t>(module)];
        flops[module < 0 ? flops.size() - 1 : child_of[module]] += op.flops;
    }
    return flops;
}

std::vector<std::int64_t> flops_by_child(const job::Job& job) {
    job::Job micro_batch = on_one_tensor_group(job);
    micro_batch.train.accumulation = 1;
    const Program whole(micro_batch);
    return flops_by_child(whole.step(0), whole.modules(), *parent_of_layers(*whole.modules().root));
}

std::vector<std::size_t> divide_by_cost(const std::vector<std::int64_t>& costs, std::size_t stages) {
    const std::size_t layers = costs.size();
    std::vector<double> before(layers + 1);  // the sum of the layers before
    for (std::size_t i = 0; i < layers; ++i) before[i + 1] = before[i] + static_cast<double>(costs[i]);
    constexpr double kNever = std::numeric_limits<double>::infinity();
    // [s][n]: the best of the first n layers in s stages, by `join` of the stages before and the last one.
    std::vector<std::vector<std::size_t>> begin_of_last;
    const auto best = [&](const auto& join) {
        std::vector<double> fewer(layers + 1, kNever);
        fewer[0] = 0;
        begin_of_last.assign(stages, std::vector<std::size_t>(layers + 1));
        for (std::size_t s = 0; s < stages; ++s) {
            std::vector<double> now(layers + 1, kNever);
            for (std::size_t n = s + 1; n <= layers; ++n) {
                for (std::size_t begin = s; begin < n; ++begin) {
                    const double cost = join(fewer[begin], before[n] - before[begin]);
                    if (cost > now[n]) continue;
                    now[n] = cost;
                    begin_of_last[s][n] = begin;
                }
            }
            fewer = now;
        }
        return fewer[layers];
    };
    const double largest = best([](double a, double b) { return std::max(a, b); });
    best([&](double a, double b) { return b > largest ? kNever : a + b * b; });
    std::vector<std::size_t> division(stages);
    std::size_t end = layers;
    for (std::size_t s = stages; s-- > 0;) {
        division[s] = end - begin_of_last[s][end];
        end = begin_of_last[s][end];
    }
    return division;
}

}  // namespace shardscope::trainer::sharding
