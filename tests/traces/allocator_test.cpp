// The model of PyTorch's caching allocator: single rules, and lists of events against a plain reference.
#include <cstdio>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "traces/analysis/memory/allocator_settings.h"
#include "traces/analysis/memory/caching_allocator.h"

namespace shardscope::traces::analysis {
namespace TEST_FILE {

using ::testing::HasSubstr;

constexpr std::int64_t kMb = 1 << 20;

std::string refusal(const std::string& settings) {
    try {
        parse_allocator_settings(settings);
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "accepted";
}

TEST(AllocatorSettings, AreReadAsPytorchWritesThem) {
    const AllocatorSettings settings = parse_allocator_settings(
        "expandable_segments:True,max_split_size_mb:128,roundup_power2_divisions:[256:1,512:2,>:8],"
        "garbage_collection_threshold:0.8");
    EXPECT_TRUE(settings.expandable_segments);
    EXPECT_EQ(settings.max_split, 128 * kMb);
    EXPECT_EQ(settings.garbage_collection, 0.8);
    EXPECT_EQ(settings.divisions[0], 1);
    EXPECT_EQ(settings.divisions[8], 1);
    EXPECT_EQ(settings.divisions[9], 2);
    EXPECT_EQ(settings.divisions[15], 8);
    EXPECT_EQ(parse_allocator_settings(to_text(settings)), settings);
    EXPECT_EQ(to_text(AllocatorSettings()), "defaults");
}

TEST(AllocatorSettings, AreRefusedWithTheReason) {
    EXPECT_THAT(refusal(""), HasSubstr("empty"));
    EXPECT_THAT(refusal("expandable_segments"), HasSubstr("KEY:VALUE"));
    EXPECT_THAT(refusal("expandable_segments:yes"), HasSubstr("True or False"));
    EXPECT_THAT(refusal("max_split_size_mb:20"), HasSubstr("from 21"));
    EXPECT_THAT(refusal("max_split_size_mb:99999999999"), HasSubstr("number of MiB"));
    EXPECT_THAT(refusal("roundup_power2_divisions:3"), HasSubstr("power of two"));
    EXPECT_THAT(refusal("roundup_power2_divisions:[300:2]"), HasSubstr("power of two"));
    EXPECT_THAT(refusal("roundup_power2_divisions:[2:2,1:4]"), HasSubstr("ascend"));
    EXPECT_THAT(refusal("roundup_power2_divisions:[256:1"), HasSubstr("must end with ]"));
    EXPECT_THAT(refusal("garbage_collection_threshold:1.5"), HasSubstr("between 0 and 1"));
    EXPECT_THAT(refusal("pinned_use_cuda_host_register:True"),
                HasSubstr("not a key that changes what is reserved"));
}

TEST(AllocatorSettings, RoundSizes) {
    AllocatorSettings settings;
    EXPECT_EQ(settings.rounded(1), 512);
    EXPECT_EQ(settings.rounded(513), 1024);
    settings.divisions.fill(4);
    EXPECT_EQ(settings.rounded(1200), 1536);  // too small for divisions
    EXPECT_EQ(settings.rounded(1200 * kMb), 1280 * kMb);
    EXPECT_EQ(settings.rounded(1024 * kMb), 1024 * kMb);
}

TEST(CachingAllocator, PrivatePoolsKeepTheirSegments) {
    for (const bool expandable : {false, true}) {
        AllocatorSettings settings;
        settings.expandable_segments = expandable;
        CachingAllocator allocator(settings);
        EXPECT_TRUE(allocator.allocate(1, 40 * kMb, 0));
        EXPECT_TRUE(allocator.allocate(2, 20 * kMb, 0, 7));
        allocator.free(1);
        allocator.free(2);
        allocator.empty_cache();
        EXPECT_EQ(allocator.reserved(), 20 * kMb) << expandable;
    }
}

TEST(CachingAllocator, TakesSegmentsBySize) {
    CachingAllocator allocator({});
    EXPECT_TRUE(allocator.allocate(1, 1000, 0));
    EXPECT_EQ(allocator.reserved(), 2 * kMb);
    EXPECT_TRUE(allocator.allocate(2, 3 * kMb, 0));
    EXPECT_EQ(allocator.reserved(), 22 * kMb);
    EXPECT_TRUE(allocator.allocate(3, 11 * kMb, 0));  // from what is left of the 20 MiB
    EXPECT_EQ(allocator.reserved(), 22 * kMb);
    EXPECT_TRUE(allocator.allocate(4, 31 * kMb, 0));
    EXPECT_EQ(allocator.reserved(), 54 * kMb);
    EXPECT_EQ(allocator.allocated(), 1024 + 46 * kMb);  // the last MB of 32 is not split off
    EXPECT_EQ(allocator.state().segments, 3);
}

TEST(CachingAllocator, KeepsTheBlocksOfStreamsAndPoolsApart) {
    CachingAllocator allocator({});
    allocator.allocate(1, 12 * kMb, 0);
    allocator.free(1);
    allocator.allocate(2, 12 * kMb, 1);
    EXPECT_EQ(allocator.reserved(), 24 * kMb);
    allocator.allocate(3, 12 * kMb, 0, 7);
    EXPECT_EQ(allocator.reserved(), 36 * kMb);
    allocator.allocate(4, 12 * kMb, 0);
    EXPECT_EQ(allocator.reserved(), 36 * kMb);
}

TEST(CachingAllocator, UsesABlockAgainOnlyAfterItsFreeIsComplete) {
    CachingAllocator allocator({}, 40 * kMb);
    allocator.allocate(1, 30 * kMb, 0);
    allocator.request_free(1);
    EXPECT_EQ(allocator.allocated(), 30 * kMb);
    // Without room the allocator waits for the streams.
    EXPECT_TRUE(allocator.allocate(2, 30 * kMb, 0));
    EXPECT_EQ(allocator.retries(), 1);
    EXPECT_EQ(allocator.reserved(), 30 * kMb);
    allocator.free(1);  // is complete already
    EXPECT_EQ(allocator.allocated(), 30 * kMb);
}

// Two segments of 32 MB have a block of 2 MB each: 60 MB are free, 30 in one piece, unless segments can grow.
TEST(CachingAllocator, FitsFragmentedMemoryIfSegmentsAreExpandable) {
    const auto fits = [](const char* text) {
        CachingAllocator allocator(parse_allocator_settings(text), 100 * kMb);
        allocator.allocate(1, 32 * kMb, 0);
        allocator.free(1);
        allocator.allocate(2, 2 * kMb, 0);
        allocator.allocate(3, 29 * kMb, 0);
        allocator.allocate(4, 32 * kMb, 0);
        allocator.free(4);
        allocator.allocate(5, 2 * kMb, 0);
        allocator.free(3);
        return allocator.allocate(6, 56 * kMb, 0);
    };
    EXPECT_FALSE(fits("expandable_segments:False"));
    EXPECT_TRUE(fits("expandable_segments:True"));
}

TEST(CachingAllocator, RefusesSizesThatNoDeviceHas) {
    for (const char* text : {"expandable_segments:False", "expandable_segments:True"}) {
        CachingAllocator allocator(parse_allocator_settings(text));
        EXPECT_FALSE(allocator.allocate(1, std::int64_t{1} << 55, 0));
        int fitted = 0;
        for (std::uint64_t id = 1; id < 70'000; ++id)
            fitted += allocator.allocate(id, std::int64_t{1} << 44, 0) ? 1 : 0;
        EXPECT_NEAR(fitted, 1 << 16, 1) << text;  // 2^60 bytes
    }
}

// --- the reference -----------------------------------------------------------------------------------------

std::string output_of(const std::string& command) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
    std::string text;
    for (char part[4096]; pipe != nullptr;) {
        const std::size_t bytes = std::fread(part, 1, sizeof part, pipe.get());
        if (bytes == 0) break;
        text.append(part, bytes);
    }
    return text;
}

std::string state_of(const CachingAllocator& allocator, bool fitted) {
    std::string segments;
    for (const ReservedSegment& s : allocator.segments()) {
        segments += fmt::format("{}{}:{}:{}:{}", segments.empty() ? "" : ",", s.bytes, s.place.stream,
                                s.place.pool, s.place.small ? 1 : 0);
    }
    const AllocatorState state = allocator.state();
    return fmt::format("state {} {} {} {} {}", fitted ? 1 : 0, state.reserved, state.allocated,
                       state.largest_free, segments.empty() ? "-" : segments);
}

class AllocatorReference : public ::testing::TestWithParam<int> {};

// The reference makes the list and says what is reserved after each event: every segment must be equal.
TEST_P(AllocatorReference, ReservesTheSameSegmentsAfterEveryEvent) {
    static const bool has_python = output_of("python3 -c 'print(1)' 2>/dev/null") == "1\n";
    if (!has_python) GTEST_SKIP() << "no python3";
    std::istringstream lines(
        output_of(fmt::format("python3 -B '{}' {} 400", SHARDSCOPE_ALLOCATOR_REFERENCE, GetParam())));
    std::string word, settings;
    std::int64_t limit = 0;
    ASSERT_TRUE(lines >> word >> settings >> limit);
    CachingAllocator allocator(
        settings == "defaults" ? AllocatorSettings() : parse_allocator_settings(settings), limit);
    int events = 0;
    std::uint64_t id = 0;
    std::int64_t bytes = 0;
    int stream = 0, pool = 0;
    for (std::string kind; lines >> word >> kind >> id >> bytes >> stream >> pool; ++events) {
        bool fitted = true;
        if (kind == "allocate") fitted = allocator.allocate(id, bytes, stream, pool);
        if (kind == "free") allocator.free(id);
        if (kind == "request_free") allocator.request_free(id);
        if (kind == "empty_cache") allocator.empty_cache();
        std::string expected;
        std::getline(lines >> std::ws, expected);
        ASSERT_EQ(state_of(allocator, fitted), expected)
            << "event " << events + 1 << ": " << kind << ' ' << id << ' ' << bytes << ", " << settings;
        std::int64_t counted = 0;
        for (const ReservedSegment& segment : allocator.segments()) counted += segment.bytes;
        ASSERT_EQ(counted, allocator.reserved());
        ASSERT_EQ(std::ssize(allocator.segments()), allocator.state().segments);
    }
    EXPECT_EQ(events, 400);
}

INSTANTIATE_TEST_SUITE_P(Seeds, AllocatorReference, ::testing::Range(0, 32),
                         ::testing::PrintToStringParamName());

}  // namespace TEST_FILE
}  // namespace shardscope::traces::analysis
