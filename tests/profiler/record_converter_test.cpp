// The meaning of records: given records of a log become the expected rows.
#include "profiler/recorder/record_converter.h"

#include <cstring>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "tests/profiler/memory_sink.h"

namespace shardscope::profiler {
namespace TEST_FILE {

constexpr std::uint32_t kPid = 100, kTid = 107;
constexpr std::int64_t kOrigin = 1000;

// Consecutive records, as in a chunk. Ticks are nanoseconds here.
class Bytes {
  public:
    template <typename Record>
    Bytes& add(Record record, RecordKind kind, std::uint32_t name = 0, std::uint8_t flags = 0,
               std::string_view text = {}) {
        const std::size_t padded = text.empty() ? 0 : (text.size() + 1 + 7) / 8 * 8;
        record.header = {static_cast<std::uint16_t>(sizeof record + padded), kind, flags, name};
        const std::size_t at = bytes_.size();
        bytes_.resize(at + sizeof record + padded);
        std::memcpy(bytes_.data() + at, &record, sizeof record);
        if (!text.empty()) std::memcpy(bytes_.data() + at + sizeof record, text.data(), text.size());
        return *this;
    }
    Bytes& push(std::uint64_t at, std::uint32_t name, std::uint32_t depth, std::uint32_t domain = 0) {
        return add(PlainRangeRecord{{}, Ticks(at), domain, depth, -1, 0}, RecordKind::push, name);
    }
    Bytes& pop(std::uint64_t at, std::uint32_t depth) {
        return add(PopRecord{{}, Ticks(at), 0, depth}, RecordKind::pop);
    }
    std::vector<std::byte>& raw() { return bytes_; }

  private:
    std::vector<std::byte> bytes_;
};

class Conversion : public ::testing::Test {
  protected:
    Conversion() {
        converter_.define_name(1, "outer");
        converter_.define_name(2, "inner");
        converter_.define_name(3, "NCCL");
    }
    void convert(Bytes& bytes, std::uint32_t log = 1, std::uint32_t tid = kTid) {
        converter_.convert(log, tid, bytes.raw());
    }

