#include "trainer/executor/generation_run.h"

#include <algorithm>
#include <stdexcept>

#include "profiler/recorder/recorder.h"
#include "trainer/executor/instruments.h"
#include "trainer/executor/ranks.h"

namespace shardscope::trainer::executor {

namespace {

const plan::Plan& plan_of(const sharding::Program& program, Forward forward) {
    const plan::Plan* plan = forward == Forward::whole     ? program.evaluation()
                             : forward == Forward::prefill ? program.prefill()
                                                           : program.decode();
    if (!plan) throw std::logic_error("the Program was not made for this forward");
    return *plan;
}

// The numbers that the Plan's host call next_batch writes: tokens, and then positions with one more for each
// text.
std::size_t numbers(const plan::Plan& plan, std::size_t arg) {
    const auto call = std::find_if(plan.ops.begin(), plan.ops.end(), [](const plan::Op& op) {
        return op.kind == plan::OpKind::host_call && op.call() == plan::HostCall::next_batch;
    });
    return static_cast<std::size_t>(call->args[arg].bytes) / sizeof(std::int32_t);
}

}  // namespace

void run_generation(const sharding::Program& program, Forward first, const GenerationCalls& calls,
                    profiler::Recorder* recorder) {
    std::optional<Forward> next = first;
    HostCalls targets;
    targets.next_batch = [&](void* tokens, void* places) {
        const plan::Plan& plan = plan_of(program, *next);
        const std::size_t rows = numbers(plan, 0), all = numbers(plan, 1);
        auto* const position = static_cast<std::int32_t*>(places);
        calls.write(
            *next,
            {{static_cast<std::int32_t*>(tokens), rows}, {position, rows}, {position + rows, all - rows}});
    };
    targets.read_logits = [&](std::span<const float> logits) { next = calls.read(*next, logits); };
    RanksOptions options;
    options.recorder = recorder;
    Ranks ranks(program, options, [&](int) { return targets; });
    if (recorder) describe_program(*recorder, program, ranks.here());
    ranks.run([&](int rank, RankRunner& runner) {
        runner.run(program.setup(), 0);
        runner.drain();
        if (calls.after_setup) calls.after_setup(rank, runner);
        for (std::int64_t step = 0; next; ++step) {
            const profiler::Ticks since = runner.trace().now();
            runner.run(plan_of(program, *next), step);
            runner.trace().step(step, since);
        }
        runner.drain();
    });
}

}  // namespace shardscope::trainer::executor
