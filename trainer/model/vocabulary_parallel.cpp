#include "trainer/model/vocabulary_parallel.h"

#include <utility>

#include "trainer/kernels/cost.h"
#include "trainer/model/gpt.h"
#include "trainer/model/tensor_parallel.h"

namespace shardscope::trainer::model {

std::int64_t vocabulary_share(std::int64_t vocabulary, int ranks) {
    return (vocabulary + ranks - 1) / ranks;
}

LocalTokens local_tokens(Graph& graph, const plan::Tensor& tokens, std::int64_t entries, bool inside) {
    const std::int64_t n = tokens.bytes() / size_of(plan::DType::int32);
    const auto new_tokens = [&](const char* name) {
        return graph.builder.new_tensor(name, plan::MemoryCategory::activations, n, plan::DType::int32);
    };
    LocalTokens made;
    made.local = new_tokens("tokens (local)");
    if (inside) made.inside = new_tokens("tokens (inside)");
    graph.kernel(plan::Kernel::local_tokens, "local_tokens", {made.local, made.inside, tokens}, {n, entries});
    return made;
}

void zero_other_rows(Graph& graph, const plan::Tensor& y, const plan::Tensor& local, std::int64_t width,
                     std::int64_t entries) {
    graph.kernel(plan::Kernel::zero_rows, "masked_fill", {y, local}, {y.elements() / width, width, entries});
}

plan::Tensor vocabulary_parallel_loss(Graph& graph, const plan::Tensor& logits, const plan::Tensor& targets,
                                      std::int64_t vocabulary, std::int64_t counted) {
    const std::int64_t rows = targets.bytes() / size_of(plan::DType::int32);
    const std::int64_t classes = logits.elements() / rows, n = rows * classes;
    plan::Tensor loss = graph.builder.new_tensor("loss", plan::MemoryCategory::other, 1, plan::DType::fp64);
    plan::Tensor probabilities = graph.activation("probabilities", n, plan::DType::fp32);
    plan::Tensor local;
    {
        const plan::PlanBuilder::Range range(graph.builder, "aten::cross_entropy_loss");
        const auto per_row = [&](const char* name) {
            return graph.activation(name, rows, plan::DType::fp32);
        };
        const auto kernel = [&](plan::Kernel of, const char* name, std::vector<plan::Arg> args,
                                std::int64_t last, std::int64_t flops) {
            graph.kernel(of, name, std::move(args), {rows, classes, last}, flops).kernel().dtype =
                plan::DType::fp32;
        };
        local = local_tokens(graph, targets, classes, false).local;
        const plan::Tensor largest = per_row("largest logits");
        kernel(plan::Kernel::largest_logit, "amax", {largest, logits}, vocabulary, n);
        reduce_over_group(graph, largest, plan::Reduction::max);
        const plan::Tensor sums = per_row("sums of exponentials"), target_logits = per_row("target logits");
        kernel(plan::Kernel::exp_logits, "exp_sum",
               {probabilities, sums, target_logits, logits, largest, local}, vocabulary,
               kernels::cross_entropy_forward_cost(rows, classes).flops);
        reduce_over_group(graph, sums);
        reduce_over_group(graph, target_logits);
        kernel(plan::Kernel::vocabulary_loss, "nll_loss", {loss, probabilities, sums, target_logits, local},
               counted, n);
    }
    if (graph.tape.recording() && logits.value >= 0)
        record_cross_entropy_backward(graph, logits, probabilities, local, counted);
    return loss;
}

}  // namespace shardscope::trainer::model
