// The cores that the ranks of one process share: when all are busy, and the duration of a transfer without
// the time spent waiting for a core.
#include <cstdint>

#include <gtest/gtest.h>

#include "traces/analysis/communication/matching.h"
#include "traces/store/columns/trace.h"
#include "trainer/lift/shared_cores.h"

namespace shardscope::trainer::lift {
namespace TEST_FILE {

using traces::analysis::Interval;
using traces::analysis::IntervalSet;
using traces::store::DeviceKind;

// Two ranks of one process on two workers.
class SharedCoresTest : public ::testing::Test {
  protected:
    SharedCoresTest() {
        trace_.config = {{"run.device", "cpu"}, {"run.ranks", "2"}, {"workers", "2"}};
        trace_.ranks.resize(2);
        for (int r = 0; r < 2; ++r) {
            trace_.ranks[static_cast<std::size_t>(r)].number = r;
            trace_.ranks[static_cast<std::size_t>(r)].global_pid = 7;
        }
    }
    std::int32_t add(int rank, DeviceKind kind, std::int64_t start, std::int64_t end) {
        trace_.device.rank.push_back(static_cast<std::uint16_t>(rank));
        trace_.device.kind.push_back(kind);
        trace_.device.copy_kind.push_back(0);
        trace_.device.start.push_back(start);
        trace_.device.end.push_back(end);
        return static_cast<std::int32_t>(trace_.device.size()) - 1;
    }
    void kernel(int rank, std::int64_t start, std::int64_t end) { add(rank, DeviceKind::kernel, start, end); }
    // A collective of both ranks, from their arrivals to a common end.
    void collective(std::int64_t first, std::int64_t last, std::int64_t end) {
        traces::analysis::CollectiveMatch match;
        match.begin = communications_.parts.size();
        for (int r = 0; r < 2; ++r) {
            traces::analysis::Communication part;
            part.rank = static_cast<std::uint16_t>(r);
            part.event = add(r, DeviceKind::communication, r == 0 ? first : last, end);
            communications_.parts.push_back(part);
        }
        match.end = communications_.parts.size();
        match.transfer_ns = end - last;
        communications_.matches.push_back(match);
    }
    SharedCores cores() const { return {trace_, communications_}; }

    traces::store::Trace trace_;
    traces::analysis::Communications communications_;
};

TEST_F(SharedCoresTest, AreFullWhenKernelsAndTransfersTakeAll) {
    kernel(0, 100, 300);
    kernel(1, 200, 250);
    kernel(1, 250, 400);
    collective(300, 500, 600);  // rank 0 waits from 300 to 500
    EXPECT_EQ(cores().count(), 2);
    EXPECT_EQ(cores().full(), (IntervalSet{{200, 300}, {500, 600}}));
    EXPECT_EQ(cores().full_inside({250, 550}), 100);
    EXPECT_EQ(cores().full_inside({310, 490}), 0);
    EXPECT_EQ(cores().full_inside({600, 500}), 0);
}

TEST_F(SharedCoresTest, ATransferGetsTheCoresThatKernelsLeave) {
    collective(0, 0, 900);
    kernel(0, 100, 400);
    kernel(1, 200, 300);
    // The transfer is undisturbed except from 100 to 400: it has one of its two cores, and none from 200 to
    // 300.
    EXPECT_EQ(cores().transfer_ns({0, 900}, 2), 600 + 200 / 2);
    EXPECT_EQ(cores().transfer_ns({200, 300}, 2), 0);
    // Four members on two cores take turns.
    EXPECT_EQ(cores().transfer_ns({400, 900}, 4), 250);
    EXPECT_EQ(cores().transfer_ns({1000, 1200}, 2), 200);
}

TEST_F(SharedCoresTest, FilesTakeNone) {
    kernel(0, 100, 300);
    kernel(1, 200, 250);
    trace_.device.copy_kind[static_cast<std::size_t>(add(0, DeviceKind::memcpy, 100, 300))] =
        traces::schema::kCopyDiskToHost;
    EXPECT_EQ(cores().full(), (IntervalSet{{200, 250}}));
}

TEST_F(SharedCoresTest, AreOfTheCpuDeviceAndOneProcess) {
    kernel(0, 100, 200);
    trace_.config[0].second = "cuda";
    EXPECT_EQ(cores().count(), 0);
    EXPECT_TRUE(cores().full().empty());
    trace_.config[0].second = "cpu";
    EXPECT_EQ(cores().count(), 2);
    trace_.config[2].second = "-2";
    EXPECT_EQ(cores().count(), 0);
    trace_.config[2].second = "2";
    trace_.ranks[1].global_pid = 8;
    EXPECT_EQ(cores().count(), 0);
    trace_.ranks.pop_back();  // one of two ranks
    EXPECT_EQ(cores().count(), 0);
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::lift
