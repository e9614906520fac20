// The grid of options that must not change what a run computes, and a selection from it that contains every
// possible pair of values.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "plan_jobs.h"

namespace shardscope::trainer::testing {

enum Factor {
    strategy,
    wrap,
    backward,
    forward,
    limiter,
    offload,
    checkpointing,
    accumulation,
    layout,
    model,
    ranks,
    optimizer,
    clip,
    hook
};
inline constexpr std::size_t kFactors = 14;
// The number of values of each factor.
inline constexpr std::array<int, kFactors> kValues = {6, 3, 3, 2, 2, 2, 2, 3, 3, 4, 3, 3, 2, 5};
// Those of the hook. With all elements top-k sends what is reduced without a hook.
inline constexpr std::array kHooks = {"none", "bf16", "fp16", "powersgd:1", "topk:1"};
inline constexpr std::array<int, 3> kRanks = {1, 2, 4};

using Point = std::array<int, kFactors>;

inline bool is_fsdp(const Point& p) {
    return p[strategy] < 4;
}

// Whether the combination of values is possible; a value without effect must be 0.
inline bool possible(const Point& p) {
    if (p[strategy] == 3 && kRanks[static_cast<std::size_t>(p[ranks])] != 4) return false;  // groups of 2
    if (p[strategy] == 2 && (p[offload] != 0 || p[layout] != 0)) return false;              // NO_SHARD
    if (p[layout] == 1 && p[limiter] != 0) return false;  // fully_shard has no limiter
    if (is_fsdp(p) && p[hook] != 0) return false;
    if (p[hook] > 2 && p[accumulation] == 1) return false;  // a hook that keeps an error reduces once
    if (!is_fsdp(p)) {
        for (const Factor f : {wrap, backward, forward, limiter, offload, layout}) {
            if (p[f] != 0) return false;
        }
    }
    return true;
}

inline std::string describe(const Point& p) {
    static constexpr const char* kNames[] = {
        "strategy",     "wrap",   "backward", "forward", "limiter",   "offload", "checkpointing",
        "accumulation", "layout", "model",    "ranks",   "optimizer", "clip",    "hook"};
    std::string text;
    for (std::size_t f = 0; f < kFactors; ++f)
        text += std::string(f ? " " : "") + kNames[f] + "=" + std::to_string(p[f]);
    return text;
}

// The factors that determine the numbers: model, ranks, optimizer and clipping, and the number of
// micro-batches of a step.
inline job::Job base_job(const Point& p, const SampleText& text) {
    const int n = kRanks[static_cast<std::size_t>(p[ranks])];
    job::Job job = p[model] == 0 ? mlp_job(3, 12, 2, n) : gpt_job(text, 1, n);
    if (p[model] != 0) {
        job.model.width = 16;
        job.model.context = 8;
        job.model.tied_embeddings = p[model] == 1;
    }
    if (p[model] == 2) {
        job.model.type = job::ModelType::llama;
        job.model.kv_heads = 1;
    }
    if (p[model] == 3) job.model.type = job::ModelType::bert;
    job.optimizer = {};
    job.optimizer.lr = p[model] == 0 ? 0.05 : 0.01;
    job.optimizer.type = std::array{job::OptimizerType::sgd, job::OptimizerType::adamw,
                                    job::OptimizerType::lamb}[static_cast<std::size_t>(p[optimizer])];
    if (p[optimizer] == 0) job.optimizer.momentum = 0.9;
    job.train.clip_norm = p[clip] != 0 ? 0.5 : 0;
    job.train.accumulation = p[accumulation] == 0 ? 1 : 2;
    job.train.accumulation_sync = p[accumulation] != 2;
    return job;
}

// One rank that computes the micro-batches of all ranks in turn.
inline job::Job reference_job(const Point& p, const SampleText& text) {
    job::Job job = base_job(p, text);
    job.train.accumulation *= job.run.ranks;
    job.train.accumulation_sync = true;
    job.run.ranks = 1;
    return with_mode(job, job::ParallelMode::none);
}

inline job::Job job_at(const Point& p, const SampleText& text) {
    job::Job job = base_job(p, text);
    const std::string block =
        std::array{"Linear", "Block", "LlamaBlock", "BertLayer"}[static_cast<std::size_t>(p[model])];
    if (p[checkpointing] != 0) job.memory.activation_checkpointing.names = {block};
    if (!is_fsdp(p)) {
        job.ddp.shard_optimizer = p[strategy] == 5;
        job.ddp.first_bucket_mb = job.ddp.bucket_cap_mb = 0.002;
        job.ddp.comm_hook = job::parse_comm_hook(kHooks[static_cast<std::size_t>(p[hook])]);
        return with_mode(job, job::ParallelMode::ddp);
    }
    job = with_wrap(job, std::array{std::string("root"), "module:" + block,
                                    std::string("size:200")}[static_cast<std::size_t>(p[wrap])]);
    job.fsdp.sharding_strategy =
        std::array{job::ShardingStrategy::full_shard, job::ShardingStrategy::shard_grad_op,
                   job::ShardingStrategy::no_shard,
                   job::ShardingStrategy::hybrid_shard}[static_cast<std::size_t>(p[strategy])];
    job.fsdp.shard_group = p[strategy] == 3 ? 2 : 0;
    job.fsdp.backward_prefetch =
        std::array{job::BackwardPrefetch::pre, job::BackwardPrefetch::none,
                   job::BackwardPrefetch::post}[static_cast<std::size_t>(p[backward])];
    job.fsdp.forward_prefetch = p[forward] != 0;
    job.fsdp.limit_all_gathers = p[limiter] == 0;
    job.fsdp.cpu_offload = p[offload] != 0;
    job.fsdp.layout = std::array{job::FsdpLayout::fsdp1, job::FsdpLayout::fsdp2,
                                 job::FsdpLayout::lean}[static_cast<std::size_t>(p[layout])];
    return job;
}

// Whether what is summed is compressed.
inline bool compresses(const Point& p) {
    return p[hook] > 0 && p[hook] < 4;
}

// Whether the bits equal the reference's; otherwise the sums over ranks or micro-batches are in another
// order.
inline bool same_bits(const Point& p) {
    return p[accumulation] == 0 && p[strategy] != 3 && !compresses(p);
}

using Pair = std::tuple<int, int, int, int>;  // factor, value, factor, value

inline void for_each_pair(const Point& p, const auto& visit) {
    for (int f = 0; f < static_cast<int>(kFactors); ++f) {
        for (int g = f + 1; g < static_cast<int>(kFactors); ++g)
            visit(Pair{f, p[static_cast<std::size_t>(f)], g, p[static_cast<std::size_t>(g)]});
    }
}

// Points drawn at random, each the one of many candidates that adds the most pairs which no earlier point
// has, until a long search adds none. The random numbers are fixed, so the points are, too.
inline std::vector<Point> every_pair() {
    std::uint64_t state = 1;
    const auto draw = [&](int values) {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        return static_cast<int>((state >> 33) % static_cast<std::uint64_t>(values));
    };
    std::bitset<kFactors * kFactors * 64> seen;  // a search tests it a million times
    const auto place = [](const Pair& pair) {
        const auto [f, value_f, g, value_g] = pair;
        return ((static_cast<std::size_t>(f) * kFactors + static_cast<std::size_t>(g)) * 8 +
                static_cast<std::size_t>(value_f)) *
                   8 +
               static_cast<std::size_t>(value_g);
    };
    std::vector<Point> points;
    for (int barren = 0; barren < 150;) {
        Point best{};
        int gain = 0;
        for (int attempt = 0; attempt < 400; ++attempt) {
            Point p;
            for (std::size_t f = 0; f < kFactors; ++f) p[f] = draw(kValues[f]);
            if (!possible(p)) continue;
            int fresh = 0;
            for_each_pair(p, [&](const Pair& pair) { fresh += !seen[place(pair)]; });
            if (fresh <= gain) continue;
            gain = fresh;
            best = p;
        }
        if (gain == 0) {
            ++barren;
            continue;
        }
        barren = 0;
        points.push_back(best);
        for_each_pair(best, [&](const Pair& pair) { seen.set(place(pair)); });
    }
    return points;
}

}  // namespace shardscope::trainer::testing
