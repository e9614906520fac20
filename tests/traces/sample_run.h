// A small complete run with at least one row of every kind, for tests of the store and of the tool: 2 ranks
// in one process, 2 steps of 1 ms, a root module with one Linear, one FSDP unit. Written to any EventSink.
//
//   step s of rank r starts at s ms (+ 10 us for rank 1); in it, counted from its start:
//       0 us   range ProfilerStep#s, 1000 us long; in it
//      50 us   range nn.Module: FullyShardedDataParallel_0, 400 us long; in it
//      60 us   range ncclAllGather (domain NCCL), 10 us; a call launches the gather at 62 us
//     100 us   gather of 4096 bytes on stream 2, 50 us
//     150 us   range nn.Module: Linear_0, 200 us long; a call launches the kernel at 160 us
//     200 us   kernel sgemm on stream 1, 300 us
//     600 us   memcpy of 1024 bytes to the device on stream 1, 20 us
//     700 us   memset of 512 bytes on stream 1, 5 us
//   memory of each rank: 1000 bytes of parameters from the start; 4096 of unsharded parameters in each step
//   from 90 to 560 us: the peak is 5096 bytes.
#pragma once

#include "traces/store/sink.h"

namespace shardscope::traces {

inline constexpr int kSampleRanks = 2, kSampleSteps = 2;
inline constexpr std::int64_t kSampleUs = 1000, kSampleMs = 1'000'000;

inline std::int64_t sample_pid() {
    return schema::global_pid(4242);
}
inline std::int64_t sample_tid(int rank) {
    return schema::global_tid(4242, 5000 + rank);
}
inline std::int64_t sample_step_start(int rank, int step) {
    return step * kSampleMs + rank * 10 * kSampleUs;
}

inline void write_sample_facts(store::EventSink& sink) {
    sink.add(schema::RunInfoRow{"model.width", "256"});
    sink.add(schema::RunInfoRow{"parallel.mode", "fsdp"});
    sink.add(schema::ProcessRow{.global_pid = sample_pid(), .pid = 4242, .name = "shardscope-train"});
    sink.add(schema::ModuleRow{.id = 0,
                               .parent = -1,
                               .name = "FullyShardedDataParallel_0",
                               .class_name = "FullyShardedDataParallel",
                               .path = "",
                               .unit = 0,
                               .parameters = 0});
    sink.add(schema::ModuleRow{.id = 1,
                               .parent = 0,
                               .name = "Linear_0",
                               .class_name = "Linear",
                               .path = "net.0",
                               .unit = 0,
                               .parameters = 1000});
    sink.add(schema::UnitRow{.id = 0,
                             .module = 0,
                             .name = "root",
                             .elements = 1000,
                             .padded_elements = 1024,
                             .shard_bytes = 2048,
                             .bytes = 4096});
    for (int r = 0; r < kSampleRanks; ++r) {
        sink.add(schema::RankRow{.rank = r,
                                 .device = r,
                                 .global_pid = sample_pid(),
                                 .global_tid = sample_tid(r),
                                 .host = "laptop",
                                 .device_name = "A processor",
                                 .device_memory = 1 << 30,
                                 .data = 0,
                                 .shard = r,
                                 .tensor = 0,
                                 .pipeline = 0});
        sink.add(
            schema::ThreadRow{.global_tid = sample_tid(r), .name = r == 0 ? "rank 0" : "rank 1", .rank = r});
        sink.add(schema::StreamRow{.rank = r, .stream = 1, .name = "compute"});
        sink.add(schema::StreamRow{.rank = r, .stream = 2, .name = "unshard"});
        schema::PredictionRow prediction{
            .rank = r, .peak_bytes = 5096, .at_peak = {}, .where = "forward of root"};
        prediction.at_peak[static_cast<int>(schema::MemoryCategory::parameters)] = 1000;
        prediction.at_peak[static_cast<int>(schema::MemoryCategory::unsharded_parameters)] = 4096;
        sink.add(prediction);
        const auto part = [&](schema::PredictionPart kind, std::int64_t id, std::int64_t bytes,
                              const char* name) {
            sink.add(
                schema::PredictionPartRow{.rank = r, .kind = kind, .id = id, .bytes = bytes, .name = name});
        };
        part(schema::PredictionPart::unit, 0, 5096, "");
        part(schema::PredictionPart::module, 0, 4096, "");
        part(schema::PredictionPart::module, -1, 1000, "");
        part(schema::PredictionPart::buffer, -1, 4096, "root flat_param");
        part(schema::PredictionPart::buffer, -1, 1000, "root shard");
        part(schema::PredictionPart::step, 0, 5096, "");
        sink.add(schema::MemoryRow{.time = sample_step_start(r, 0),
                                   .rank = r,
                                   .address = 0x1000,
                                   .bytes = 1000,
                                   .category = schema::MemoryCategory::parameters,
                                   .space = schema::MemorySpace::device,
                                   .phase = schema::Phase::setup,
                                   .unit = 0,
                                   .name = sink.intern("root shard")});
        sink.add(schema::MemoryRow{.time = sample_step_start(r, 0) + kSampleUs,
                                   .rank = r,
                                   .address = 0x2000,
                                   .bytes = 64,
                                   .category = schema::MemoryCategory::other,
                                   .space = schema::MemorySpace::host,
                                   .phase = schema::Phase::data,
                                   .name = sink.intern("batch")});
    }
    sink.add(schema::DiagnosticRow{.time = 5, .severity = schema::Severity::information, .text = "a note"});
}

inline void write_sample_step(store::EventSink& sink, int rank, int step) {
    const std::int64_t t = sample_step_start(rank, step);
    const auto us = [t](std::int64_t after) { return t + after * kSampleUs; };
    const std::int64_t ids = 1 + (rank * kSampleSteps + step) * 10;  // correlation ids, unique in the file
    const auto range = [&](std::string_view text, std::int64_t from, std::int64_t length, int module,
                           std::string_view domain) {
        sink.add(schema::RangeRow{.start = us(from),
                                  .end = us(from + length),
                                  .event_type = schema::kNvtxPushPop,
                                  .text = sink.intern(text),
                                  .domain = sink.intern(domain),
                                  .global_tid = sample_tid(rank),
                                  .color = {},
                                  .module = module});
    };
    const auto call = [&](std::string_view name, std::int64_t from, std::int64_t correlation) {
        sink.add(schema::RuntimeRow{.start = us(from),
                                    .end = us(from + 2),
                                    .global_tid = sample_tid(rank),
                                    .correlation = correlation,
                                    .name = sink.intern(name)});
    };

    sink.add(schema::StepRow{
        .rank = rank, .step = step, .start = us(0), .end = us(1000), .global_tid = sample_tid(rank)});
    range(step == 0 ? "ProfilerStep#0" : "ProfilerStep#1", 0, 1000, -1, "");
    range("nn.Module: FullyShardedDataParallel_0", 50, 400, 0, "");
    range("ncclAllGather", 60, 10, -1, "NCCL");
    range("nn.Module: Linear_0", 150, 200, 1, "");
    sink.add(schema::RangeRow{.start = us(500),
                              .end = {},
                              .event_type = schema::kNvtxMark,
                              .text = sink.intern("a mark"),
                              .global_tid = sample_tid(rank),
                              .category = 7});

    call("cudaLaunchKernelExC_v11060", 62, ids);
    const schema::StringId gather = sink.intern("ncclDevKernel_AllGather_local");
    sink.add(schema::KernelRow{.start = us(100),
                               .end = us(150),
                               .device = rank,
                               .stream = 2,
                               .correlation = ids,
                               .global_pid = sample_pid(),
                               .short_name = gather,
                               .demangled_name = gather});
    sink.add(schema::CollectiveRow{.rank = rank,
                                   .correlation = ids,
                                   .operation = schema::Operation::all_gather,
                                   .bytes = 4096,
                                   .padding = 96,
                                   .group = 7,
                                   .group_size = 2,
                                   .sequence = step,
                                   .unit = 0,
                                   .phase = schema::Phase::forward});

    call("cudaLaunchKernel_v7000", 160, ids + 1);
    sink.add(schema::KernelRow{.start = us(200),
                               .end = us(500),
                               .device = rank,
                               .stream = 1,
                               .correlation = ids + 1,
                               .global_pid = sample_pid(),
                               .short_name = sink.intern("sgemm"),
                               .demangled_name = sink.intern("sgemm(float*, int)"),
                               .grid = {4, 2, 1},
                               .block = {128, 1, 1}});
    call("cudaMemcpyAsync_v3020", 590, ids + 2);
    sink.add(schema::MemcpyRow{.start = us(600),
                               .end = us(620),
                               .device = rank,
                               .stream = 1,
                               .correlation = ids + 2,
                               .global_pid = sample_pid(),
                               .bytes = 1024,
                               .copy_kind = schema::kCopyHostToDevice,
                               .src_kind = schema::kMemKindPinned,
                               .dst_kind = schema::kMemKindDevice});
    call("cudaMemsetAsync_v3020", 690, ids + 3);
    sink.add(schema::MemsetRow{.start = us(700),
                               .end = us(705),
                               .device = rank,
                               .stream = 1,
                               .correlation = ids + 3,
                               .global_pid = sample_pid(),
                               .bytes = 512,
                               .value = 0});
    call("cudaEventSynchronize_v3020", 800, ids + 4);
    sink.add(schema::SynchronizationRow{.start = us(800),
                                        .end = us(802),
                                        .device = rank,
                                        .stream = -1,
                                        .correlation = ids + 4,
                                        .global_pid = sample_pid(),
                                        .sync_type = schema::kSyncEvent,
                                        .event_id = 3});

    for (const bool allocate : {true, false}) {
        sink.add(schema::MemoryRow{.time = us(allocate ? 90 : 560),
                                   .rank = rank,
                                   .address = 0x3000,
                                   .bytes = allocate ? 4096 : -4096,
                                   .category = schema::MemoryCategory::unsharded_parameters,
                                   .space = schema::MemorySpace::device,
                                   .phase = schema::Phase::forward,
                                   .unit = 0,
                                   .module = 0,
                                   .stream = 2,
                                   .name = sink.intern("root flat_param")});
    }
    sink.add(schema::CounterRow{
        .time = us(90), .rank = rank, .name = sink.intern("reserved_bytes"), .value = 8192.5});
    if (rank == 0) sink.add(schema::LossRow{.step = step, .loss = 2.5 - step});
}

inline void write_sample_run(store::EventSink& sink) {
    write_sample_facts(sink);
    for (int step = 0; step < kSampleSteps; ++step) {
        for (int rank = 0; rank < kSampleRanks; ++rank) write_sample_step(sink, rank, step);
    }
}

}  // namespace shardscope::traces
