// The allocator's replay on whole traces: memory snapshots, made and real, and the account of a device.
#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/run_builder.h"
#include "tests/traces/shared_folder.h"
#include "tests/traces/temporary_folder.h"
#include "traces/analysis/advice/advice.h"
#include "traces/analysis/memory/allocator_report.h"
#include "traces/analysis/memory/caching_allocator.h"
#include "traces/import/pickle/pickle.h"
#include "traces/import/pickle/pickle_text.h"
#include "traces/report/html_report.h"
#include "traces/report/report.h"
#include "traces/store/columns/column_sink.h"
#include "traces/store/load/loader.h"
#include "traces/store/write/writer.h"

namespace shardscope::traces::analysis {
namespace TEST_FILE {

using pickled::Bytes;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t kMb = 1 << 20;
constexpr std::int64_t kStart = 1'700'000'000'000'000;  // us

// A program on an allocator, recorded as PyTorch records it: an event each microsecond.
class Recording {
  public:
    explicit Recording(std::int64_t limit = 0) : limit_(limit), allocator_({}, limit) {}

    void allocate(std::uint64_t id, std::int64_t bytes, std::int64_t stream = 0) {
        const bool fitted = allocator_.allocate(id, bytes, static_cast<int>(stream));
        add_changes();
        if (fitted) {
            blocks_[id] = {allocator_.address_of(id), bytes, stream};
            add("alloc", blocks_[id]);
        } else {
            add("oom", {static_cast<std::uint64_t>(limit_ - allocator_.reserved()), bytes, stream});
        }
    }
    void free(std::uint64_t id) {
        add("free_requested", blocks_[id]);
        add("free_completed", blocks_[id]);
        allocator_.free(id);
        blocks_.erase(id);
    }
    void empty_cache() {
        allocator_.empty_cache();
        add_changes();
    }

    // `lost`: the number of the first events that the ring buffer has lost.
    Bytes snapshot(std::size_t lost = 0) const {
        std::vector<Bytes> segments;
        for (const ReservedSegment& s : allocator_.segments()) {
            std::vector<Bytes> blocks;
            for (const auto& [id, block] : blocks_) {
                if (block.address >= s.address && block.address - s.address < std::uint64_t(s.bytes)) {
                    blocks.push_back(pickled::members(
                        {{"address", pickled::integer(std::int64_t(block.address))},
                         {"size", pickled::integer(AllocatorSettings().rounded(block.bytes))},
                         {"state", pickled::text("active_allocated")}}));
                }
            }
            segments.push_back(pickled::members(
                {{"device", pickled::integer(0)},
                 {"address", pickled::integer(std::int64_t(s.address))},
                 {"total_size", pickled::integer(s.bytes)},
                 {"stream", pickled::integer(s.place.stream)},
                 {"segment_type", pickled::text(s.place.small ? "small" : "large")},
                 {"segment_pool_id", pickled::tuple({pickled::integer(0), pickled::integer(0)})},
                 {"blocks", pickled::list(blocks)}}));
        }
        const std::vector<Bytes> kept(events_.begin() + std::ptrdiff_t(lost), events_.end());
        return pickled::whole(pickled::members({{"segments", pickled::list(segments)},
                                                {"device_traces", pickled::list({pickled::list(kept)})}}));
    }
    std::size_t events() const { return events_.size(); }

  private:
    struct Place {
        std::uint64_t address = 0;
        std::int64_t bytes = 0, stream = 0;
    };

    void add_changes() {
        for (; noted_ < allocator_.changes().size(); ++noted_) {
            const SegmentChange& c = allocator_.changes()[noted_];
            add(c.bytes > 0 ? "segment_alloc" : "segment_free", {c.address, std::abs(c.bytes), c.stream});
        }
    }
    void add(const std::string& action, const Place& place) {
        const char* address = action == "oom" ? "device_free" : "addr";
        events_.push_back(
            pickled::members({{"action", pickled::text(action)},
                              {address, pickled::integer(std::int64_t(place.address))},
                              {"size", pickled::integer(place.bytes)},
                              {"stream", pickled::integer(place.stream)},
                              {"time_us", pickled::integer(kStart + std::int64_t(events_.size()))}}));
    }

