// The configurations nearest to a job that does not fit: that they do fit, that no smaller change would, and
// what is reported if none does.
#include <algorithm>

#include <gtest/gtest.h>

#include "planner_testing.h"
#include "trainer/executor/run.h"
#include "trainer/planner/nearest.h"

namespace shardscope::trainer::planner {
namespace TEST_FILE {

// A job for real devices: the text on which it would train is not opened.
job::Job job_with(const std::vector<job::Override>& changes = {}) {
    std::vector<job::Override> all = {{"run.device", "cpu"}, {"data.path", "not there"}};
    all.insert(all.end(), changes.begin(), changes.end());
    return testing::planned_job("", all);
}

std::int64_t peak_of(const std::vector<job::Override>& changes) {
    return sharding::Program(job_with(changes)).predict().peak.bytes;
}

// Whether the total, including the allocator, fits into `limit`.
bool fits(const std::vector<job::Override>& changes, std::int64_t limit) {
    sim::SimOptions options;
    options.memory_limit = limit;
    try {
        sim::simulate(sharding::Program(job_with(changes)), testing::round_cluster(), options);
        return true;
    } catch (const executor::OutOfMemory&) {
        return false;
    }
}

NearestFits search(std::int64_t limit, std::size_t most = 3) {
    return nearest_fits(job_with(), limit, testing::round_cluster(), {.most = most, .seconds = 100});
}

TEST(Nearest, OneChangeIsEnoughIfTheJobIsSlightlyTooLarge) {
    const std::int64_t own = peak_of({});
    ASSERT_FALSE(fits({}, own - 1));
    const NearestFits found = search(own - 1);
    ASSERT_EQ(found.fits.size(), 3u);
    for (const NearestFit& fit : found.fits) {
        EXPECT_EQ(fit.steps, 1u);
        EXPECT_EQ(fit.peak.bytes, peak_of(fit.changes));
        EXPECT_TRUE(fits(fit.changes, own - 1)) << fit.changes.front().key;
        EXPECT_GT(fit.slower, 0);
    }
    // Those of a single change come first, ordered by time.
    EXPECT_LE(found.fits[0].slower, found.fits[1].slower);
    EXPECT_LE(found.fits[1].slower, found.fits[2].slower);
    EXPECT_TRUE(found.complete);
}

// Every change is needed, whatever the limit; below what any single change gives, several are needed.
TEST(Nearest, NoPartOfTheChangesIsEnough) {
    const std::int64_t own = peak_of({});
    std::int64_t least = own;
    for (const NearestFit& fit : search(own - 1, 100).fits)
        if (fit.steps == 1) least = std::min(least, fit.peak.bytes);
    for (const std::int64_t limit : {own - 1, own * 4 / 5, own * 2 / 3, least - 1}) {
        const NearestFits found = search(limit);
        ASSERT_FALSE(found.fits.empty()) << limit;
        for (const NearestFit& fit : found.fits) {
            EXPECT_TRUE(fits(fit.changes, limit));
            EXPECT_GE(fit.steps, limit < least ? 2u : 1u);
            if (fit.steps == 1 || fit.steps != fit.changes.size()) continue;  // some keys change together
            for (std::size_t left_out = 0; left_out < fit.changes.size(); ++left_out) {
                std::vector<job::Override> part = fit.changes;
                part.erase(part.begin() + static_cast<std::ptrdiff_t>(left_out));
                EXPECT_FALSE(fits(part, limit)) << fit.changes[left_out].key << " is not needed";
            }
        }
    }
}

// The number of samples per step stays the same. With 32 samples, activations are most of the peak.
TEST(Nearest, ASmallerBatchComesWithMoreMicroBatches) {
    const job::Job job = job_with({{"data.batch", "32"}});
    const std::int64_t limit = sharding::Program(job).predict().peak.bytes - 1;
    bool seen = false;
    for (const NearestFit& fit :
         nearest_fits(job, limit, testing::round_cluster(), {.most = 100, .seconds = 100}).fits) {
        std::vector<job::Override> all = {{"data.batch", "32"}};
        all.insert(all.end(), fit.changes.begin(), fit.changes.end());
        const job::Job changed = job_with(all);
        EXPECT_EQ(changed.data.batch * changed.train.accumulation, 32);
        seen = seen || changed.data.batch < 32;
    }
    EXPECT_TRUE(seen);
}

TEST(Nearest, NothingFitsBelowTheSmallestPeak) {
    const NearestFits found = search(1000);
    EXPECT_TRUE(found.fits.empty());
    EXPECT_LT(found.smallest.peak.bytes, peak_of({}));
    EXPECT_EQ(found.smallest.peak.bytes, peak_of(found.smallest.changes));
    EXPECT_GT(found.tried, 10u);
    // It is also reported if the limit equals its peak.
    EXPECT_FALSE(search(found.smallest.peak.bytes * 2).fits.empty());
}

TEST(Nearest, EndsInTime) {
    const NearestFits found =
        nearest_fits(job_with(), peak_of({}) - 1, testing::round_cluster(), {.most = 3, .seconds = 0});
    EXPECT_FALSE(found.complete);
    EXPECT_LE(found.tried, 1u);
}

// A cluster with fewer devices than the job has ranks predicts no times; the memory is known nevertheless.
TEST(Nearest, DoesNotNeedALargeEnoughCluster) {
    sim::Cluster small = testing::round_cluster();
    small.nodes = small.devices = 1;
    const NearestFits found = nearest_fits(job_with(), peak_of({}) - 1, small, {.most = 3, .seconds = 100});
    ASSERT_FALSE(found.fits.empty());
    EXPECT_EQ(found.fits.front().slower, 0);
    EXPECT_LT(found.fits.front().peak.bytes, peak_of({}));
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::planner
