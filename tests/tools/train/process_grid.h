// The jobs of the parity grid for ranks that are processes: one list for the program that runs them and for
// the test that compares them with threads.
#pragma once

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/parity_grid.h"

namespace shardscope::trainer::testing {

// The points of `every_pair` on `processes` ranks (2 or 4), as far as they are possible there.
inline std::vector<Point> pairs_on(int processes) {
    std::vector<Point> points;
    for (Point p : every_pair()) {
        p[ranks] = processes == 2 ? 1 : 2;
        if (!possible(p)) p[strategy] = 0;  // HYBRID_SHARD has groups of 2 on 4 ranks only
        if (std::find(points.begin(), points.end(), p) == points.end()) points.push_back(p);
    }
    return points;
}

// Every point of strategy, wrap, backward prefetch (PRE, NONE), limiter, offload, checkpointing, accumulation
// (1, 2) and model (mlp, gpt).
inline std::vector<Point> grid_on(int processes) {
    constexpr std::array<std::pair<Factor, int>, 8> kGrid = {{{strategy, 6},
                                                              {wrap, 3},
                                                              {backward, 2},
                                                              {limiter, 2},
                                                              {offload, 2},
                                                              {checkpointing, 2},
                                                              {accumulation, 2},
                                                              {model, 2}}};
    int all = 1;
    for (const auto& [factor, values] : kGrid) all *= values;
    std::vector<Point> points;
    for (int number = 0; number < all; ++number) {
        Point p{};
        p[optimizer] = 1;
        p[ranks] = processes == 2 ? 1 : 2;
        int rest = number;
        for (const auto& [factor, values] : kGrid) {
            p[factor] = rest % values;
            rest /= values;
        }
        if (possible(p)) points.push_back(p);
    }
    return points;
}

// DDP of an mlp and a gpt, with one micro-batch and, without synchronization, with two.
inline std::vector<Point> ddp_on(int processes) {
    std::vector<Point> points;
    for (const int own_model : {0, 1}) {
        for (const int micro_batches : {0, 2}) {
            Point p{};
            p[strategy] = 4;
            p[ranks] = processes == 2 ? 1 : 2;
            p[model] = own_model;
            p[accumulation] = micro_batches;
            points.push_back(p);
        }
    }
    return points;
}

// "pairs"; "ring" (every third pair, with sums along a ring); "grid"; "onebit_adam", "onebit_lamb";
// "local_steps"; "server".
inline std::vector<Point> points_called(const std::string& choice, int processes) {
    if (choice == "grid") return grid_on(processes);
    if (choice.starts_with("onebit") || choice == "local_steps" || choice == "server")
        return ddp_on(processes);
    const std::vector<Point> points = pairs_on(processes);
    if (choice == "pairs") return points;
    if (choice != "ring") throw std::invalid_argument("no points are called " + choice);
    std::vector<Point> some;
    for (std::size_t i = 0; i < points.size(); i += 3) some.push_back(points[i]);
    return some;
}

inline job::Job job_called(const std::string& choice, const Point& p, const SampleText& text) {
    job::Job job = job_at(p, text);
    if (choice.starts_with("onebit")) {
        job.optimizer.type =
            choice == "onebit_adam" ? job::OptimizerType::onebit_adam : job::OptimizerType::onebit_lamb;
        job.optimizer.momentum = 0;
        job.optimizer.lr = 1e-3;
        job.optimizer.freeze_step = 2;
    }
    if (choice == "server") job.parallel.mode = job::ParallelMode::server;
    if (choice == "local_steps") {
        job.train.local_steps = 2;
        job.train.outer_momentum = 0.5;
    }
    return job;
}

}  // namespace shardscope::trainer::testing
