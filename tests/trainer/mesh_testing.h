// Compares the losses and the gradients of runs whose ranks divide the work in different ways.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "jobs.h"
#include "trainer/executor/rank_runner.h"
#include "trainer/model/tensor_parallel.h"

namespace shardscope::trainer::testing {

inline void expect_close(const std::vector<double>& losses, const std::vector<double>& expected,
                         const std::string& what) {
    ASSERT_FALSE(expected.empty()) << what;
    ASSERT_EQ(losses.size(), expected.size()) << what;
    for (std::size_t i = 0; i < losses.size(); ++i)
        EXPECT_NEAR(losses[i] / expected[i], 1.0, 1e-6) << what << ", step " << i;
}

// Whole gradients by the parameter's path.
using Gradients = std::map<std::string, std::vector<float>>;

inline double norm_of(const std::vector<float>& values, const std::vector<float>& minus = {}) {
    double sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const double value = double{values[i]} - (minus.empty() ? 0.0 : double{minus[i]});
        sum += value * value;
    }
    return std::sqrt(sum);
}

inline void expect_close(const Gradients& found, const Gradients& expected, const std::string& what) {
    ASSERT_FALSE(expected.empty()) << what;
    ASSERT_EQ(found.size(), expected.size()) << what;
    for (const auto& [path, gradient] : expected) {
        ASSERT_TRUE(found.contains(path)) << what << ", " << path;
        ASSERT_EQ(found.at(path).size(), gradient.size()) << what << ", " << path;
        EXPECT_GT(norm_of(gradient), 0) << what << ", " << path;
        EXPECT_LE(norm_of(found.at(path), gradient), 1e-6 * norm_of(gradient)) << what << ", " << path;
    }
}

// The gradients of the first step, joined from the parts of all ranks. Ranks that have the same element must
// have the same value.
inline Gradients gradients_of(job::Job job) {
    job.run.steps = 1;
    job.train.clip_norm = 0;
    const sharding::Program program(job);
    const plan::Mesh& mesh = program.mesh();
    const data::DataSource data = data::open_data(job);
    std::mutex lock;
    Gradients all;
    executor::RunOptions options;
    options.hooks.at_step_end = [&](int rank, std::int64_t, executor::RankRunner& runner) {
        const std::lock_guard guard(lock);
        for (const sharding::OptimizerSlot& slot : program.of(rank).optimizer().slots()) {
            const std::int64_t begin = mesh.place(slot.along, rank) * slot.per_rank;
            const plan::HostView view = runner.contents(slot.gradient);
            const auto* values = reinterpret_cast<const float*>(view.bytes().data());
            for (const plan::Segment& segment : slot.segments) {
                const model::Parameter& p =
                    *program.modules().parameters[static_cast<std::size_t>(segment.parameter)];
                std::vector<float>& whole = all[p.path];
                whole.resize(static_cast<std::size_t>(p.whole_elements), NAN);
                const std::int64_t first = std::max(begin, segment.first),
                                   last = std::min(begin + slot.elements, segment.first + segment.elements);
                int different = 0;
                for (std::int64_t e = first; e < last; ++e) {
                    const std::int64_t to =
                        model::whole_run(p, e - segment.first, mesh.place(p.cut.group, rank)).whole;
                    if (to >= p.whole_elements) continue;  // padding
                    float& known = whole[static_cast<std::size_t>(to)];
                    const float own = values[e - begin];
                    if (!std::isnan(known) && known != own) ++different;
                    known = own;
                }
                EXPECT_EQ(different, 0) << p.path << ", rank " << rank;
            }
        }
    };
    options.validation = data.validation.get();
    options.test_data = data.test.get();
    run_training(program, *data.train, options);
    return all;
}

}  // namespace shardscope::trainer::testing
