// Data that only traces of other tools have (Kineto, memory snapshots, flight recorder dumps): operators
// named by device events, links between forward and backward, memory by the surrounding ranges. Each test
// feeds a ColumnSink and the database, and expects the same columns from both.
#include <gtest/gtest.h>

#include "tests/traces/temporary_folder.h"
#include "traces/store/columns/column_sink.h"
#include "traces/store/columns/memory_origin.h"
#include "traces/store/columns/names.h"
#include "traces/store/load/loader.h"
#include "traces/store/write/writer.h"

namespace shardscope::traces::store {
namespace TEST_FILE {

constexpr std::int64_t kPid = schema::global_pid(7), kTid = schema::global_tid(7, 7),
                       kAutograd = schema::global_tid(7, 8);

void add_rank(EventSink& sink) {
    sink.add(schema::RankRow{
        .rank = 0, .device = 0, .global_pid = kPid, .global_tid = kTid, .host = {}, .device_name = {}});
}

void add_range(EventSink& sink, std::int64_t start, std::int64_t end, std::string_view text,
               std::string_view domain = kOperatorDomain, std::int64_t external_id = 0,
               std::int64_t tid = kTid, std::string_view detail = "") {
    schema::RangeRow row{.start = start, .end = end};
    row.text = sink.intern(text);
    row.domain = sink.intern(domain);
    row.global_tid = tid;
    row.external_id = external_id;
    row.detail = sink.intern(detail);
    sink.add(row);
}

void add_kernel(EventSink& sink, std::int64_t start, std::int64_t correlation, std::int64_t external_id,
                float blocks = -1, float occupancy = -1) {
    schema::KernelRow row{.start = start, .end = start + 10};
    row.stream = 7;
    row.correlation = correlation;
    row.global_pid = kPid;
    row.short_name = sink.intern("gemm");
    row.external_id = external_id;
    row.blocks_per_sm = blocks;
    row.occupancy = occupancy;
    sink.add(row);
}

void add_memory(EventSink& sink, std::int64_t time, std::uint64_t address, std::int64_t bytes,
                std::int64_t total, std::int64_t reserved = 4096) {
    schema::MemoryRow row{.time = time, .rank = 0, .address = address, .bytes = bytes};
    row.global_tid = kTid;
    row.total = total;
    row.reserved = reserved;
    sink.add(row);
}

// The same rows, read directly and through a database.
class ForeignColumns : public ::testing::TestWithParam<bool> {
  protected:
    template <typename Write>
    std::unique_ptr<Trace> trace_of(Write write) {
        if (!GetParam()) {
            ColumnSink sink;
            write(sink);
            return sink.take();
        }
        const std::string path = folder_ / "trace.sqlite";
        DatabaseWriter writer({.path = path});
        write(writer);
        writer.finish(1'000'000, 0);
        return load_trace(path);
    }
    static std::string range_name(const Trace& trace, std::int32_t range) {
        return range < 0 ? "none"
                         : std::string(trace.strings[trace.ranges.name[static_cast<std::size_t>(range)]]);
    }