    testing::Received got_;
    testing::MemorySink sink_{got_};
    Calibration clock_{ClockSource::monotonic};
    RecordConverter converter_{sink_, clock_, MonotonicTime(kOrigin), kPid};
};

TEST_F(Conversion, closes_nested_ranges_innermost_first) {
    convert(Bytes().push(1010, 1, 0).push(1020, 2, 1, 3).pop(1030, 1).pop(1050, 0));
    ASSERT_EQ(got_.ranges.size(), 2u);
    const auto& inner = got_.ranges[0];
    EXPECT_EQ(got_.text(inner.text), "inner");
    EXPECT_EQ(got_.text(inner.domain), "NCCL");
    EXPECT_EQ(inner.start, 20);
    EXPECT_EQ(inner.end, 30);
    const auto& outer = got_.ranges[1];
    EXPECT_EQ(got_.text(outer.text), "outer");
    EXPECT_EQ(outer.start, 10);
    EXPECT_EQ(outer.end, 50);
    EXPECT_EQ(outer.event_type, traces::schema::kNvtxPushPop);
    EXPECT_EQ(outer.global_tid, traces::schema::global_tid(kPid, kTid));
}

TEST_F(Conversion, nests_ranges_of_one_tick_as_they_were_opened) {
    // All within one tick of a coarse clock, so times do not determine the nesting; then a sibling in the
    // same tick.
    convert(
        Bytes().push(1010, 1, 0).push(1010, 2, 1).pop(1010, 1).push(1010, 3, 1).pop(1010, 1).pop(1010, 0));
    const auto &outer = got_.range("outer"), &first = got_.range("inner"), &second = got_.range("NCCL");
    EXPECT_EQ(outer.start, 10);
    EXPECT_LT(outer.start, first.start);
    EXPECT_LE(first.end, second.start);
    EXPECT_LT(first.start, second.start);
    EXPECT_LE(second.end, outer.end);
    EXPECT_LE(outer.end, 13);
    // The same for a range that begins and ends with the range around it and has a duration.
    convert(Bytes().push(1110, 1, 0).push(1110, 2, 1).pop(1190, 1).pop(1190, 0));
    EXPECT_EQ(got_.ranges[3].start, 111);
    EXPECT_EQ(got_.ranges[3].end, 190);
    EXPECT_EQ(got_.ranges[4].start, 110);
    EXPECT_EQ(got_.ranges[4].end, 190);
}

TEST_F(Conversion, gives_ranges_that_stay_open_the_end_of_the_run) {
    convert(Bytes().push(1010, 1, 0).push(1020, 2, 1));
    EXPECT_TRUE(got_.ranges.empty());
    converter_.close_open_ranges(500);
    ASSERT_EQ(got_.ranges.size(), 2u);
    EXPECT_EQ(got_.range("outer").end, 500);
    EXPECT_EQ(got_.range("inner").end, 500);
    ASSERT_EQ(got_.diagnostics.size(), 1u);  // the file reports it
    EXPECT_EQ(got_.diagnostics[0].text, "2 ranges of process " + std::to_string(kPid) +
                                            " were still open when the recording ended, and closed there");
}

TEST_F(Conversion, ignores_the_pop_of_a_range_that_it_never_saw) {
    convert(Bytes().push(1010, 1, 0).pop(1020, 1).pop(1030, 0));  // the push of depth 1 was lost
    ASSERT_EQ(got_.ranges.size(), 1u);
    EXPECT_EQ(got_.ranges[0].end, 30);
}

TEST_F(Conversion, ends_doubtful_ranges_if_records_were_lost) {
    // outer(0) inner(1), then a gap in which a range of depth 1 ended: inner is over, outer is not.
    Bytes bytes;
    bytes.push(1010, 1, 0).push(1020, 2, 1);
    bytes.add(GapRecord{{}, Ticks(1025), 3, 1}, RecordKind::gap);
    bytes.pop(1040, 0);
    convert(bytes);
    EXPECT_EQ(got_.range("inner").end, 25);
    EXPECT_EQ(got_.range("outer").end, 40);
}

TEST_F(Conversion, keeps_a_stack_per_domain_for_nvtx) {
    // Two domains, interleaved: in NVTX each nests independently.
    Bytes bytes;
    bytes.add(PlainRangeRecord{{}, Ticks(1010), 0, 0, -1, 0}, RecordKind::push, 1, kDomainStack);
    bytes.add(PlainRangeRecord{{}, Ticks(1020), 3, 0, -1, 0}, RecordKind::push, 2, kDomainStack);
    bytes.add(PopRecord{{}, Ticks(1030), 0, 0}, RecordKind::pop, 0, kDomainStack);
    bytes.add(PopRecord{{}, Ticks(1040), 3, 0}, RecordKind::pop, 0, kDomainStack);
    convert(bytes);
    EXPECT_EQ(got_.range("outer").end, 30);
    EXPECT_EQ(got_.range("inner").end, 40);
}

TEST_F(Conversion, takes_text_color_and_category_of_a_range) {
    Bytes bytes;
    bytes.add(RangeRecord{{}, Ticks(1010), 0, 0, -1, 0xFF00FF00, 0, 7, 0, 0}, RecordKind::mark, 0,
              kIsLong | kHasText | kHasColor | kHasCategory, "a text that no one registered");
    convert(bytes);
    ASSERT_EQ(got_.ranges.size(), 1u);
    EXPECT_EQ(got_.text(got_.ranges[0].text), "a text that no one registered");
    EXPECT_EQ(got_.ranges[0].color, 0xFF00FF00u);
    EXPECT_EQ(got_.ranges[0].category, 7u);
    EXPECT_EQ(got_.ranges[0].event_type, traces::schema::kNvtxMark);
    EXPECT_FALSE(got_.ranges[0].end.has_value());
}

TEST_F(Conversion, takes_the_value_of_a_range) {
    double half = 0.5;
    std::uint64_t bits = 0;
    std::memcpy(&bits, &half, sizeof half);
    Bytes bytes;
    bytes.add(RangeRecord{{}, Ticks(1010), 0, 0, -1, 0, 0, 0, 3, bits}, RecordKind::mark, 1, kIsLong);
    bytes.add(RangeRecord{{}, Ticks(1020), 0, 0, -1, 0, 0, 0, 99, 5}, RecordKind::mark, 2, kIsLong);
    convert(bytes);
    EXPECT_EQ(got_.range("outer").payload.type, traces::schema::RangePayload::Type::real64);
    EXPECT_EQ(got_.range("outer").payload.bits, bits);
    EXPECT_EQ(got_.range("inner").payload.type,
              traces::schema::RangePayload::Type::none);  // there is no type 99
}

// The blob of NVTX_EVENTS for one payload: 1, the schema, the size, 32 + the size, the bytes.
std::string blob(std::uint64_t schema, std::string_view bytes) {
    return traces::schema::binary_payload(schema, bytes);
}

TEST_F(Conversion, gives_payloads_to_the_event_after_them) {
    Bytes bytes;
    bytes.add(PayloadRecord{{}, 77, 3}, RecordKind::payload, 0, 0, "abc");
    bytes.push(1010, 1, 0);
    bytes.push(1020, 2, 1);
    bytes.add(PayloadRecord{{}, 78, 2}, RecordKind::payload, 0, 0, "de");
    bytes.add(PayloadRecord{{}, 79, 1}, RecordKind::payload, 0, 0, "f");
    bytes.pop(1030, 1).pop(1040, 0);
    convert(bytes);
    EXPECT_EQ(got_.range("inner").binary, blob(78, "de") + blob(79, "f"));  // given when the range ends
    EXPECT_EQ(got_.range("outer").binary, blob(77, "abc"));

    // The event may lie in the next chunk, after records of other logs; and it may be lost.
    Bytes payload, mark, gap;
    payload.add(PayloadRecord{{}, 80, 1}, RecordKind::payload, 0, 0, "g");
    mark.add(PlainRangeRecord{{}, Ticks(1050), 0, 0, -1, 0}, RecordKind::mark, 3);
    gap.add(GapRecord{{}, Ticks(1060), 1, ~0ull}, RecordKind::gap);
    convert(payload, 1);
    convert(gap, 2);
    convert(mark, 1);
    EXPECT_EQ(got_.ranges.back().binary, blob(80, "g"));
    convert(payload, 1);
    convert(gap, 1);
    convert(mark, 1);
    EXPECT_EQ(got_.ranges.back().binary, "");

    Bytes lying;
    lying.add(PayloadRecord{{}, 80, 1000}, RecordKind::payload, 0, 0, "g");
    convert(lying);
    EXPECT_EQ(converter_.damaged(), 1);
}

TEST_F(Conversion, hands_on_the_layouts_of_payloads) {
    // The entries follow the struct, as text does in other records.
    const SchemaEntry entries[] = {{1, 2, 18, 0, 0, 0}, {2, 0, 22, 16, 4, 8}};
    const std::string_view entry_bytes(reinterpret_cast<const char*>(entries), sizeof entries);
    const EnumEntry values[] = {{1, 0, 5}, {2, 1, 6}};
    const std::string_view value_bytes(reinterpret_cast<const char*>(values), sizeof values);
    Bytes bytes;
    bytes.add(SchemaRecord{{}, 3, 1 << 24, 1, 2, 16, 8, 2}, RecordKind::payload_schema, 1, 0, entry_bytes);
    bytes.add(EnumRecord{{}, 3, 1 << 25, 4, 2}, RecordKind::payload_enum, 2, 0, value_bytes);
    bytes.add(ScopeRecord{{}, 3, 9, 21}, RecordKind::scope, 1);
    convert(bytes, 0);
    ASSERT_EQ(got_.schemas.size(), 1u);
    const traces::schema::PayloadSchemaRow& schema = got_.schemas[0];
    EXPECT_EQ(got_.text(schema.domain), "NCCL");
    EXPECT_EQ(schema.id, 1u << 24);
    EXPECT_EQ(schema.name, "outer");
    EXPECT_EQ(schema.type, 1u);
    EXPECT_EQ(schema.flags, 2u);
    EXPECT_EQ(schema.size, 16u);
    EXPECT_EQ(schema.align, 8u);
    ASSERT_EQ(schema.entries.size(), 2u);
    EXPECT_EQ(schema.entries[0].name, "outer");
    EXPECT_EQ(schema.entries[0].description, "inner");
    EXPECT_EQ(schema.entries[0].type, 18u);
    EXPECT_EQ(schema.entries[1].description, "");
    EXPECT_EQ(schema.entries[1].flags, 16u);
    EXPECT_EQ(schema.entries[1].detail, 4u);
    EXPECT_EQ(schema.entries[1].offset, 8u);
    ASSERT_EQ(got_.enums.size(), 1u);
    EXPECT_EQ(got_.enums[0].id, 1u << 25);
    EXPECT_EQ(got_.enums[0].size, 4u);
    ASSERT_EQ(got_.enums[0].entries.size(), 2u);
    EXPECT_EQ(got_.enums[0].entries[1].name, "inner");
    EXPECT_EQ(got_.enums[0].entries[1].value, 6u);
    EXPECT_TRUE(got_.enums[0].entries[1].is_flag);
    ASSERT_EQ(got_.scopes.size(), 1u);
    EXPECT_EQ(got_.scopes[0].id, 9u);
    EXPECT_EQ(got_.scopes[0].parent, 21u);
    EXPECT_EQ(got_.scopes[0].path, "outer");

    Bytes lying;  // claims more entries than there are
    lying.add(SchemaRecord{{}, 3, 1 << 24, 1, 2, 16, 8, 3}, RecordKind::payload_schema, 1, 0,
              entry_bytes.substr(0, 40));
    convert(lying, 0);
    EXPECT_EQ(converter_.damaged(), 1);
}

TEST_F(Conversion, joins_start_and_end_across_threads_in_either_order) {
    Bytes start, end;
    start.add(RangeRecord{{}, Ticks(1010), 0, 0, -1, 0, 42, 0, 0, 0}, RecordKind::range_start, 1, kIsLong);
    end.add(RangeEndRecord{{}, Ticks(1090), 42}, RecordKind::range_end);
    convert(start, 1);
    convert(end, 2, kTid + 1);
    start.raw().clear();
    end.raw().clear();
    start.add(RangeRecord{{}, Ticks(1110), 0, 0, -1, 0, 43, 0, 0, 0}, RecordKind::range_start, 2, kIsLong);
    end.add(RangeEndRecord{{}, Ticks(1190), 43}, RecordKind::range_end);
    convert(end, 1);  // this log is read first
    convert(start, 2);
    ASSERT_EQ(got_.ranges.size(), 2u);
    EXPECT_EQ(got_.range("outer").start, 10);
    EXPECT_EQ(got_.range("outer").end, 90);
    EXPECT_EQ(got_.range("outer").event_type, traces::schema::kNvtxStartEnd);
    EXPECT_EQ(got_.range("outer").global_tid, traces::schema::global_tid(kPid, kTid));
    EXPECT_EQ(got_.range("outer").end_global_tid, traces::schema::global_tid(kPid, kTid + 1));
    EXPECT_FALSE(got_.range("inner").end_global_tid.has_value());  // the same thread ended it
    EXPECT_EQ(got_.range("inner").start, 110);
    EXPECT_EQ(got_.range("inner").end, 190);
}

TEST_F(Conversion, takes_names_of_threads_and_categories) {
    Bytes bytes;
    bytes.add(TextRecord{{}, Ticks(1005), 4711}, RecordKind::thread_name, 0, 0, "loader");
    bytes.add(TextRecord{{}, Ticks(1006), 3}, RecordKind::category_name, 7, 0, "io");
    convert(bytes);
    EXPECT_EQ(converter_.threads().at(4711), "loader");
    ASSERT_EQ(got_.ranges.size(), 2u);
    EXPECT_EQ(got_.ranges[0].event_type, traces::schema::kNvtxThreadName);
    EXPECT_EQ(got_.ranges[0].global_tid, traces::schema::global_tid(kPid, 4711));
    EXPECT_EQ(got_.ranges[1].event_type, traces::schema::kNvtxCategory);
    EXPECT_EQ(got_.ranges[1].category, 7u);
    EXPECT_EQ(got_.text(got_.ranges[1].domain), "NCCL");
}

TEST_F(Conversion, ends_the_ranges_of_a_thread_that_ended) {
    Bytes bytes;
    bytes.push(1010, 1, 0);
    bytes.add(PopRecord{{}, Ticks(1033), 0, 0}, RecordKind::thread_end);
    convert(bytes);
    EXPECT_EQ(got_.range("outer").end, 33);
}

TEST_F(Conversion, stops_at_damage_and_counts_it) {
    Bytes bytes;
    bytes.push(1010, 1, 0).pop(1020, 0).push(1030, 2, 0).pop(1040, 0);
    const std::size_t third = sizeof(PlainRangeRecord) + sizeof(PopRecord);

    Bytes wrong_size = bytes;
    wrong_size.raw()[third] = std::byte{0xFF};  // a size that is not a multiple of 8
    convert(wrong_size);
    EXPECT_EQ(got_.ranges.size(), 1u);
    EXPECT_EQ(converter_.damaged(), 1);

    Bytes wrong_kind = bytes;
    wrong_kind.raw()[third + offsetof(RecordHeader, kind)] = std::byte{200};
    convert(wrong_kind, 2);
    EXPECT_EQ(got_.ranges.size(), 2u);
    EXPECT_EQ(converter_.damaged(), 2);

    Bytes cut_short = bytes;
    cut_short.raw().resize(third + 8);
    convert(cut_short, 3);
    EXPECT_EQ(got_.ranges.size(), 3u);
    EXPECT_EQ(converter_.damaged(), 3);
}

TEST_F(Conversion, of_any_bytes_never_crashes) {
    // A cheap generator of arbitrary bytes; sizes are made plausible so that the kinds are reached.
    std::uint32_t state = 1;
    for (int round = 0; round < 2000; ++round) {
        std::vector<std::byte> noise(256);
        for (auto& b : noise) {
            state = state * 1664525 + 1013904223;
            b = static_cast<std::byte>(state >> 24);
        }
        noise[0] = static_cast<std::byte>((round % 16) * 8);
        noise[1] = std::byte{0};
        noise[2] = static_cast<std::byte>(round % 26);
        converter_.convert(static_cast<std::uint32_t>(round % 3), kTid, noise);
    }
    converter_.close_open_ranges(1);
    EXPECT_GT(converter_.damaged(), 0);
}

}  // namespace TEST_FILE
}  // namespace shardscope::profiler
