// How close a training step comes to its matmuls alone, and how much communication overlaps them. Each figure
// is taken in rounds that alternate what is compared.
//
//   bench_step gpt       a step of a GPT on one rank against its matmuls alone           (CPU time)
//   bench_step bf16      the same step in bf16 against fp32                              (CPU time)
//   bench_step overlap   gathers that start while gradients are computed; exposed communication under a delay
//   bench_step gpt-step | resnet50-step | mlp-step | core | convolutions
//                        one number, or words, for scripts/bench_trainer.sh
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <map>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "trace_testing.h"
#include "traces/analysis/time/summary.h"
#include "trainer/kernels/blas.h"
#include "trainer/kernels/convolution.h"

namespace shardscope::trainer {
namespace {

constexpr int kRounds = 5;

double seconds(clockid_t clock) {
    timespec now{};
    clock_gettime(clock, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

job::Job gpt_of_the_issue(const testing::SampleText& text) {
    job::Job job = testing::with_mode(testing::gpt_job(text, 8, 1), job::ParallelMode::none);
    job.model.layers = 6;
    job.model.width = 384;
    job.model.heads = 6;
    job.model.context = 256;
    job.run.workers = 1;
    return job;
}

job::Job mlp_of_the_issue() {
    job::Job job = testing::with_wrap(testing::mlp_job(8, 1024, 128, 2), "module:Linear");
    job.run.steps = 24;
    return job;
}

// Seconds per step on `clock`, without the first two steps and the last, whose loss is reported sooner than
// the others' (no further step delays its host).
double step_seconds(job::Job job, int steps, clockid_t clock) {
    job.run.steps = steps + 3;
    double from = 0, to = 0;
    executor::RunOptions options;
    options.on_step = [&](const executor::StepReport& report) {
        if (report.step == 1) from = seconds(clock);
        if (report.step == 1 + steps) to = seconds(clock);
    };
    testing::run(job, options);
    return (to - from) / steps;
}

// The matmuls of a step, as the BLAS is called for them; half of an attention's are masked.
struct Product {
    bool transpose_a, transpose_b;
    int m, n, k;
    std::int64_t times;
    double share;  // the share of its flops that counts
    double flops() const { return 2.0 * m * n * k * static_cast<double>(times) * share; }
};

std::vector<Product> products_of(const plan::Plan& plan) {
    std::vector<Product> products;
    for (const plan::Op& op : plan.ops) {
        if (op.kind != plan::OpKind::kernel) continue;
        const auto d = [&](std::size_t i) { return static_cast<int>(op.kernel().dims[i]); };
        switch (op.kernel().kernel) {
            case plan::Kernel::linear_forward:
            case plan::Kernel::linear_relu_forward:
            case plan::Kernel::linear_gelu_forward:
                products.push_back({false, true, d(0), d(2), d(1), 1, 1});
                break;
            case plan::Kernel::linear_backward_input:
                products.push_back({false, false, d(0), d(1), d(2), 1, 1});
                break;
            case plan::Kernel::linear_backward_weight:
                products.push_back({true, false, d(2), d(1), d(0), 1, 1});
                break;
            case plan::Kernel::attention_forward:
            case plan::Kernel::attention_backward: {
                const int head = d(3) / d(2);
                const std::int64_t heads = op.kernel().dims[0] * op.kernel().dims[2];
                const int pairs = op.kernel().kernel == plan::Kernel::attention_forward ? 1 : 2;
                products.push_back({false, true, d(1), d(1), head, heads * pairs, 0.5});
                products.push_back({false, false, d(1), head, d(1), heads * pairs, 0.5});
                break;
            }
            default:
                break;
        }
    }
    return products;
}

double seconds_alone(const std::vector<Product>& products, const float* a, const float* b, float* c) {
    const kernels::Blas& blas = kernels::Blas::get();
    double total = 0;
    for (const Product& p : products) {
        const double start = seconds(CLOCK_PROCESS_CPUTIME_ID);
        for (std::int64_t i = 0; i < p.times; ++i)
            blas.sgemm(p.transpose_a, p.transpose_b, p.m, p.n, p.k, 1, a, p.transpose_a ? p.m : p.k, b,
                       p.transpose_b ? p.k : p.n, 0, c, p.n);
        total += (seconds(CLOCK_PROCESS_CPUTIME_ID) - start) * p.share;
    }
    return total;
}

void bench_gpt() {
    const testing::SampleText text;
    const job::Job job = gpt_of_the_issue(text);
    kernels::Blas::get().set_threads(1);
    const sharding::Program program(job);
    const std::vector<Product> products = products_of(testing::steady(program));
    std::size_t largest = 0;
    double flops = 0;
    for (const Product& p : products) {
        for (const std::int64_t size :
             {std::int64_t{p.m} * p.k, std::int64_t{p.k} * p.n, std::int64_t{p.m} * p.n})
            largest = std::max(largest, static_cast<std::size_t>(size));
        flops += p.flops();
    }
    const std::vector<float> a(largest, 0.5F), b(largest, 0.25F);
    std::vector<float> c(largest);
    seconds_alone(products, a.data(), b.data(), c.data());
    std::vector<double> ratios, alone, step;
    for (int round = 0; round < kRounds; ++round) {
        alone.push_back(seconds_alone(products, a.data(), b.data(), c.data()));
        step.push_back(step_seconds(job, 4, CLOCK_PROCESS_CPUTIME_ID));
        ratios.push_back(alone.back() / step.back());
    }
    fmt::print("GPT 6 x 384, context 256, batch 8, fp32, one rank on one worker, CPU time of a step\n");
    fmt::print("{:<44} {:>8.1f} ms {:>8.1f} GFLOP/s\n", "products alone (masked attention as half)",
               1e3 * median(alone), flops / median(alone) / 1e9);
    fmt::print("{:<44} {:>8.1f} ms {:>8.1f} GFLOP/s\n", "the whole step", 1e3 * median(step),
               flops / median(step) / 1e9);
    fmt::print("{:<44} {:>8.2f}\n", "share of the rate (goal: 0.80)", median(ratios));
}

void bench_bf16() {
    const testing::SampleText text;
    job::Job wide = testing::with_wrap(gpt_of_the_issue(text), "module:Block");
    job::Job narrow = wide;
    narrow.precision.param = narrow.precision.reduce = job::Precision::bf16;
    std::vector<double> ratios, fp32, bf16;
    for (int round = 0; round < kRounds; ++round) {
        fp32.push_back(step_seconds(wide, 3, CLOCK_PROCESS_CPUTIME_ID));
        bf16.push_back(step_seconds(narrow, 3, CLOCK_PROCESS_CPUTIME_ID));
        ratios.push_back(bf16.back() / fp32.back());
    }
    fmt::print("The same GPT under FSDP on one rank, CPU time of a step\n");
    fmt::print("{:<40} {:>10.1f} ms\n{:<40} {:>10.1f} ms\n", "fp32", 1e3 * median(fp32), "bf16 parameters",
               1e3 * median(bf16));
    fmt::print("{:<40} {:>10.2f}\n", "bf16 / fp32 (goal: below 1)", median(ratios));
}

// One round for scripts/bench_trainer.sh, which alternates it with another program: milliseconds of a step.
void bench_gpt_step() {
    const testing::SampleText text;
    fmt::print("{:.3f}\n", 1e3 * step_seconds(gpt_of_the_issue(text), 4, CLOCK_PROCESS_CPUTIME_ID));
}

void bench_resnet50_step() {
    const job::Job job = job::parse_job(
        "[run]\nworkers = 1\n[model]\nname = 'resnet50'\n[data]\ntype = 'images'\nbatch = 16\n"
        "[parallel]\nmode = 'none'\n[optimizer]\ntype = 'sgd'\n",
        "job.toml");
    fmt::print("{:.3f}\n", 1e3 * step_seconds(job, 3, CLOCK_PROCESS_CPUTIME_ID));
}

void bench_mlp_step() {
    double fastest = 1e9;
    for (int i = 0; i < 4; ++i)
        fastest = std::min(
            fastest,
            step_seconds(testing::with_mode(mlp_of_the_issue(), job::ParallelMode::ddp), 5, CLOCK_MONOTONIC));
    fmt::print("{:.3f}\n", 1e3 * fastest);
}

// The share of the backward's gathers, except the first, that start before the gradients of the previous unit
// are complete. These are complete when the copy that joins them starts; units end in the order U-1 … 0, and
// so do the joins.
double early_gathers(const traces::store::Trace& trace) {
    const auto join = trace.strings.find("cat_array_batched_copy");
    int early = 0, all = 0;
    for (const traces::store::Step& step : trace.steps) {
        if (step.number < 3) continue;  // warm-up
        std::map<int, std::int64_t> gather;
        std::vector<std::int64_t> joins;
        for (std::size_t e = 0; e < trace.device.size(); ++e) {
            if (trace.device.rank[e] != step.rank.column() || trace.device.launch[e] < 0) continue;
            const auto launch = static_cast<std::size_t>(trace.device.launch[e]);
            if (trace.runtime.start[launch] < step.start || trace.runtime.start[launch] >= step.end) continue;
            if (join && trace.device.name[e] == *join) joins.push_back(trace.device.start[e]);
            if (trace.device.collective[e] < 0) continue;
            const auto c = static_cast<std::size_t>(trace.device.collective[e]);
            if (trace.collectives.operation[c] == plan::Operation::all_gather &&
                trace.collectives.phase[c] == plan::Phase::backward)
                gather[trace.collectives.unit[c]] = trace.device.start[e];
        }
        const int units = static_cast<int>(joins.size());
        for (int i = units - 1; i > 0; --i) {
            ++all;
            early += gather[i - 1] < joins[static_cast<std::size_t>(units - 1 - i)];
        }
    }
    return all > 0 ? static_cast<double>(early) / all : 0;
}

double exposed_us(const traces::store::Trace& trace) {
    double sum = 0;
    const traces::analysis::ExecutionSummary summary = traces::analysis::summarize(trace);
    for (const traces::analysis::RankSummary& rank : summary.ranks)
        sum += rank.average_us[static_cast<std::size_t>(traces::analysis::TimeCategory::communication)];
    return sum / static_cast<double>(summary.ranks.size());
}

void bench_overlap() {
    job::Job pre = mlp_of_the_issue();
    job::Job none = pre;
    none.fsdp.backward_prefetch = job::BackwardPrefetch::none;
    std::vector<double> early_pre, early_none, ratio, exposed_pre, exposed_none;
    executor::RunOptions slow;
    slow.test.transfer_delay_us = 2000;
    for (int round = 0; round < kRounds; ++round) {
        early_pre.push_back(early_gathers(*testing::record(pre)));
        early_none.push_back(early_gathers(*testing::record(none)));
        exposed_pre.push_back(exposed_us(*testing::record(pre, slow)));
        exposed_none.push_back(exposed_us(*testing::record(none, slow)));
        ratio.push_back(exposed_none.back() / exposed_pre.back());
    }
    fmt::print("MLP 8 x 1024, batch 128, 2 ranks on 2 workers, one unit per Linear\n");
    fmt::print("{:<58} {:>12} {:>8}\n", "", "BACKWARD_PRE", "NONE");
    fmt::print("{:<58} {:>11.0f}% {:>7.0f}%\n", "gathers that start before the gradients in front end",
               100 * median(early_pre), 100 * median(early_none));
    fmt::print("{:<58} {:>9.1f} ms {:>5.1f} ms\n",
               "exposed communication of a step, 2 ms added to a transfer", median(exposed_pre) / 1e3,
               median(exposed_none) / 1e3);
    fmt::print("{:<58} {:>12.2f}\n", "NONE / BACKWARD_PRE (goal: 1.5)", median(ratio));
}

}  // namespace
}  // namespace shardscope::trainer

int main(int argc, char** argv) {
    using namespace shardscope::trainer;
    const std::string what = argc > 1 ? argv[1] : "";
    if (what == "gpt") {
        bench_gpt();
    } else if (what == "bf16") {
        bench_bf16();
    } else if (what == "gpt-step") {
        bench_gpt_step();
    } else if (what == "resnet50-step") {
        bench_resnet50_step();
    } else if (what == "mlp-step") {
        bench_mlp_step();
    } else if (what == "core") {
        fmt::print("{}\n", kernels::Blas::get().core());
    } else if (what == "convolutions") {
        fmt::print("{}\n", kernels::convolution_method());
    } else if (what == "overlap") {
        bench_overlap();
    } else {
        std::fputs("usage: bench_step gpt|bf16|overlap|gpt-step|resnet50-step|mlp-step|core|convolutions\n",
                   stderr);
        return 2;
    }
    return 0;
}
