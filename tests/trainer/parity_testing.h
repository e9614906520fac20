// Runs a point of the parity grid and compares its losses with those of its reference and of its peers.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "jobs.h"
#include "parity_grid.h"

namespace shardscope::trainer::testing {

// Losses of reference runs (one rank that computes all micro-batches in turn), which points with the same
// numbers share, and those of peers: points that sum in the same order as each other, but not as the
// reference.
class References {
  public:
    explicit References(const SampleText& text) : text_(text) {}
    // How many points were compared bit for bit with the reference, and how many within 1e-6 of it.
    int to_the_bit = 0;
    int within_1e6 = 0;

    const std::vector<double>& of(const Point& p) {
        Point numbers = numbers_of(p);
        numbers[accumulation] = p[accumulation] == 0 ? 0 : 1;
        auto [it, fresh] = losses_.try_emplace(describe(numbers));
        if (fresh) it->second = run(reference_job(p, text_)).losses;
        return it->second;
    }
    // The losses of the first peer of `p`, which are `losses`, those of `p` itself, if it is the first.
    const std::vector<double>& of_peers(const Point& p, const std::vector<double>& losses) {
        Point numbers = numbers_of(p);
        numbers[accumulation] = p[accumulation];
        numbers[strategy] = p[strategy] == 3 ? 3 : 0;
        numbers[hook] = compresses(p) ? p[hook] : 0;
        return peers_.try_emplace(describe(numbers), losses).first->second;
    }

  private:
    static Point numbers_of(const Point& p) {
        Point numbers{};
        for (const Factor f : {model, ranks, optimizer, clip}) numbers[f] = p[f];
        return numbers;
    }

    const SampleText& text_;
    std::map<std::string, std::vector<double>> losses_;
    std::map<std::string, std::vector<double>> peers_;
};

inline void expect_parity(const Point& p, const SampleText& text, References& references) {
    const std::vector<double>& expected = references.of(p);
    const std::vector<double> losses = run(job_at(p, text)).losses;
    if (same_bits(p)) {
        ++references.to_the_bit;
        EXPECT_EQ(losses, expected) << describe(p);
        return;
    }
    references.within_1e6 += compresses(p) ? 0 : 1;
    EXPECT_EQ(losses, references.of_peers(p, losses)) << describe(p) << ", beside its peers";
    ASSERT_EQ(losses.size(), expected.size());
    for (std::size_t i = 0; i < losses.size(); ++i)
        EXPECT_NEAR(losses[i] / expected[i], 1.0, compresses(p) ? 0.02 : 1e-6)
            << describe(p) << ", step " << i;
}

}  // namespace shardscope::trainer::testing
