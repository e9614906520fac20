// Rows of samples and threads, from a source that the tests play.
#include "profiler/stacks/stack_sampler.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/profiler/memory_sink.h"
#include "traces/schema/enums.h"

namespace shardscope::profiler {
namespace TEST_FILE {

struct Played {
    std::vector<StackRecord> arriving;
    std::vector<CodeMapping> now;  // what mappings() gives
    int asked = 0;                 // for these, for certain
    bool waits = false;
};

class PlayedSource final : public SampleSource {
  public:
    explicit PlayedSource(Played& played) : played_(played) {}
    std::string_view means() const override { return "play"; }
    void drain(const Visit& visit) override {
        for (StackRecord& record : std::exchange(played_.arriving, {})) visit(std::move(record));
    }
    bool can_wait(std::int64_t) const override { return played_.waits; }
    std::vector<CodeMapping> mappings(std::int32_t, bool certain) override {
        played_.asked += certain ? 1 : 0;
        return played_.now;
    }
    std::int64_t lost() const override { return 0; }
    std::string incomplete() const override { return {}; }

  private:
    Played& played_;
};

class Sampler : public ::testing::Test {
  protected:
    void sample(std::int32_t tid, std::vector<std::uint64_t> addresses, std::string thread = "") {
        SampledStack stack;
        stack.time = MonotonicTime(++time_);
        stack.pid = 7;
        stack.tid = tid;
        stack.weight = 10;
        stack.thread = std::move(thread);
        stack.addresses = std::move(addresses);
        played_.arriving.emplace_back(std::move(stack));
    }
    template <typename Record>
    void arrives(Record record) {
        record.time = MonotonicTime(++time_);
        record.pid = 7;
        played_.arriving.emplace_back(std::move(record));
    }
    StackSampler::Place place(bool last = false) {
        return {.sink = sink_,
                .origin = MonotonicTime(0),
                .recording = true,
                .last = last,
                .rank_of = [](std::int32_t) { return 2; }};
    }
    void take(bool last = false) {
        for (int drains = 0; drains < 2; ++drains) sampler_.drain(place(last));
    }
    std::vector<std::string> names() const {
        std::vector<std::string> names;
        for (const auto& row : got_.threads) names.push_back(row.name);
        return names;
    }

    Played played_;
    testing::Received got_;
    testing::MemorySink sink_{got_};
    StackSampler sampler_{std::make_unique<PlayedSource>(played_)};
    std::int64_t time_ = 0;
};

TEST_F(Sampler, NamesAThreadOnce) {
    arrives(ThreadName{.tid = 7, .name = "job"});
    arrives(ThreadName{.tid = 8, .name = "loader"});
    sample(8, {1});
    sample(9, {1});
    sample(8, {1});
    take();  // these times are long ago
    sample(8, {1});
    take(true);
    EXPECT_EQ(names(), (std::vector<std::string>{"loader", "job"}));  // the process's, without one of its own
    EXPECT_EQ(got_.threads[0].rank, 2);
    EXPECT_EQ(got_.samples.size(), 4U);
}

TEST_F(Sampler, LeavesASourceThatCanWait) {
    played_.waits = true;
    sample(8, {1});
    for (int ticks = 0; ticks < 2; ++ticks) sampler_.tick(place());
    EXPECT_EQ(played_.arriving.size(), 1U);
    played_.waits = false;
    for (int ticks = 0; ticks < 2; ++ticks) sampler_.tick(place());
    EXPECT_EQ(got_.samples.size(), 1U);
    played_.waits = true;
    sample(8, {1});
    take();  // at the end nothing is left
    EXPECT_EQ(got_.samples.size(), 2U);
}

TEST_F(Sampler, NamesAThreadAsItsSamplesDo) {
    sample(8, {1}, "new");
    sample(8, {1}, "worker");
    take();
    EXPECT_EQ(names(), (std::vector<std::string>{"worker"}));
}

TEST_F(Sampler, NamesAThreadThatEnds) {
    time_ = MonotonicTime::now().ns;  // just begun: its name may still change
    arrives(ThreadName{.tid = 8, .name = "loader"});
    sample(8, {1});
    take();
    EXPECT_TRUE(names().empty());
    arrives(ThreadEnd{.tid = 8});
    arrives(ThreadEnd{.tid = 9});
    take();
    EXPECT_EQ(names(), (std::vector<std::string>{"loader"}));
}

TEST_F(Sampler, AsksForMappingsOfUnknownCode) {
    played_.now = {
        {.time = MonotonicTime(0), .pid = 7, .start = 0x5000, .size = 0x1000, .file = "/none/a.so"}};
    sample(8, {0x5010, 0x5020});
    sample(8, {0x5010});
    take();
    EXPECT_EQ(played_.asked, 1);
    ASSERT_EQ(got_.samples.size(), 2U);
    EXPECT_EQ(got_.text(got_.samples[0].stack), "[unknown] (a.so)\n[unknown] (a.so)");

    arrives(ProgramStart{});
    played_.now.clear();
    sample(8, {0x5010});
    take();
    EXPECT_EQ(played_.asked, 2);
    EXPECT_EQ(got_.text(got_.samples[2].stack), "[unknown]");
}

}  // namespace TEST_FILE
}  // namespace shardscope::profiler
