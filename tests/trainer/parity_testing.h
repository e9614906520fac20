// Carries out a point of the parity grid and holds it to its reference.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "jobs.h"
#include "parity_grid.h"

namespace shardscope::trainer::testing {

// Losses of reference runs; points that differ in nothing that matters share one.
class References {
  public:
    explicit References(const SampleText& text) : text_(text) {}
    const std::vector<double>& of(const Point& p) {
        Point numbers{};
        for (const Factor f : {model, ranks, optimizer, clip}) numbers[f] = p[f];
        numbers[accumulation] = p[accumulation] == 0 ? 0 : 1;
        auto [it, fresh] = losses_.try_emplace(describe(numbers));
        if (fresh) it->second = run(reference_job(p, text_)).losses;
        return it->second;
    }

  private:
    const SampleText& text_;
    std::map<std::string, std::vector<double>> losses_;
};

inline void expect_parity(const Point& p, const SampleText& text, References& references) {
    const std::vector<double>& expected = references.of(p);
    const std::vector<double> losses = run(job_at(p, text)).losses;
    if (same_bits(p)) {
        EXPECT_EQ(losses, expected) << describe(p);
        return;
    }
    ASSERT_EQ(losses.size(), expected.size());
    for (std::size_t i = 0; i < losses.size(); ++i)
        EXPECT_NEAR(losses[i] / expected[i], 1.0, 1e-6) << describe(p) << ", step " << i;
}

}  // namespace shardscope::trainer::testing
