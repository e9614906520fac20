// Compares jobs on ranks that are processes with the same jobs on threads.
#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/tools/run_command.h"
#include "tests/tools/train/process_grid.h"
#include "tests/trainer/jobs.h"

namespace shardscope::tools {

struct Grid {
    const char* comm;  // "gloo", "tcp", "mpi"
    int processes;
    const char* choice;  // set of points, see process_grid.h
};

inline std::string name_of(const ::testing::TestParamInfo<Grid>& info) {
    return std::string(info.param.comm) + std::to_string(info.param.processes) + info.param.choice;
}

// A line of losses for each job.
inline std::vector<std::vector<double>> losses_of_processes(const Grid& grid) {
    const TemporaryFolder folder;
    const std::string file = folder / "losses";
    const Outcome outcome = run_command({"timeout", "280", SHARDSCOPE_PARITY_PROGRAM, grid.comm,
                                         std::to_string(grid.processes), grid.choice, file});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    std::vector<std::vector<double>> losses;
    std::ifstream lines(file);
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        losses.emplace_back();
        for (std::string word; words >> word;) losses.back().push_back(std::stod(word));
    }
    return losses;
}

// Sums in rank order give the same bits; along a ring, they are within 1e-6, or, where what is summed is
// compressed, as near as rounding in 16 bits leaves them.
inline void expect_parity_with_threads(const Grid& grid) {
    const trainer::testing::SampleText text;
    const auto points = trainer::testing::points_called(grid.choice, grid.processes);
    const auto losses = losses_of_processes(grid);
    ASSERT_EQ(losses.size(), points.size());
    for (std::size_t job = 0; job < points.size(); ++job) {
        const std::vector<double> expected =
            trainer::testing::run(trainer::testing::job_called(grid.choice, points[job], text)).losses;
        const std::string where = trainer::testing::describe(points[job]);
        if (grid.choice != std::string("ring")) {
            EXPECT_EQ(losses[job], expected) << where;
            continue;
        }
        ASSERT_EQ(losses[job].size(), expected.size()) << where;
        for (std::size_t step = 0; step < expected.size(); ++step)
            EXPECT_NEAR(losses[job][step] / expected[step], 1.0,
                        trainer::testing::compresses(points[job]) ? 0.02 : 1e-6)
                << where << ", step " << step;
    }
}

}  // namespace shardscope::tools
