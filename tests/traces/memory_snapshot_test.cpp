// PyTorch's memory snapshots: the rows that they become, and what the memory analysis reports about them.
#include "traces/import/pytorch_memory/memory_snapshot.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/outcome.h"
#include "tests/traces/shared_folder.h"
#include "traces/analysis/memory/memory.h"
#include "traces/analysis/memory/memory_explanation.h"
#include "traces/import/pickle/pickle.h"
#include "traces/import/pickle/pickle_text.h"
#include "traces/report/report.h"
#include "traces/store/columns/column_sink.h"
#include "traces/store/columns/memory_facts.h"
#include "traces/store/columns/memory_origin.h"
#include "traces/store/stack_text.h"

namespace shardscope::traces::importer {
namespace TEST_FILE {

using pickled::Bytes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

// --- made snapshots --------------------------------------------------------------------------------------

Bytes frame(const char* file, int line, const char* function) {
    return pickled::members({{"name", pickled::text(function)},
                             {"filename", pickled::text(file)},
                             {"line", pickled::integer(line)}});
}

Bytes event(const char* action, std::int64_t address, std::int64_t bytes, std::int64_t us,
            const std::vector<Bytes>& frames = {}) {
    return pickled::members(
        {{"action", pickled::text(action)},
         {action == std::string_view("oom") ? "device_free" : "addr", pickled::integer(address)},
         {"size", pickled::integer(bytes)},
         {"stream", pickled::integer(0)},
         {"time_us", pickled::integer(us)},
         {"frames", pickled::list(frames)}});
}

Bytes block(std::int64_t address, std::int64_t bytes, const char* state,
            const std::vector<Bytes>& frames = {}) {
    return pickled::members({{"address", pickled::integer(address)},
                             {"size", pickled::integer(bytes)},
                             {"requested_size", pickled::integer(bytes)},
                             {"state", pickled::text(state)},
                             {"frames", pickled::list(frames)}});
}

Bytes segment(int device, std::int64_t address, std::int64_t bytes, const std::vector<Bytes>& blocks) {
    return pickled::members({{"device", pickled::integer(device)},
                             {"address", pickled::integer(address)},
                             {"total_size", pickled::integer(bytes)},
                             {"stream", pickled::integer(0)},
                             {"blocks", pickled::list(blocks)}});
}

Bytes annotation(const char* stage, const char* name, std::int64_t us) {
    return pickled::members({{"stage", pickled::text(stage)},
                             {"name", pickled::text(name)},
                             {"device", pickled::integer(0)},
                             {"time_us", pickled::integer(us)}});
}

Bytes snapshot(const std::vector<Bytes>& segments, const std::vector<Bytes>& traces,
               const std::vector<Bytes>& annotations = {}) {
    return pickled::whole(pickled::members({{"segments", pickled::list(segments)},
                                            {"device_traces", pickled::list(traces)},
                                            {"external_annotations", pickled::list(annotations)}}));
}

std::unique_ptr<store::Trace> load(const Bytes& bytes, const FileRequest& request = {}) {
    Input input = Input::of_memory("made.pickle", bytes);
    store::ColumnSink sink;
    const FileFacts facts = read_pickle(input, sink, request);
    sink.set_start_utc_ns(facts.start_utc_ns);
    return sink.take();
}

std::unique_ptr<store::Trace> load_file(const std::string& path) {
    Input input = Input::open(path);
    store::ColumnSink sink;
    const FileFacts facts = read_pickle(input, sink, {});
    sink.set_start_utc_ns(facts.start_utc_ns);
    return sink.take();
}

std::vector<std::pair<std::string, std::int64_t>> names(const std::vector<analysis::MemoryHolder>& holders) {
    std::vector<std::pair<std::string, std::int64_t>> result;
    result.reserve(holders.size());
    for (const analysis::MemoryHolder& h : holders) result.emplace_back(h.name, h.bytes);
    return result;
}

std::int64_t at(const analysis::CategoryBytes& bytes, schema::MemoryCategory category) {
    return bytes[static_cast<std::size_t>(category)];
}

constexpr std::int64_t kBase = 1 << 20;                 // address of the generated segment
constexpr std::int64_t kStart = 1'700'000'000'000'000;  // us

// One segment of 64 KiB. Two allocations are made under nested annotations, one under none, and the ring
// buffer has lost the event of another:
//
//   us   what                                       active bytes
//   0    4096 at +0 allocated before                        4096
//   10   1024 at +8192 under FSDP::all_gather             5120
//   20   2048 at +16384 under FSDP::post_backward_reduce  7168   the peak
//   30   free of +0 is requested, 40 completed            3072
//   50   512 at +0                                        3584
Bytes small_snapshot() {
    return snapshot(
        {segment(
            0, kBase, 65536,
            {block(kBase, 512, "active_allocated"), block(kBase + 512, 7680, "inactive"),
             block(kBase + 8192, 1024, "active_allocated"), block(kBase + 9216, 7168, "inactive"),
             block(kBase + 16384, 2048, "active_awaiting_free"), block(kBase + 18432, 47104, "inactive")})},
        {pickled::list({event("alloc", kBase + 8192, 1024, kStart + 10),
                        event("alloc", kBase + 16384, 2048, kStart + 20),
                        event("free_requested", kBase, 4096, kStart + 30),
                        event("free_completed", kBase, 4096, kStart + 40),
                        event("alloc", kBase, 512, kStart + 50), event("snapshot", 0, 0, kStart + 60)})},
        {annotation("START", "FSDP::pre_forward (layers.0)", kStart),
         annotation("START", "FSDP::all_gather (layers.0)", kStart + 5),
         annotation("END", "FSDP::all_gather (layers.0)", kStart + 15),
         annotation("END", "FSDP::pre_forward (layers.0)", kStart + 16),
         annotation("START", "FSDP::post_backward_reduce (layers.0)", kStart + 18),
         annotation("END", "FSDP::post_backward_reduce (layers.0)", kStart + 25)});
}

// Annotations from 5 us on; the optimizer's steps end at 26 (one surrounds another's) and 45; a third is cut
// off. 400 devices share one list that contains one event 2000 times: 800,000 rows of some thousand bytes.
TEST(MemorySnapshot, RowsThatSeveralDevicesShareAreRefused) {
    const auto again = [](const Bytes& value, char place, int times) {
        Bytes list = "](" + value + "q" + place;
        for (int i = 1; i < times; ++i) list += Bytes("h") + place;
        return list + "e";
    };
    const Bytes event_once = event("alloc", kBase, 512, kStart);
    const auto refusal = [](const Bytes& segments, const Bytes& traces) {
        try {
            load(pickled::whole(pickled::members({{"segments", segments}, {"device_traces", traces}})));
        } catch (const store::StoreError& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    EXPECT_THAT(refusal("]", again(again(event_once, 1, 2000), 2, 400)),
                HasSubstr("several segments or devices share one list of blocks or events"));
    const Bytes blocks = again(block(kBase, 512, "active_allocated"), 1, 2000);
    const Bytes shared = pickled::members({{"device", pickled::integer(0)},
                                           {"address", pickled::integer(kBase)},
                                           {"total_size", pickled::integer(65536)},
                                           {"blocks", blocks}});
    EXPECT_THAT(refusal(again(shared, 2, 400), "]"), HasSubstr("share one list"));
    // An event with 5,000 keys would be searched for each key that is needed.
    std::vector<std::pair<std::string_view, Bytes>> keys = {{"action", pickled::text("alloc")}};
    keys.resize(5000, {"other", pickled::none()});
    EXPECT_THAT(refusal("]", pickled::list({again(pickled::members(keys), 1, 2000)})),
                HasSubstr("share one list"));
    // An event that occurs twice in a list takes its memory twice.
    EXPECT_EQ(refusal("]", pickled::list({again(event_once, 1, 2000)})), "");
}

TEST(MemorySnapshot, StepsEndWithTheOptimizersWhereNoneAreMarked) {
    const std::vector<Bytes> events = {pickled::list(
        {event("alloc", kBase, 512, kStart + 10), event("alloc", kBase + 512, 512, kStart + 30)})};
    std::vector<Bytes> annotations = {annotation("START", "FSDP::pre_forward", kStart + 5),
                                      annotation("END", "FSDP::pre_forward", kStart + 7),
                                      annotation("START", "Optimizer.step#Sharded.step", kStart + 20),
                                      annotation("START", "Optimizer.step#AdamW.step", kStart + 22),
                                      annotation("END", "Optimizer.step#AdamW.step", kStart + 24),
                                      annotation("END", "Optimizer.step#Sharded.step", kStart + 26),
                                      annotation("START", "Optimizer.step#Sharded.step", kStart + 40),
                                      annotation("END", "Optimizer.step#Sharded.step", kStart + 45),
                                      annotation("START", "Optimizer.step#Sharded.step", kStart + 60)};
    const auto trace = load(snapshot({}, events, annotations));
    ASSERT_EQ(trace->steps.size(), 2U);
    EXPECT_EQ(trace->steps[0].start, 0);  // time 0 is at 5 us
    EXPECT_EQ(trace->steps[0].end, 21'000);
    EXPECT_EQ(trace->steps[1].number, 1);
    EXPECT_EQ(trace->steps[1].start, 21'000);
    EXPECT_EQ(trace->steps[1].end, 40'000);
    EXPECT_EQ(analysis::memory_report(*trace, {.last_step = 0}).ranks[0].peak_bytes, 512);
    EXPECT_EQ(analysis::memory_report(*trace, {.first_step = 1}).ranks[0].peak_bytes, 1024);

    annotations.push_back(annotation("START", "ProfilerStep#7", kStart + 8));
    annotations.push_back(annotation("END", "ProfilerStep#7", kStart + 48));
    const auto marked = load(snapshot({}, events, annotations));
    ASSERT_EQ(marked->steps.size(), 1U);
    EXPECT_EQ(marked->steps[0].number, 7);
    EXPECT_EQ(marked->steps[0].end, 43'000);
}

TEST(MemorySnapshot, ThePeakIsThatOfActiveBytesIncludingEarlierAllocations) {
    const auto trace = load(small_snapshot());
    EXPECT_EQ(trace->start_utc_ns, kStart * 1000);
    const analysis::RankMemory rank = analysis::memory_report(*trace).ranks.at(0);
    EXPECT_EQ(rank.peak_bytes, 4096 + 1024 + 2048);
    EXPECT_EQ(rank.peak_time_ns, 30'000);  // the last event of the allocator in the step
    EXPECT_TRUE(rank.until_last_use);
    EXPECT_EQ(at(rank.at_peak, schema::MemoryCategory::unsharded_parameters), 1024);
    EXPECT_EQ(at(rank.at_peak, schema::MemoryCategory::communication), 2048);
    EXPECT_EQ(at(rank.at_peak, schema::MemoryCategory::other), 4096);
    EXPECT_EQ(std::accumulate(rank.at_peak.begin(), rank.at_peak.end(), std::int64_t{0}), rank.peak_bytes);
    EXPECT_THAT(names(rank.annotations), ElementsAre(Pair("(before the recording)", 4096),
                                                     Pair("FSDP::post_backward_reduce (layers.0)", 2048),
                                                     Pair("FSDP::all_gather (layers.0)", 1024)));
}

TEST(MemorySnapshot, FragmentationIsOfTheFreeBlocksInsideSegments) {
    // At the peak 65536 bytes are reserved, of which 4096 (between +4096 and +8192), 7168 (from +9216 to
    // +16384) and 47104 (from +18432 on) are free: 58368 in 3 blocks.
    const auto trace = load(small_snapshot());
    const analysis::Fragmentation f = analysis::memory_report(*trace).ranks.at(0).fragmentation.value();
    EXPECT_EQ(f.held_bytes, 65536);
    EXPECT_EQ(f.segments, 1);
    EXPECT_EQ(f.free_bytes, 4096 + 7168 + 47104);
    EXPECT_EQ(f.free_blocks, 3);
    EXPECT_EQ(f.largest_free, 47104);
    EXPECT_DOUBLE_EQ(f.percent(), 100.0 * (1 - 47104.0 / 58368.0));
}

TEST(MemorySnapshot, SegmentsThatGrowAndShrinkAreHeldWhereTheyAre) {
    // Reserved at the end: 8 KiB at +0. Backwards: +4096 was mapped at 20, +8192 unmapped at 30. So at first
    // [+0, +4096) and [+8192, +12288) are reserved: 8192 bytes; then 12288; then 8192.
    const auto trace =
        load(snapshot({segment(0, kBase, 8192, {block(kBase, 8192, "inactive")})},
                      {pickled::list({event("alloc", kBase, 512, kStart + 10),
                                      event("segment_map", kBase + 4096, 4096, kStart + 20),
                                      event("free_completed", kBase, 512, kStart + 25),
                                      event("segment_unmap", kBase + 8192, 4096, kStart + 30)})}));
    std::vector<std::pair<std::int64_t, double>> reserved;
    for (std::size_t i = 0; i < trace->counters.size(); ++i) {
        if (trace->strings[trace->counters.name[i]] == "reserved_bytes")
            reserved.emplace_back(trace->counters.time[i], trace->counters.value[i]);
    }
    // Time 0 is the first event's: at 10 us.
    EXPECT_THAT(reserved, ElementsAre(Pair(0, 4096), Pair(0, 8192), Pair(10'000, 12288), Pair(20'000, 8192)));
}

TEST(MemorySnapshot, AllocatedBytesEndWhereAFreeIsRequested) {
    // 7168 at 20 us, counted as active; 3072 from the request at 30 us on; 3584 at 50 us.
    const auto trace = load(small_snapshot());
    EXPECT_EQ(analysis::explain_memory(*trace).ranks.at(0).pool.allocated_peak_bytes, 7168);
    std::vector<std::pair<std::int64_t, double>> allocated;
    for (std::size_t i = 0; i < trace->counters.size(); ++i) {
        if (trace->strings[trace->counters.name[i]] == "allocated_bytes")
            allocated.emplace_back(trace->counters.time[i], trace->counters.value[i]);
    }
    EXPECT_THAT(allocated,
                ElementsAre(Pair(10'000, 5120), Pair(20'000, 7168), Pair(30'000, 3072), Pair(50'000, 3584)));
}

TEST(MemorySnapshot, TheRoundingOfBlocksIsNamedSoThatTotalsAreThoseOfTheAllocator) {
    // The allocation of 100 bytes stays until the end in a block of 512, so 412 more bytes count from the
    // beginning on.
    const auto trace = load(snapshot({segment(0, kBase, 4096, {block(kBase, 512, "active_allocated")})},
                                     {pickled::list({event("alloc", kBase, 100, kStart)})}));
    const analysis::RankMemory rank = analysis::memory_report(*trace).ranks.at(0);
    EXPECT_EQ(rank.peak_bytes, 512);
    EXPECT_THAT(names(rank.annotations),
                ElementsAre(Pair("(rounding of blocks)", 412), Pair("(no annotation)", 100)));
}

TEST(MemorySnapshot, OfEqualPeaksTheLatestCounts) {
    // 512 bytes twice: a replay from the end meets the second allocation first, when its free is requested.
    const auto trace = load(snapshot(
        {}, {pickled::list(
                {event("alloc", kBase, 512, kStart), event("free_requested", kBase, 512, kStart + 1),
                 event("free_completed", kBase, 512, kStart + 2), event("alloc", kBase, 512, kStart + 3),
                 event("free_requested", kBase, 512, kStart + 4),
                 event("free_completed", kBase, 512, kStart + 5)})}));
    EXPECT_EQ(analysis::memory_report(*trace).ranks.at(0).peak_time_ns, 4000);
}

TEST(MemorySnapshot, StacksShowThePlaceAndTheCategory) {
    const std::vector<Bytes> forward = {
        frame("??", 0, "at::empty"), frame("/x/torch/nn/modules/linear.py", 125, "forward"),
        frame("/home/me/models/gpt.py", 40, "block"), frame("train.py", 9, "<module>")};
    const std::vector<Bytes> optimizer = {frame("/x/torch/optim/adamw.py", 7, "_init_group"),
                                          frame("train.py", 12, "step")};
    const auto trace =
        load(snapshot({}, {pickled::list({event("alloc", kBase, 300, kStart, forward),
                                          event("alloc", kBase + 1024, 200, kStart + 1, optimizer),
                                          event("alloc", kBase + 2048, 100, kStart + 2, forward),
                                          event("free_completed", kBase, 300, kStart + 3),
                                          event("free_completed", kBase + 1024, 200, kStart + 3),
                                          event("free_completed", kBase + 2048, 100, kStart + 3)})}));
    const analysis::RankMemory rank = analysis::memory_report(*trace).ranks.at(0);
    EXPECT_EQ(rank.peak_bytes, 600);
    EXPECT_EQ(at(rank.at_peak, schema::MemoryCategory::activations), 400);
    EXPECT_EQ(at(rank.at_peak, schema::MemoryCategory::optimizer_state), 200);
    ASSERT_THAT(names(rank.stacks),
                ElementsAre(Pair("models/gpt.py:40 block", 400), Pair("train.py:12 step", 200)));
    EXPECT_EQ(rank.stacks[0].stack,
              "at::empty\n/x/torch/nn/modules/linear.py:125 forward\n/home/me/models/gpt.py:40 block\n"
              "train.py:9 <module>");
    const analysis::PeakMoment moment = analysis::explain_memory(*trace).ranks.at(0).moment;
    EXPECT_EQ(moment.bytes, 100);
    EXPECT_THAT(moment.stack, HasSubstr("gpt.py:40"));
}

// The gradients of a weight (1000) and of an activation (300) are made by the same function; the optimizer's
// moments (2000) make the peak. Of the two, only the weight's gradient is allocated when the optimizer steps.
TEST(MemorySnapshot, BlocksThatTheBackwardMadeAndTheOptimizerUsesAreGradients) {
    const std::vector<Bytes> backward = {frame("??", 0, "BmmBackward0::apply"),
                                         frame("??", 0, "torch::autograd::Engine::evaluate_function")};
    const std::vector<Bytes> moments = {frame("/home/me/adamw.py", 30, "step"),
                                        frame("/x/torch/optim/optimizer.py", 485, "wrapper")};
    const std::vector<Bytes> events = {
        pickled::list({event("alloc", kBase, 1000, kStart + 10, backward),
                       event("alloc", kBase + 4096, 300, kStart + 11, backward),
                       event("free_completed", kBase + 4096, 300, kStart + 12),
                       event("alloc", kBase + 8192, 2000, kStart + 21, moments),
                       event("free_completed", kBase, 1000, kStart + 40),
                       event("free_completed", kBase + 8192, 2000, kStart + 41)})};
    const std::vector<Bytes> annotations = {annotation("START", "Optimizer.step#AdamW.step", kStart + 20),
                                            annotation("END", "Optimizer.step#AdamW.step", kStart + 30)};
    for (const auto& told : {annotations, std::vector<Bytes>{}}) {  // without annotations the stack shows it
        const auto trace = load(snapshot({}, events, told));
        const analysis::RankMemory rank = analysis::memory_report(*trace).ranks.at(0);
        EXPECT_EQ(rank.peak_bytes, 3000);
        EXPECT_EQ(at(rank.at_peak, schema::MemoryCategory::gradients), 1000);
        EXPECT_EQ(at(rank.at_peak, schema::MemoryCategory::activations), 0);
        EXPECT_EQ(at(rank.at_peak, schema::MemoryCategory::optimizer_state), 2000);
        const analysis::RankMemory before =
            analysis::memory_report(*trace, {.from_ns = 0, .to_ns = 2'000}).ranks.at(0);
        EXPECT_EQ(at(before.at_peak, schema::MemoryCategory::activations), 300);
    }
}

// cuBLAS requested its workspace in the backward, and keeps it.
TEST(MemorySnapshot, AWorkspaceThatTheBackwardMadeIsNotAGradient) {
    const std::vector<Bytes> workspace = {frame("??", 0, "at::cuda::setWorkspaceForHandle(cublasContext*)"),
                                          frame("??", 0, "torch::autograd::Engine::evaluate_function")};
    const auto trace = load(snapshot({},
                                     {pickled::list({event("alloc", kBase, 1000, kStart + 10, workspace),
                                                     event("alloc", kBase + 4096, 64, kStart + 30)})},
                                     {annotation("START", "Optimizer.step#AdamW.step", kStart + 20)}));
    const analysis::RankMemory rank = analysis::memory_report(*trace).ranks.at(0);
    EXPECT_EQ(at(rank.at_peak, schema::MemoryCategory::gradients), 0);
    EXPECT_EQ(at(rank.at_peak, schema::MemoryCategory::other), 1000);
}

// FSDP2 keeps a gradient's shard in the buffer that the reduce-scatter filled.
TEST(MemorySnapshot, AReducedShardThatIsLiveInTheOptimizersStepIsAGradient) {
    const auto trace = load(snapshot(
        {},
        {pickled::list(
            {event("alloc", kBase, 4000, kStart + 1), event("alloc", kBase + 8192, 1000, kStart + 2),
             event("free_completed", kBase, 4000, kStart + 10), event("alloc", kBase, 64, kStart + 30)})},
        {annotation("START", "FSDP::post_backward_reduce (net)", kStart),
         annotation("END", "FSDP::post_backward_reduce (net)", kStart + 5),
         annotation("START", "Optimizer.step#AdamW.step", kStart + 20),
         annotation("END", "Optimizer.step#AdamW.step", kStart + 40)}));
    const analysis::RankMemory peak = analysis::memory_report(*trace).ranks.at(0);
    EXPECT_EQ(at(peak.at_peak, schema::MemoryCategory::communication), 4000);
    EXPECT_EQ(at(peak.at_peak, schema::MemoryCategory::gradients), 1000);
}

TEST(MemorySnapshot, AFailedAllocationIsAnErrorWithItsCircumstances) {
    const auto trace =
        load(snapshot({segment(0, kBase, 2 << 20, {block(kBase, 1 << 20, "active_allocated")})},
                      {pickled::list({event("oom", 3 << 20, 64 << 20, kStart + 7)})},
                      {annotation("START", "FSDP::all_gather (head)", kStart)}));
    const analysis::RankMemory rank = analysis::memory_report(*trace).ranks.at(0);
    ASSERT_EQ(rank.failures.size(), 1u);
    EXPECT_EQ(rank.failures[0].time_ns, 7000);
    EXPECT_EQ(rank.failures[0].text,
              "Out of memory on rank 0: requested 64.00 MiB (67108864 bytes); 1.00 MiB (1048576 bytes) were "
              "active, 2.00 MiB (2097152 bytes) reserved by the allocator"
              ", 3.00 MiB (3145728 bytes) free on the device: 61.00 MiB "
              "(63963136 bytes) were missing; of the reserved memory 1.00 MiB (1048576 bytes) were cached, "
              "but no block was large enough"
              "; under FSDP::all_gather (head)");
    EXPECT_THAT(render(analysis::memory_report(*trace), report::Format::table), HasSubstr("Out of memory"));
}

TEST(MemorySnapshot, EachDeviceIsARankUnlessItIsEmpty) {
    const auto trace = load(snapshot({segment(2, kBase, 4096, {block(kBase, 512, "active_allocated")})},
                                     {pickled::list({event("alloc", kBase, 256, kStart)}), pickled::list({}),
                                      pickled::list({event("alloc", kBase, 512, kStart + 1)})}));
    const analysis::MemoryReport report = analysis::memory_report(*trace);
    ASSERT_EQ(report.ranks.size(), 2u);
    EXPECT_EQ(report.ranks[0].rank, 0);
    EXPECT_EQ(report.ranks[1].rank, 2);
    EXPECT_EQ(report.ranks[1].peak_bytes, 512);
    // A single device gets the requested rank.
    const auto one = load(snapshot({segment(0, kBase, 512, {})}, {}), {.rank = 5});
    EXPECT_EQ(one->ranks.at(0).number, 5);
    // In one of several files a single device belongs to the rank, and a note names the others.
    const auto several = load(snapshot({}, {pickled::list({event("alloc", kBase, 256, kStart)}),
                                            pickled::list({event("alloc", kBase, 1, kStart),
                                                           event("free_completed", kBase, 1, kStart)})}),
                              {.rank = 3, .one_of_several = true});
    ASSERT_EQ(several->ranks.size(), 1u);
    EXPECT_EQ(several->ranks[0].number, 3);
    EXPECT_EQ(analysis::memory_report(*several).ranks[0].peak_bytes, 1);
    EXPECT_THAT(several->diagnostics.at(0).text, HasSubstr("device 0 of a snapshot was ignored"));
}

TEST(MemorySnapshot, WithoutHistoryItShowsOneMoment) {
    // As PyTorch 1.x dumps it: only the list of segments, and blocks without addresses.
    const Bytes old_block = pickled::members({{"size", pickled::integer(512)},
                                              {"state", pickled::text("active_allocated")},
                                              {"history", pickled::list({})}});
    const Bytes free_block =
        pickled::members({{"size", pickled::integer(1024)}, {"state", pickled::text("inactive")}});
    const auto trace =
        load(pickled::whole(pickled::list({segment(0, kBase, 2048, {old_block, free_block, old_block})})));
    const analysis::RankMemory rank = analysis::memory_report(*trace).ranks.at(0);
    EXPECT_EQ(rank.peak_bytes, 1024);
    EXPECT_EQ(rank.fragmentation.value().largest_free, 1024);
    EXPECT_THAT(trace->diagnostics.at(0).text, HasSubstr("no history"));
}

TEST(MemorySnapshot, AnEventTakesAMicrosecondIfTimesAreMissing) {
    const auto timeless = [](const char* action, std::int64_t bytes) {
        return pickled::members({{"action", pickled::text(action)},
                                 {"addr", pickled::integer(kBase)},
                                 {"size", pickled::integer(bytes)}});
    };
    const auto trace =
        load(snapshot({}, {pickled::list({timeless("alloc", 512), timeless("free_completed", 512)})}));
    EXPECT_THAT(trace->memory.time, ElementsAre(0, 1000));
    EXPECT_EQ(trace->start_utc_ns, 0);
}

TEST(MemorySnapshot, ACutSnapshotIsKeptForwardOnDemand) {
    const Bytes whole = small_snapshot();
    const Bytes cut = whole.substr(0, whole.find("free_requested"));
    EXPECT_THROW(load(cut), store::StoreError);
    const auto trace = load(cut, {.partial = true});
    // What was allocated before is unknown: only the two recorded allocations are counted.
    EXPECT_EQ(analysis::memory_report(*trace).ranks.at(0).peak_bytes, 1024 + 2048);
    EXPECT_EQ(trace->config_value("import.partial"), "1");
}

TEST(MemorySnapshot, OddValuesAreLeftOutAndCounted) {
    const auto trace = load(
        snapshot({}, {pickled::list({event("alloc", kBase, 512, kStart), event("alloc", kBase, -1, kStart),
                                     event("alloc", kBase, std::int64_t{1} << 60, kStart),
                                     pickled::members({{"action", pickled::text("alloc")}})})}));
    EXPECT_EQ(analysis::memory_report(*trace).ranks.at(0).peak_bytes, 512);
    EXPECT_THAT(trace->diagnostics.at(0).text, HasSubstr("3 entries"));
    // A block that is allocated and never freed should be live at the end; it is not, and that is reported.
    EXPECT_THAT(trace->diagnostics.at(1).text, HasSubstr("512 bytes that the events allocate are neither"));
}

TEST(MemorySnapshot, OtherPicklesAreNotSnapshots) {
    try {
        load(pickled::whole(pickled::list({pickled::integer(1)})));
        FAIL();
    } catch (const store::StoreError& error) {
        EXPECT_THAT(error.what(), HasSubstr("neither a memory snapshot"));
    }
}

// --- a real one --------------------------------------------------------------------------------------------

// An independent replay in a few lines, over the values themselves: backwards from the blocks allocated at
// the end, taking the latest of equal peaks.
TEST(MemorySnapshot, TheRealSnapshotsPeakEqualsAnIndependentReplay) {
    const std::string path = (shared_folder() / "memory" / "fsdp2_rank0.pickle.gz").string();
    if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
    Input input = Input::open(path);
    const ParsedPickle pickle = parse_pickle(input);
    const Value root = pickle.tree.root();

    std::int64_t total = 0;
    for (std::size_t s = 0; s < root["segments"].size(); ++s) {
        const Value blocks = root["segments"][s]["blocks"];
        for (std::size_t b = 0; b < blocks.size(); ++b) {
            if (blocks[b]["state"].text() == "active_allocated") total += *blocks[b]["size"].integer();
        }
    }
    const std::int64_t total_at_end = total;
    const Value events = root["device_traces"][0];
    std::int64_t peak = total;
    std::size_t peak_index = events.size();
    for (std::size_t i = events.size(); i-- > 0;) {
        if (total > peak) {
            peak = total;
            peak_index = i;
        }
        if (events[i]["action"].text() == "alloc") total -= *events[i]["size"].integer();
        if (events[i]["action"].text() == "free_completed") total += *events[i]["size"].integer();
    }
    // Bytes by the innermost open annotation: those allocated by the time of the peak and not freed.
    std::map<std::string, std::int64_t> holders;
    std::map<std::int64_t, std::pair<std::string, std::int64_t>> live;
    const Value edges = root["external_annotations"];
    std::vector<std::string> open;
    for (std::size_t i = 0, edge = 0; i <= peak_index; ++i) {
        for (; edge < edges.size() && *edges[edge]["time_us"].integer() <= *events[i]["time_us"].integer();
             ++edge) {
            const std::string name(edges[edge]["name"].text());
            if (edges[edge]["stage"].text() == "START")
                open.push_back(name);
            else
                open.erase(std::next(std::find(open.rbegin(), open.rend(), name)).base());
        }
        const std::int64_t address = events[i]["addr"].integer().value_or(0);
        if (events[i]["action"].text() == "alloc")
            live[address] = {open.empty() ? "(no annotation)" : open.back(), *events[i]["size"].integer()};
        if (events[i]["action"].text() == "free_completed") live.erase(address);
    }
    for (const auto& [address, holder] : live) holders[holder.first] += holder.second;

    const auto trace = load_file(path);
    const analysis::RankMemory rank = analysis::memory_report(*trace).ranks.at(0);
    EXPECT_EQ(total_at_end, 60'707'840);
    EXPECT_EQ(rank.peak_bytes, peak);
    EXPECT_EQ(trace->start_utc_ns + rank.peak_time_ns, *events[peak_index]["time_us"].integer() * 1000);
    EXPECT_EQ(std::accumulate(rank.at_peak.begin(), rank.at_peak.end(), std::int64_t{0}), peak);
    // All annotations, and one more row for the rounding of blocks (total is now what was allocated at the
    // start).
    EXPECT_EQ(rank.annotations.size(), holders.size() + 1);
    for (const analysis::MemoryHolder& holder : rank.annotations)
        EXPECT_EQ(holder.bytes, holder.name == store::kRoundingOfBlocks ? total : holders[holder.name])
            << holder.name;
    // Other programs found the same numbers (expected.json).
    EXPECT_EQ(peak, 2'737'575'168);
    EXPECT_EQ(peak_index, 5658u);
    EXPECT_EQ(*events[peak_index]["time_us"].integer(), 1'772'745'414'745'037);
    // The tree takes at most 3 bytes of memory for each byte of the pickle.
    EXPECT_LT(pickle.tree.memory(), 3 * input.offset());
}

TEST(StackText, TheMostInformativeFrameIsChosen) {
    const auto chosen = [](std::string_view stack) { return store::short_frame(store::asking_frame(stack)); };
    // The program's own frame is preferred to PyTorch's, and that to the operator.
    EXPECT_EQ(chosen("at::empty\nat::_ops::bmm::call(at::Tensor const&)\n/x/torch/nn/linear.py:1 forward\n"
                     "/home/me/models/gpt.py:7 block\nmain.py:3 main"),
              "models/gpt.py:7 block");
    EXPECT_EQ(chosen("at::empty\n/x/torch/nn/linear.py:1 forward"), "nn/linear.py:1 forward");
    // The backward pass has no Python frames.
    EXPECT_EQ(chosen("torch::unwind::unwind()\nat::empty\nat::_ops::bmm::call(at::Tensor const&)\n"
                     "torch::autograd::generated::BmmBackward0::apply(std::vector<at::Tensor>&&)"),
              "BmmBackward0::apply");
    EXPECT_EQ(chosen("at::empty\nat::_ops::bmm::call(at::Tensor const&)"), "at::_ops::bmm::call");
    EXPECT_EQ(chosen("torch::unwind::unwind()\nat::empty"), "at::empty");
    EXPECT_EQ(chosen(""), "");
}

// --- the table of categories -------------------------------------------------------------------------------

TEST(MemoryOrigin, TheFirstRuleThatFitsCounts) {
    EXPECT_EQ(store::category_of_origin("FSDP::all_gather_copy_out (layers.0)"),
              schema::MemoryCategory::unsharded_parameters);
    EXPECT_EQ(store::category_of_origin("nccl:_reduce_scatter_base"), schema::MemoryCategory::communication);
    EXPECT_EQ(store::category_of_origin("FullyShardedDataParallel._pre_forward_unshard"),
              schema::MemoryCategory::unsharded_parameters);
    EXPECT_EQ(store::category_of_origin("Optimizer.step#AdamW.step"),
              schema::MemoryCategory::optimizer_state);
    EXPECT_EQ(store::category_of_origin("forward"), schema::MemoryCategory::other);
    // The innermost informative frame.
    const auto category_of_stack = [](std::string_view stack) {
        const store::OriginRule* rule = store::rule_of_stack(stack);
        return rule != nullptr ? rule->category : schema::MemoryCategory::other;
    };
    EXPECT_EQ(category_of_stack(
                  "at::empty\n/x/torch/optim/adam.py:3 step\n/x/torch/nn/modules/module.py:9 _call_impl"),
              schema::MemoryCategory::optimizer_state);
    EXPECT_EQ(category_of_stack("/x/torch/nn/modules/module.py:9 _call_impl\n/x/torch/optim/adam.py:3 step"),
              schema::MemoryCategory::activations);
    EXPECT_EQ(
        category_of_stack("/x/torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py:5 foreach_reduce"),
        schema::MemoryCategory::communication);
    EXPECT_EQ(category_of_stack("main.py:1 reduce_all"), schema::MemoryCategory::other);
    EXPECT_EQ(category_of_stack(""), schema::MemoryCategory::other);
}

TEST(MemoryOrigin, ThePageHasEveryRule) {
    const std::string page = bytes_of(SHARDSCOPE_FOREIGN_MEMORY_PAGE);
    std::size_t at = 0;
    const auto expect = [&](const std::string& line) {
        const std::size_t found = page.find(line, at);
        EXPECT_NE(found, std::string::npos) << line;
        if (found != std::string::npos) at = found;  // ids in the same order
    };
    const auto part = [](std::string_view text) {
        return text.empty() ? "any" : "`" + std::string(text) + "`";
    };
    const auto rest = [](const store::OriginRule& rule) {
        return " | " + std::string(name(rule.category)) + " | " +
               std::string(rule.in_step ? name(*rule.in_step) : "") + (rule.in_step ? " | " : "| ") +
               std::string(rule.reason) + " |";
    };
    for (const store::OriginRule& rule : store::annotation_rules())
        expect("| " + part(rule.name) + rest(rule));
    for (const store::OriginRule& rule : store::frame_rules())
        expect("| " + part(rule.file) + " | " + part(rule.name) + rest(rule));
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::importer
