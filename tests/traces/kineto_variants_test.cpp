// Kineto traces as PyTorch wrote them over the years, each with the expected numbers.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "kineto_text.h"
#include "traces/analysis/pipeline/pipeline.h"

namespace shardscope::traces::importer {
namespace TEST_FILE {

std::string_view name(const store::Trace& trace, schema::StringId id) {
    return trace.strings[id];
}

// The one launch of kineto_text.h: 100 us is the earliest time, which becomes 0.
void expect_one_launch(const store::Trace& trace) {
    ASSERT_EQ(trace.device.size(), 1U);
    EXPECT_EQ(trace.device.start[0], 30'000);  // 130 - 100 us
    EXPECT_EQ(trace.device.end[0], 70'000);
    EXPECT_EQ(name(trace, trace.device.name[0]), "gemm");
    ASSERT_EQ(trace.runtime.size(), 1U);
    EXPECT_EQ(trace.runtime.start[0], 10'000);
    EXPECT_EQ(trace.device.launch[0], 0);
    ASSERT_EQ(trace.ranges.size(), 1U);
    EXPECT_EQ(trace.ranges.start[0], 0);
    EXPECT_EQ(trace.ranges.end[0], 50'000);
    EXPECT_EQ(trace.ranges.kind[0], store::RangeKind::operation);
    EXPECT_EQ(trace.device.range[0], 0);  // through the call inside it
    ASSERT_EQ(trace.ranks.size(), 1U);
    EXPECT_EQ(trace.ranks[0].number, 0);
}

TEST(KinetoVariants, of2022OnNameTheirCategoriesInSmallLetters) {
    const auto read = read_text(kineto(kOneLaunch));
    expect_one_launch(*read.trace);
    EXPECT_FLOAT_EQ(read.trace->device.blocks_per_sm.at(0), 0.25F);
    EXPECT_FLOAT_EQ(read.trace->device.occupancy.at(0), 12);
    EXPECT_TRUE(read.trace->diagnostics.empty());
}

TEST(KinetoVariants, of2020AreABareListWithTextsForThreadsAndStreams) {
    const auto read = read_text(R"([
{"ph": "X", "cat": "Operator", "name": "aten::mm", "pid": 42, "tid": "43", "ts": 100, "dur": 50, "args": {"External id": 7, "Input dims": [[2, 3]]}},
{"ph": "X", "cat": "Runtime", "name": "cudaLaunchKernel", "pid": 42, "tid": "43", "ts": 110, "dur": 10, "args": {"external id": 7, "external ts": 100, "correlation": 9}},
{"ph": "f", "id": 9, "pid": 0, "tid": "stream 7", "ts": 130, "cat": "async", "name": "launch"},
{"ph": "X", "cat": "Kernel", "name": "gemm", "pid": 0, "tid": "stream 7", "ts": 130, "dur": 40, "args": {"external id": 7, "device": 0, "stream": 7, "correlation": 9}}
])");
    expect_one_launch(*read.trace);
    EXPECT_EQ(read.trace->streams.at(0).id, 7);
    EXPECT_EQ(name(*read.trace, read.trace->ranges.detail.at(0)), R"({"Input Dims":[[2, 3]]})");
}

TEST(KinetoVariants, mayOmitTheEndOfABareList) {
    const auto read = read_text("[" + std::string(kOneLaunch) + "\n");
    expect_one_launch(*read.trace);
}

TEST(KinetoVariants, of2022To2024HaveTheirOwnCorrelationForExternalId) {
    // 9 is both the kernel's own correlation and another operator's id: the kernel must not be attributed to
    // that operator.
    const auto read = read_text(kineto(
        R"({"ph": "X", "cat": "cpu_op", "name": "aten::other", "pid": 42, "tid": 43, "ts": 0, "dur": 5, "args": {"External id": 9}},
{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 130, "dur": 40, "args": {"External id": 9, "device": 0, "stream": 7, "correlation": 9}})"));
    EXPECT_EQ(read.trace->device.range[0], -1);
}

TEST(KinetoVariants, withoutALaunchRowTheExternalIdNamesTheOperator) {
    const auto read = read_text(kineto(
        R"({"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 42, "tid": 43, "ts": 0, "dur": 5, "args": {"External id": 7}},
{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 130, "dur": 40, "args": {"External id": 7, "device": 0, "stream": 7, "correlation": 9}})"));
    EXPECT_EQ(read.trace->device.range[0], 0);
}

TEST(KinetoVariants, ofSpring2024OmitLeadingZerosOfNanoseconds) {
    // Times since 1970 with a short fraction that a double of that size cannot represent: .5 is 5 ns, .71 is
    // 71 ns.
    const auto read = read_text(kineto(
        R"({"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1711000000000000.5, "dur": 2.71},
{"ph": "X", "cat": "cpu_op", "name": "b", "pid": 1, "tid": 1, "ts": 1711000000000010.123, "dur": 3})"));
    EXPECT_EQ(read.trace->ranges.start[1] - read.trace->ranges.start[0], 10'118);  // 10,123 - 5 ns
    EXPECT_EQ(read.trace->ranges.end[0] - read.trace->ranges.start[0], 2'071);
}

TEST(KinetoVariants, savedAgainByAProgramWithDoublesKeepTheirFractions) {
    const auto read = read_text(kineto(
        R"({"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1711000000000000.5, "dur": 2.25},
{"ph": "X", "cat": "cpu_op", "name": "b", "pid": 1, "tid": 1, "ts": 1.711000000000010e15, "dur": 3})"));
    EXPECT_EQ(read.trace->ranges.start[1] - read.trace->ranges.start[0], 9'500);
    EXPECT_EQ(read.trace->ranges.end[0] - read.trace->ranges.start[0], 2'250);
}

TEST(KinetoVariants, of2024OnCountFromABaseTimeBeforeOrAfterTheEvents) {
    const std::string base = R"("baseTimeNanoseconds": 1711964646000000000)";
    for (const bool before : {true, false}) {
        const auto read = before ? read_text(kineto(kOneLaunch, base + ","))
                                 : read_text(kineto(kOneLaunch, "", ", " + base));
        expect_one_launch(*read.trace);
        // The first event is 100 us after the base.
        EXPECT_EQ(read.trace->start_utc_ns, 1'711'964'646'000'100'000);
    }
}

TEST(KinetoVariants, timesSince1970AreTheWallClock) {
    const auto read = read_text(kineto(
        R"({"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1623143093496523, "dur": 1})"));
    EXPECT_EQ(read.trace->start_utc_ns, 1'623'143'093'496'523'000);
}

TEST(KinetoVariants, nanosecondsAreExactToTheLast) {
    // 4458676522690.655 us: added to the time since 1970, a double cannot represent its nanoseconds.
    const auto read = read_text(kineto(
        R"({"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 4458676522690.655, "dur": 156.777},
{"ph": "X", "cat": "cpu_op", "name": "b", "pid": 1, "tid": 2, "ts": 4458676522690.656, "dur": 0.001})"));
    EXPECT_EQ(read.trace->ranges.start[1] - read.trace->ranges.start[0], 1);
    EXPECT_EQ(read.trace->ranges.end[0] - read.trace->ranges.start[0], 156'777);
    EXPECT_EQ(read.trace->ranges.end[1] - read.trace->ranges.start[1], 1);
}

TEST(KinetoVariants, forwardAndBackwardAreLinkedUnderBothNames) {
    for (const std::string cat : {"fwdbwd", "forward_backward"}) {
        const auto read = read_text(kineto(
            R"({"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 10, "dur": 5},
{"ph": "X", "cat": "cpu_op", "name": "MmBackward0", "pid": 1, "tid": 2, "ts": 30, "dur": 5},
{"ph": "f", "id": 1, "pid": 1, "tid": 2, "ts": 30, "cat": ")" +
            cat + R"(", "name": "fwdbwd", "bp": "e"},
{"ph": "s", "id": 1, "pid": 1, "tid": 1, "ts": 10, "cat": ")" +
            cat + R"(", "name": "fwdbwd"})"));
        ASSERT_EQ(read.trace->ranges.forward.size(), 2U) << cat;
        EXPECT_EQ(read.trace->ranges.forward[1], 0);
    }
}

TEST(KinetoVariants, moduleNumbersAreNextToOrInTheName) {
    const auto read = read_text(kineto(
        R"({"ph": "X", "cat": "python_function", "name": "nn.Module: Linear", "pid": 1, "tid": 1, "ts": 10, "dur": 5, "args": {"Python id": 2, "Python parent id": 1, "Python module id": 3}},
{"ph": "X", "cat": "python_function", "name": "nn.Module: Linear_4", "pid": 1, "tid": 1, "ts": 20, "dur": 5, "args": {"Python module id": 4}},
{"ph": "X", "cat": "python_function", "name": "threading.py(1): run", "pid": 1, "tid": 1, "ts": 5, "dur": 50, "args": {"Python parent id": null}})"));
    const store::HostRanges& r = read.trace->ranges;
    ASSERT_EQ(r.size(), 3U);
    EXPECT_EQ(r.kind[0], store::RangeKind::function);
    EXPECT_EQ(name(*read.trace, r.name[1]), "nn.Module: Linear_3");
    EXPECT_EQ(name(*read.trace, r.name[2]), "nn.Module: Linear_4");
    EXPECT_EQ(r.kind[1], store::RangeKind::module);
}

TEST(KinetoVariants, memoryEventsHaveTheSpaceOfTheirDeviceType) {
    // 0 is the host, 1 CUDA, 6 HIP; before 1.10 there was neither address nor total.
    const auto read = read_text(kineto(
        R"({"ph": "i", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": 10, "args": {"Device Type": 0, "Device Id": -1, "Bytes": 4}},
{"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": 11, "args": {"Total Reserved": 4096, "Total Allocated": 1512, "Bytes": 512, "Addr": 18446744073709551615, "Device Id": 0, "Device Type": 6}},
{"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": 12, "args": {"Total Reserved": 4096, "Total Allocated": 1000, "Bytes": -512, "Addr": 18446744073709551615, "Device Id": 0, "Device Type": 1}})"));
    const store::MemoryEvents& m = read.trace->memory;
    // 1,000 bytes were allocated before the trace, as the first total shows: 1,512 - 512.
    std::int64_t device = 0, host = 0;
    for (std::size_t i = 0; i < m.size(); ++i)
        (m.space[i] == schema::MemorySpace::device ? device : host) += m.bytes[i];
    EXPECT_EQ(device, 1000);
    EXPECT_EQ(host, 4);
    EXPECT_EQ(m.address.back(), 18446744073709551615ULL);
}

TEST(KinetoVariants, collectivesAreDescribedByTheKernelOrItsOperator) {
    const std::string collective =
        R"("Collective name": "_allgather_base", "dtype": "BFloat16", "In msg nelems": 100, "Out msg nelems": 800, "Group size": 8, "Process Group Name": "1", "Process Group Ranks": "[0, 1, 2, 3, 4, 5, 6, 7]")";
    const std::string on_kernel = kineto(
        R"({"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllGather_RING_LL", "pid": 0, "tid": 20, "ts": 130, "dur": 40, "args": {"device": 0, "stream": 20, "correlation": 9, )" +
        collective + "}}");
    const std::string operation =
        R"({"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 1, "tid": 1, "ts": 100, "dur": 50, "args": {"External id": 7, )" +
        collective + "}}";
    const std::string kernel =
        R"({"ph": "X", "cat": "kernel", "name": "ncclKernel_AllGather_RING", "pid": 0, "tid": 20, "ts": 130, "dur": 40, "args": {"External id": 7, "device": 0, "stream": 20, "correlation": 9}})";
    std::int64_t group = 0;
    for (const std::string& text :
         {on_kernel, kineto(operation + "," + kernel), kineto(kernel + "," + operation)}) {
        const auto read = read_text(text);
        const store::Collectives& c = read.trace->collectives;
        ASSERT_EQ(c.size(), 1U);
        EXPECT_EQ(c.operation[0], schema::Operation::all_gather);
        EXPECT_EQ(c.bytes[0], 1600);  // 800 gathered elements of 2 bytes
        EXPECT_EQ(c.group_size[0], 8);
        EXPECT_EQ(c.sequence[0], -1);
        EXPECT_EQ(c.event[0], 0);
        EXPECT_EQ(read.trace->device.kind[0], store::DeviceKind::communication);
        EXPECT_TRUE(group == 0 || group == c.group[0]);
        group = c.group[0];
    }
}

TEST(KinetoVariants, groupsHaveTheAxisThatTheirDescriptionNames) {
    const auto axis_of = [](std::string_view description) {
        const auto read = read_text(kineto(fmt::format(
            R"({{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32", "pid": 0, "tid": 20, "ts": 130, "dur": 40, "args": {{"device": 0, "stream": 20, "correlation": 9, "Collective name": "allreduce", "Group size": 2, "Process Group Name": "5", "Process Group Description": "{}", "Process Group Ranks": "[0, 2]"}}}})",
            description)));
        const auto& groups = read.trace->groups;
        if (groups.size() != 1 || groups[0].group != read.trace->collectives.group.at(0))
            return std::string("?");
        EXPECT_EQ(groups[0].name, "5");
        EXPECT_EQ(groups[0].description, description);
        EXPECT_EQ(groups[0].ranks, "[0, 2]");
        return groups[0].axis;
    };
    EXPECT_EQ(axis_of("mesh_tp"), "tensor");
    EXPECT_EQ(axis_of("mesh_dp_shard"), "shard");
    EXPECT_EQ(axis_of("mesh_dim_1"), "dim_1");
    EXPECT_EQ(axis_of("MESH_GROUP"), "mesh");  // one underscore, between two words
    EXPECT_EQ(axis_of("mesh_GROUP"), "mesh");
    EXPECT_EQ(axis_of("_GROUP"), "");
    EXPECT_EQ(axis_of("mesh_"), "");
    EXPECT_EQ(axis_of("PIPELINE_MODEL_PARALLEL_GROUP"), "pipeline");
    EXPECT_EQ(axis_of("DATA_PARALLEL_GROUP_WITH_CP"), "data+context");
    EXPECT_EQ(axis_of("EMBEDDING_GROUP"), "embedding");
    EXPECT_EQ(axis_of("default_pg"), "world");
    EXPECT_EQ(axis_of("undefined"), "");
}

// PyTorch's pipeline schedules run each action in a range.
TEST(KinetoVariants, actionsOfAPipelineAreRanges) {
    const auto action = [](const char* name, int at) {
        return fmt::format(
            R"({{"ph": "X", "cat": "user_annotation", "name": "{0}", "pid": 1, "tid": 1, "ts": {1}, "dur": 50}},
               {{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": {2}, "dur": 5, "args": {{"correlation": {1}}}}},
               {{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": {3}, "dur": 30, "args": {{"device": 0, "stream": 7, "correlation": {1}}}}})",
            name, at, at + 10, at + 20);
    };
    const auto read = read_text(kineto(action("PP:0F0", 100) + "," + action("PP:0B0", 200)));
    const analysis::PipelineReport report = analysis::pipeline_report(*read.trace);
    ASSERT_EQ(report.ranks.size(), 1U);
    EXPECT_FALSE(report.ranks[0].on_host);
    EXPECT_EQ(report.ranks[0].actions, 2);
    EXPECT_EQ(report.ranks[0].busy, 2 * 30'000);
    EXPECT_EQ(report.ranks[0].makespan, 130'000);
    EXPECT_EQ(report.ranks[0].host, 60'000);       // from the end of F0 to the launch of B0
    EXPECT_EQ(report.ranks[0].imbalance, 10'000);  // from there to its start
}

// A collective as in 2022 and 2023: neither kernel nor operator has arguments, but the range around the
// launch has the tensors that it took. libkineto wrote the kernel's correlation as its External id.
std::string launched_in(const std::string& range, const std::string& kernel, const std::string& more = "") {
    return kineto(
        more + R"({"ph": "X", "cat": "user_annotation", "pid": 1, "tid": 2, "ts": 100, "dur": 50, )" + range +
        R"(}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 2, "ts": 110, "dur": 5, "args": {"External id": 9, "correlation": 9}},
{"ph": "X", "cat": "kernel", "name": ")" +
        kernel +
        R"(", "pid": 0, "tid": 20, "ts": 130, "dur": 40, "args": {"External id": 9, "device": 0, "stream": 20, "correlation": 9}})");
}

TEST(KinetoVariants, collectivesOf2023HaveTheBytesOfTheRangeAroundTheirLaunch) {
    const auto read = read_text(launched_in(
        R"("name": "nccl:all_reduce", "args": {"External id": 7, "Input Dims": [[19618307]], "Input type": ["float"])",
        "ncclKernel_AllReduce_RING_LL_Sum_float"));
    const store::Collectives& c = read.trace->collectives;
    ASSERT_EQ(c.size(), 1U);
    EXPECT_EQ(c.operation[0], schema::Operation::all_reduce);
    EXPECT_EQ(c.bytes[0], 19618307 * 4);
    EXPECT_EQ(c.group_size[0], 0);  // unknown
    EXPECT_EQ(c.event[0], 0);
}

TEST(KinetoVariants, aGatherOf2023HasTheBytesOfTheOperatorThatTookBothBuffers) {
    const std::string range =
        R"("name": "nccl:_all_gather_base", "args": {"Input Dims": [[128, 2]], "Input type": ["c10::BFloat16"])";
    const std::string asked =
        R"({"ph": "X", "cat": "cpu_op", "name": "c10d::_allgather_base_", "pid": 1, "tid": 2, "ts": 90, "dur": 80, "args": {"Input Dims": [[1024, 2], [128, 2], [], []], "Input type": ["c10::BFloat16", "c10::BFloat16", "", "Scalar"]}},)";
    const char* kernel = "ncclKernel_AllGather_RING_LL_Sum_int8_t";
    const auto both = read_text(launched_in(range, kernel, asked));
    ASSERT_EQ(both.trace->collectives.size(), 1U);
    EXPECT_EQ(both.trace->collectives.bytes[0], 1024 * 2 * 2);
    // A rank's own part alone does not show how many ranks gather.
    EXPECT_EQ(read_text(launched_in(range, kernel)).trace->collectives.size(), 0U);
}

TEST(KinetoVariants, severalKernelsOfOneRangeShareNoBytes) {
    const std::string second =
        R"({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 2, "ts": 120, "dur": 5, "args": {"correlation": 10}},
{"ph": "X", "cat": "kernel", "name": "ncclKernel_AllReduce_RING", "pid": 0, "tid": 20, "ts": 180, "dur": 40, "args": {"device": 0, "stream": 20, "correlation": 10}})";
    const std::string one = launched_in(
        R"("name": "nccl:coalesced", "args": {"Input Dims": [[100], [200]], "Input type": ["float", "float"])",
        "ncclKernel_AllReduce_RING");
    const std::string two = std::string(one).insert(one.rfind("\n  ]"), "," + second);
    EXPECT_EQ(read_text(one).trace->collectives.bytes.at(0), 1200);
    EXPECT_EQ(read_text(two).trace->collectives.size(), 0U);
}

TEST(KinetoVariants, of2026NumberTheirCollectives) {
    const auto read = read_text(kineto(
        R"({"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32", "pid": 0, "tid": 20, "ts": 130, "dur": 40, "args": {"device": 0, "stream": 20, "correlation": 9, "graph id": 3, "graph node id": 5, "Collective name": "allreduce", "dtype": "Float", "In msg nelems": 10, "Out msg nelems": 10, "Group size": 2, "Seq": 17, "Process Group Name": "0"}})"));
    EXPECT_EQ(read.trace->collectives.sequence.at(0), 17);
    EXPECT_EQ(read.trace->collectives.bytes.at(0), 40);
}

TEST(KinetoVariants, waitsOfTheDeviceAreKept) {
    const auto read = read_text(kineto(
        std::string(kOneLaunch) +
        R"(,{"ph": "X", "cat": "cuda_sync", "name": "Stream Wait Event", "pid": 0, "tid": 7, "ts": 160, "dur": 3, "args": {"device": 0, "stream": 7, "correlation": 11, "cuda_sync_kind": "Stream Wait Event", "wait_on_stream": 20, "wait_on_cuda_event_id": 4}},
{"ph": "X", "cat": "cuda_sync", "name": "Context Sync", "pid": 0, "tid": 7, "ts": 170, "dur": 3, "args": {"device": 0, "stream": 7, "correlation": 12}},
{"ph": "X", "cat": "overhead", "name": "Buffer Flush", "pid": -1, "tid": 0, "ts": 10, "dur": 3})"));
    const store::Synchronizations& s = read.trace->synchronizations;
    ASSERT_EQ(s.size(), 2U);
    EXPECT_EQ(s.type[0], schema::kSyncStreamWait);
    EXPECT_EQ(s.stream[0], 0);
    EXPECT_EQ(s.type[1], schema::kSyncContext);
    EXPECT_EQ(s.stream[1], -1);
}

TEST(KinetoVariants, copiesOfAnnotationsOnDeviceRowsAndSpansOfTheTracerAreLeftOut) {
    const auto read = read_text(kineto(
        std::string(kOneLaunch) +
        R"(,{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#3", "pid": 42, "tid": 43, "ts": 100, "dur": 90, "args": {"External id": 1}},
{"ph": "X", "cat": "gpu_user_annotation", "name": "ProfilerStep#3", "pid": 0, "tid": 7, "ts": 130, "dur": 40, "args": {"External id": 1}},
{"ph": "X", "cat": "Trace", "ts": 90, "dur": 200, "pid": "Spans", "tid": "PyTorch Profiler", "name": "PyTorch Profiler (0) "},
{"name": "Record Window End", "ph": "i", "s": "g", "pid": "", "tid": "", "ts": 990000000000})"));
    ASSERT_EQ(read.trace->steps.size(), 1U);
    EXPECT_EQ(read.trace->steps[0].number, 3);
    EXPECT_EQ(read.trace->last_ns, 100'000);  // the step's end, 190 us; time 0 is the span's start, 90 us
    EXPECT_EQ(read.trace->ranges.size(), 2U);
}

TEST(KinetoVariants, devicesOfOtherMakersAreDevices) {
    const auto read = read_text(kineto(
        R"({"ph": "X", "cat": "cuda_runtime", "name": "hipLaunchKernel", "pid": 1, "tid": 1, "ts": 5, "dur": 2, "args": {"cid": 1, "correlation": 1}},
{"ph": "X", "cat": "xpu_runtime", "name": "zeCommandListAppendLaunchKernel", "pid": 1, "tid": 1, "ts": 8, "dur": 1, "args": {"correlation": 2}},
{"ph": "X", "cat": "kernel", "name": "amd", "pid": 2, "tid": 0, "ts": 10, "dur": 1, "args": {"device": 2, "stream": 0, "correlation": 1, "kind": "Dispatch Kernel", "grid": [1, 1, 1], "block": [1, 1, 1]}},
{"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy DtoH (Device -> Pinned) ", "pid": 2, "tid": 0, "ts": 12, "dur": 1, "args": {
    "device" : 2, "stream" : 0, "correlation" : 2, "bytes" : 64}},
{"ph": "X", "cat": "mtia_ccp_events", "name": "mtia", "pid": 2, "tid": 1, "ts": 14, "dur": 1, "args": {"correlation": 3}})",
        R"("deviceProperties": [{"id": 2, "name": "AMD Instinct MI300X", "totalGlobalMem": 206141652992, "computeMajor": 9, "computeMinor": 4, "numSms": 304}],)"));
    EXPECT_EQ(read.trace->device.size(), 3U);
    EXPECT_EQ(read.trace->ranks.size(), 1U);
    EXPECT_EQ(read.trace->ranks[0].device, 2);
    EXPECT_EQ(read.trace->ranks[0].device_name, "AMD Instinct MI300X");
    EXPECT_EQ(read.trace->device.launch[0], 0);
    EXPECT_EQ(read.trace->device.copy_kind[1], schema::kCopyDeviceToHost);
}

TEST(KinetoVariants, ofMtiaDistinguishCopiesAndWaitsFromKernels) {
    const auto event = [](const char* name, int ts) {
        return fmt::format(
            R"({{"ph": "X", "cat": "mtia_ccp_events", "name": "{}", "pid": 0, "tid": 1, "ts": {}, "dur": 5, "args": {{"device": 0, "stream": 1, "correlation": {}}}}})",
            name, ts, ts);
    };
    const auto read = read_text(
        kineto(event("fc_kernel", 10) + "," + event("dma_request", 20) + "," + event("event_wait", 30)));
    const store::DeviceEvents& device = read.trace->device;
    ASSERT_EQ(device.size(), 2U);
    EXPECT_EQ(device.kind[0], store::DeviceKind::kernel);
    EXPECT_EQ(device.kind[1], store::DeviceKind::memcpy);
    ASSERT_EQ(read.trace->synchronizations.size(), 1U);
    EXPECT_EQ(read.trace->synchronizations.type[0], schema::kSyncStreamWait);
}

TEST(KinetoVariants, theRankIsInDistributedInfoBeforeOrAfterTheEvents) {
    const std::string info = R"("distributedInfo": {"backend": "nccl", "rank": 5, "world_size": 8})";
    const auto before = read_text(kineto(kOneLaunch, info + ","));
    EXPECT_EQ(before.trace->ranks.at(0).number, 5);
    EXPECT_EQ(before.trace->config_value("distributed.world_size"), "8");
    const auto after = read_text(kineto(kOneLaunch, "", "," + info));
    EXPECT_EQ(after.facts.rank, 5);  // it was read again with the rank, as open_any does
    EXPECT_EQ(after.facts.rows_rank, 0);
    const auto again = read_text(kineto(kOneLaunch, "", "," + info), {.rank = *after.facts.rank});
    EXPECT_EQ(again.trace->ranks.at(0).number, 5);
}

TEST(KinetoVariants, severalDevicesOfOneProcessAreOneRank) {
    const std::string kernels =
        R"({"ph": "X", "cat": "kernel", "name": "a", "pid": 0, "tid": 7, "ts": 10, "dur": 1, "args": {"device": 0, "stream": 7, "correlation": 1}},
{"ph": "X", "cat": "kernel", "name": "b", "pid": 1, "tid": 7, "ts": 12, "dur": 1, "args": {"device": 1, "stream": 7, "correlation": 2}})";
    for (const bool several : {false, true}) {
        const auto one = read_text(kineto(kernels), {.rank = 3, .one_of_several = several});
        ASSERT_EQ(one.trace->ranks.size(), 1U);
        EXPECT_EQ(one.trace->ranks[0].number, 3);
        ASSERT_EQ(one.trace->streams.size(), 2U);
        EXPECT_EQ(one.trace->streams[0].id, 7);
        EXPECT_EQ(one.trace->streams[1].id, 1'000'007);
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::importer