    std::int64_t limit_;
    CachingAllocator allocator_;
    std::map<std::uint64_t, Place> blocks_;
    std::vector<Bytes> events_;
    std::size_t noted_ = 0;
};

std::unique_ptr<store::Trace> load(const Bytes& bytes) {
    importer::Input input = importer::Input::of_memory("made.pickle", bytes);
    store::ColumnSink sink;
    read_pickle(input, sink, {});
    return sink.take();
}

// Memory for 100 MB, of which 60 are free in two pieces when 56 are requested.
Recording fragmented() {
    Recording program(100 * kMb);
    program.allocate(1, 32 * kMb);
    program.free(1);
    program.allocate(2, 2 * kMb);
    program.allocate(3, 29 * kMb);
    program.allocate(4, 32 * kMb);
    program.free(4);
    program.allocate(5, 2 * kMb);
    program.free(3);
    program.allocate(6, 56 * kMb);
    return program;
}

TEST(AllocatorReport, SaysWhatAFailedRequestNeeded) {
    const auto trace = load(fragmented().snapshot());
    const AllocatorReport report =
        allocator_report(*trace, {}, {.settings = {"expandable_segments:True", "max_split_size_mb:32"}});
    const RankAllocator& rank = report.ranks.at(0);
    ASSERT_TRUE(rank.check);
    EXPECT_EQ(rank.check->difference, "");
    EXPECT_EQ(rank.check->equal_segments, 2);
    EXPECT_EQ(rank.limit, 100 * kMb);
    ASSERT_EQ(rank.failures.size(), 3u);
    EXPECT_EQ(rank.failures[0].settings, "replayed");
    EXPECT_EQ(rank.failures[0].fits, false);
    EXPECT_EQ(rank.failures[0].left, -20 * kMb);
    EXPECT_EQ(rank.failures[0].cached, 60 * kMb);
    EXPECT_EQ(rank.failures[0].largest_free, 30 * kMb);
    EXPECT_EQ(rank.failures[1].fits, true);
    EXPECT_EQ(rank.failures[1].left, 0);
    const std::string text = render(report, report::Format::table);
    EXPECT_THAT(text, AllOf(HasSubstr("no, 20.00 MiB are missing"), HasSubstr("yes, with 0.00 MiB left"),
                            HasSubstr("The replay equals the recording"), HasSubstr("failed: 56.00 MiB")));
    const AdviceReport advised = advice(*trace);
    EXPECT_TRUE(std::any_of(advised.findings.begin(), advised.findings.end(), [](const Finding& f) {
        return f.expected.find("expandable_segments:True, the request fits, with 0") != std::string::npos;
    }));
    // With more memory everything fits.
    const AllocatorReport larger = allocator_report(*trace, {}, {.settings = {}, .limit = 200 * kMb});
    EXPECT_EQ(larger.ranks[0].failures[0].fits, true);
    EXPECT_EQ(larger.ranks[0].failures[0].left, 80 * kMb);
}

TEST(AllocatorReport, IsPartOfTheHtmlReport) {
    const auto trace = load(fragmented().snapshot());
    EXPECT_THAT(report::html_report({report::reported_run(*trace, "made.pickle", {})}, {}),
                AllOf(HasSubstr("Reserved memory with other settings"), HasSubstr("expandable_segments:True"),
                      HasSubstr("no, 20.00 MiB are missing")));
}

TEST(AllocatorReport, StartsInTheMiddleOfAHistory) {
    Recording program;
    for (std::uint64_t id = 1; id <= 60; ++id) {
        program.allocate(id, std::int64_t(id) * 400'000, std::int64_t(id % 2) * 5);
        if (id % 3 == 0) program.free(id - 1);
        if (id == 30) program.empty_cache();
    }
    for (const std::size_t lost : {0, 20, 60, 90}) {
        const auto trace = load(program.snapshot(lost));
        const AllocatorReport report = allocator_report(*trace);
        ASSERT_TRUE(report.ranks.at(0).check) << lost;
        const SegmentCheck& check = *report.ranks[0].check;
        EXPECT_EQ(check.difference, "") << lost;
        EXPECT_EQ(check.equal_segments, check.recorded_segments) << lost;
        EXPECT_EQ(check.at_recorded_address, check.allocations) << lost;
        EXPECT_EQ(check.replayed_peak, check.recorded_peak) << lost;
    }
}

TEST(AllocatorReport, IsTheSameFromADatabase) {
    const TemporaryFolder folder;
    const std::string path = folder / "run.sqlite";
    const Bytes bytes = fragmented().snapshot();
    {
        store::DatabaseWriter writer({.path = path});
        importer::Input input = importer::Input::of_memory("made.pickle", bytes);
        const importer::FileFacts facts = read_pickle(input, writer, {});
        writer.finish(facts.last_ns, 0);
    }
    EXPECT_EQ(render(allocator_report(*store::load_trace(path)), report::Format::json),
              render(allocator_report(*load(bytes)), report::Format::json));
}

TEST(AllocatorReport, NamesTheFirstDifference) {
    // A segment of 4 MB, which no rule explains.
    const auto event = [](const char* action, std::int64_t address, std::int64_t bytes, std::int64_t us) {
        return pickled::members({{"action", pickled::text(action)},
                                 {"addr", pickled::integer(address)},
                                 {"size", pickled::integer(bytes)},
                                 {"stream", pickled::integer(0)},
                                 {"time_us", pickled::integer(kStart + us)}});
    };
    const auto trace = load(pickled::whole(pickled::members(
        {{"segments", pickled::list({pickled::members({{"device", pickled::integer(0)},
                                                       {"address", pickled::integer(8 * kMb)},
                                                       {"total_size", pickled::integer(4 * kMb)}})})},
         {"device_traces",
          pickled::list({pickled::list({event("segment_alloc", 8 * kMb, 4 * kMb, 0),
                                        event("alloc", 8 * kMb, 3 * kMb, 1),
                                        event("free_completed", 8 * kMb, 3 * kMb, 2)})})}})));
    const AllocatorReport report = allocator_report(*trace);
    EXPECT_THAT(report.ranks.at(0).check.value().difference,
                AllOf(HasSubstr("the recording took 4,194,304 bytes for stream 0 at 0.000 ms"),
                      HasSubstr("the replay took 20,971,520 bytes for stream 0")));
    EXPECT_THAT(render(report, report::Format::table), HasSubstr("The replay differs from the recording"));
}

TEST(AllocatorReport, HasNothingToReplayWithoutAHistory) {
    RunBuilder run;
    EXPECT_THAT(render(allocator_report(*run.sink().take()), report::Format::table),
                HasSubstr("nothing to replay"));
}

TEST(DeviceAccount, SumsToWhatTheDeviceUses) {
    RunBuilder run;
    store::ColumnSink& sink = run.sink();
    const auto counter = [&](std::int64_t time, const char* name, std::int64_t mb) {
        sink.add(schema::CounterRow{
            .time = time, .rank = 0, .name = sink.intern(name), .value = double(mb * kMb)});
    };
    schema::RangeRow range;
    range.start = 10;
    range.end = 20;
    range.event_type = schema::kNvtxStartEnd;
    range.text = sink.intern("ncclCommInitRank");
    range.global_tid = RunBuilder::tid(0);
    sink.add(range);
    counter(5, "device_bytes", 400);
    counter(25, "device_bytes", 650);
    counter(40, "reserved_bytes", 100);
    counter(45, "device_bytes", 760);
    sink.add(schema::MemoryRow{.time = 40, .rank = 0, .address = 512, .bytes = 60 * kMb});
    const auto trace = sink.take();
    trace->ranks[0].device_memory = 1000 * kMb;
    const DeviceAccount account = device_account(*trace, store::RankIndex(0), "then", 50);
    EXPECT_EQ(account.context, 400 * kMb);
    EXPECT_EQ(account.nccl, 250 * kMb);
    EXPECT_EQ(account.used, 760 * kMb);
    EXPECT_EQ(account.free, 240 * kMb);
    EXPECT_FALSE(account.other);  // until the allocator's part is known
    const AllocatorReport report = allocator_report(*trace, {});
    const DeviceAccount& peak = report.ranks.at(0).account.at(0);
    EXPECT_EQ(peak.allocated, 60 * kMb);
    EXPECT_EQ(peak.cached, 40 * kMb);
    EXPECT_EQ(*peak.allocated + *peak.cached + *peak.nccl + *peak.context + *peak.other, *peak.used);
    EXPECT_FALSE(report.ranks[0].check);
}

TEST(SharedSnapshot, ReservesTheRecordedSegments) {
    const std::string path = (shared_folder() / "memory" / "fsdp2_rank0.pickle.gz").string();
    if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
    importer::Input input = importer::Input::open(path);
    store::ColumnSink sink;
    read_pickle(input, sink, {});
    const AllocatorReport report = allocator_report(*sink.take());
    const RankAllocator& rank = report.ranks.at(0);
    ASSERT_TRUE(rank.check);
    EXPECT_EQ(rank.check->difference, "");
    EXPECT_EQ(rank.check->recorded_changes, 34);
    EXPECT_EQ(rank.check->equal_changes, 34);
    EXPECT_EQ(rank.check->recorded_segments, 35);
    EXPECT_EQ(rank.check->equal_segments, 35);
    EXPECT_EQ(rank.check->recorded_peak, 2734 * kMb);
    EXPECT_EQ(rank.check->replayed_peak, 2734 * kMb);
    EXPECT_EQ(rank.check->at_recorded_address, 2483);
    EXPECT_THAT(render(report, report::Format::table),
                AllOf(HasSubstr("expandable_segments:True"), Not(HasSubstr("differs"))));
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::analysis