    TemporaryFolder folder_;
};

TEST_P(ForeignColumns, ADeviceEventBelongsToTheRangeAroundItsLaunchElseToTheOperatorThatItNames) {
    const auto trace = trace_of([](EventSink& sink) {
        add_rank(sink);
        add_range(sink, 0, 100, "aten::linear", kOperatorDomain, 11);
        add_range(sink, 10, 90, "aten::addmm", kOperatorDomain, 12);
        add_range(sink, 200, 300, "aten::relu", kOperatorDomain, 13);
        schema::RuntimeRow launch{.start = 20, .end = 30};
        launch.global_tid = kTid;
        launch.correlation = 501;
        launch.name = sink.intern("cudaLaunchKernel");
        sink.add(launch);
        add_kernel(sink, 400, 501, 13);  // launched by a call in addmm, whatever operator it names
        add_kernel(sink, 500, 502, 13);  // no call: belongs to the operator that it names
        add_kernel(sink, 600, 12, 12);   // names its own correlation id, which is not informative
        add_kernel(sink, 700, 503, 99);  // names an operator that does not exist
    });
    ASSERT_EQ(trace->device.size(), 4u);
    EXPECT_EQ(range_name(*trace, trace->device.range[0]), "aten::addmm");
    EXPECT_EQ(range_name(*trace, trace->device.range[1]), "aten::relu");
    EXPECT_EQ(range_name(*trace, trace->device.range[2]), "none");
    EXPECT_EQ(range_name(*trace, trace->device.range[3]), "none");
    EXPECT_TRUE(trace->device.blocks_per_sm.empty()) << "no event has any";
}

TEST_P(ForeignColumns, BlocksAndOccupancyOfEachEvent) {
    const auto trace = trace_of([](EventSink& sink) {
        add_rank(sink);
        add_kernel(sink, 500, 2, 0);  // added last, but first: columns are sorted by start
        add_kernel(sink, 100, 1, 0, 3.5F, 62);
        schema::MemcpyRow copy{.start = 300, .end = 320};
        copy.stream = 7;
        copy.correlation = 3;
        copy.global_pid = kPid;
        sink.add(copy);
    });
    ASSERT_EQ(trace->device.size(), 3u);
    ASSERT_EQ(trace->device.blocks_per_sm.size(), 3u);
    EXPECT_EQ(trace->device.blocks_per_sm[0], 3.5F);
    EXPECT_LT(trace->device.blocks_per_sm[1], 0);
    EXPECT_LT(trace->device.blocks_per_sm[2], 0);
    EXPECT_EQ(trace->device.occupancy[0], 62);
}

TEST_P(ForeignColumns, DetailsOfRangesAreKept) {
    const auto trace = trace_of([](EventSink& sink) {
        add_rank(sink);
        add_range(sink, 0, 100, "aten::mm", kOperatorDomain, 1, kTid, R"({"Input Dims":[[2,3]]})");
        add_range(sink, 10, 20, "aten::empty");
    });
    ASSERT_EQ(trace->ranges.detail.size(), 2u);
    EXPECT_EQ(trace->strings[trace->ranges.detail[0]], R"({"Input Dims":[[2,3]]})");
    EXPECT_EQ(trace->strings[trace->ranges.detail[1]], "");
    EXPECT_EQ(trace->ranges.kind[0], RangeKind::operation);
}

TEST_P(ForeignColumns, ABackwardOperatorKnowsItsForwardOperator) {
    const auto trace = trace_of([](EventSink& sink) {
        add_rank(sink);
        add_range(sink, 0, 100, "forward", kAnnotationDomain);
        add_range(sink, 0, 90, "aten::linear");  // starts together with the annotation and its own child
        add_range(sink, 0, 50, "aten::addmm");
        add_range(sink, 500, 600, "autograd::engine::evaluate_function: AddmmBackward0", kOperatorDomain, 0,
                  kAutograd);
        add_range(sink, 505, 590, "AddmmBackward0", kOperatorDomain, 0, kAutograd);
        sink.add(schema::LinkRow{.kind = schema::LinkKind::backward,
                                 .from_tid = kTid,
                                 .from_time = 0,
                                 .to_tid = kAutograd,
                                 .to_time = 500});
        sink.add(schema::LinkRow{.kind = schema::LinkKind::backward,  // of a thread that does not exist
                                 .from_tid = schema::global_tid(7, 99),
                                 .from_time = 0,
                                 .to_tid = kAutograd,
                                 .to_time = 505});
    });
    ASSERT_EQ(trace->ranges.forward.size(), 5u);
    const auto& names = trace->ranges.name;
    for (std::size_t r = 0; r < names.size(); ++r) {
        const std::string name(trace->strings[names[r]]);
        const bool backward = name.starts_with("autograd::engine");
        EXPECT_EQ(range_name(*trace, trace->ranges.forward[r]), backward ? "aten::addmm" : "none") << name;
    }
}

TEST_P(ForeignColumns, AllocationsAreNamedAndSortedByTheRangesAroundThem) {
    const auto trace = trace_of([](EventSink& sink) {
        add_rank(sink);
        add_range(sink, 0, 100, "ProfilerStep#3", kAnnotationDomain);
        add_range(sink, 10, 40, "FSDP::all_gather (layers.0)", kAnnotationDomain);
        add_range(sink, 20, 30, "aten::empty");
        add_range(sink, 50, 90, "aten::mm");
        add_range(sink, 60, 70, "aten::empty");
        add_memory(sink, 25, 0xA0, 512, 512);
        add_memory(sink, 65, 0xB0, 64, 576);
        add_memory(sink, 80, 0xA0, -512, 64);
        add_memory(sink, 95, 0xC0, 32, 96);
    });
    const MemoryEvents& m = trace->memory;
    ASSERT_EQ(m.size(), 4u);
    ASSERT_EQ(m.annotation.size(), 4u);
    EXPECT_EQ(m.category[0], schema::MemoryCategory::unsharded_parameters);
    EXPECT_EQ(trace->strings[m.annotation[0]], "FSDP::all_gather (layers.0)");
    EXPECT_EQ(trace->strings[m.name[0]], "aten::empty");
    EXPECT_EQ(m.category[1], schema::MemoryCategory::other);
    EXPECT_EQ(trace->strings[m.annotation[1]], "") << "a step is not an annotation";
    EXPECT_EQ(trace->strings[m.name[1]], "aten::empty");
    EXPECT_EQ(m.category[2], schema::MemoryCategory::unsharded_parameters)
        << "a free has the category of its allocation";
    EXPECT_EQ(trace->strings[m.annotation[2]], "FSDP::all_gather (layers.0)");
    EXPECT_TRUE(m.stack.empty());
}

// Live:              1000 before the trace | +512 | -500, unseen -200 | +100
// The allocator's total:            -      | 1512 |       1012 - 200  |  912
TEST_P(ForeignColumns, TheAllocatorsTotalsAddMissingEvents) {
    const auto trace = trace_of([](EventSink& sink) {
        add_rank(sink);
        add_memory(sink, 10, 0xA0, 512, 1512, 2048);
        add_memory(sink, 20, 0xB0, -500, 812, 2048);
        add_memory(sink, 30, 0xC0, 100, 912, 4096);
    });
    const MemoryEvents& m = trace->memory;
    ASSERT_EQ(m.size(), 5u);
    EXPECT_EQ(m.bytes, (std::vector<std::int64_t>{1000, 512, -200, -500, 100}));
    EXPECT_EQ(m.time, (std::vector<std::int64_t>{10, 10, 20, 20, 30}));
    EXPECT_EQ(trace->strings[m.name[0]], "before the trace");
    EXPECT_EQ(trace->strings[m.name[2]], "not in the trace");
    EXPECT_EQ(m.category[0], schema::MemoryCategory::other);
    // reserved: 2048 from 10 on, 4096 from 30 on
    ASSERT_EQ(trace->counters.size(), 2u);
    EXPECT_EQ(trace->strings[trace->counters.name[0]], "reserved_bytes");
    EXPECT_EQ(trace->counters.time, (std::vector<std::int64_t>{10, 30}));
    EXPECT_EQ(trace->counters.value, (std::vector<double>{2048, 4096}));
}

TEST_P(ForeignColumns, SegmentsAndFlightRecords) {
    const auto trace = trace_of([](EventSink& sink) {
        sink.add(schema::SegmentRow{.time = 30, .rank = 1, .address = 0x200, .bytes = -4096, .stream = -1});
        sink.add(schema::SegmentRow{.time = 10, .rank = 1, .address = 0x200, .bytes = 4096, .stream = 5});
        schema::FlightRow flight;
        flight.rank = 1;
        flight.id = 8;
        flight.group = sink.intern("0");
        flight.group_size = 4;
        flight.sequence = 3;
        flight.operation = schema::Operation::all_gather;
        flight.name = sink.intern("nccl:_all_gather_base");
        flight.output_bytes = 4096;
        flight.state = schema::FlightState::started;
        flight.created = 5;
        flight.started = 6;
        sink.add(flight);
        flight.id = 7;
        flight.completed = 9;
        flight.state = schema::FlightState::completed;
        sink.add(flight);
    });
    ASSERT_EQ(trace->segments.size(), 2u);
    EXPECT_EQ(trace->segments.bytes, (std::vector<std::int64_t>{4096, -4096}));
    EXPECT_EQ(trace->segments.stream, (std::vector<std::int32_t>{5, -1}));
    ASSERT_EQ(trace->ranks.size(), 1u);
    EXPECT_EQ(trace->ranks[trace->segments.rank[0]].number, 1);
    ASSERT_EQ(trace->flight.size(), 2u);
    EXPECT_EQ(trace->flight[0].id, 7);
    EXPECT_EQ(trace->flight[0].completed, 9);
    EXPECT_EQ(trace->flight[1].id, 8);
    EXPECT_EQ(trace->flight[1].started, 6);
    EXPECT_FALSE(trace->flight[1].completed);
    EXPECT_EQ(trace->flight[1].state, schema::FlightState::started);
    EXPECT_EQ(trace->flight[1].operation, schema::Operation::all_gather);
    EXPECT_EQ(trace->flight[1].input_bytes, -1);
    EXPECT_EQ(trace->flight[1].output_bytes, 4096);
    EXPECT_EQ(trace->flight[1].timeout_ms, -1);
    EXPECT_EQ(trace->strings[trace->flight[1].name], "nccl:_all_gather_base");
    EXPECT_EQ(trace->last_ns, 30);
}

INSTANTIATE_TEST_SUITE_P(BothEnds, ForeignColumns, ::testing::Bool(),
                         [](const auto& end) { return end.param ? "Database" : "Memory"; });

TEST(MemoryOrigin, SaysNothingOfOrdinaryOperators) {
    EXPECT_EQ(category_of_origin("FSDP::all_gather (layers.3)"),
              schema::MemoryCategory::unsharded_parameters);
    EXPECT_EQ(category_of_origin("FullyShardedDataParallel._pre_forward_unshard"),
              schema::MemoryCategory::unsharded_parameters);
    EXPECT_EQ(category_of_origin("FSDP::post_backward_reduce"), schema::MemoryCategory::communication);
    EXPECT_EQ(category_of_origin("aten::empty"), schema::MemoryCategory::other);
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::store
