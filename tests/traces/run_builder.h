// Builds small runs for tests of the analyses, in memory, in nanoseconds. Each rank has one device, one host
// thread and numbered streams; a device event is launched by a runtime call of 1 ns on the rank's thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "traces/store/columns/column_sink.h"

namespace shardscope::traces {

struct TestCollective {
    schema::Operation operation = schema::Operation::all_gather;
    std::int64_t bytes = 0;
    std::int64_t sequence = 0;
    std::int64_t group = 0;
    int group_size = 1;
    int unit = -1;
    std::optional<std::int64_t> launched = {};
    int stream = 20;
};

struct TestMemory {
    schema::MemoryCategory category = schema::MemoryCategory::other;
    int unit = -1, module = -1;
    schema::Phase phase = schema::Phase::none;
    schema::MemorySpace space = schema::MemorySpace::device;
    std::string_view name = "";
};

class RunBuilder {
  public:
    // With `ranks_per_host` the hosts are "node0", "node1" ...; otherwise all ranks are on "host".
    explicit RunBuilder(int ranks = 1, int ranks_per_host = 0) {
        for (int r = 0; r < ranks; ++r) {
            sink_.add(schema::RankRow{
                .rank = r,
                .device = r,
                .global_pid = pid(r),
                .global_tid = tid(r),
                .host = ranks_per_host > 0 ? "node" + std::to_string(r / ranks_per_host) : "host",
                .device_name = "processor",
                .local_rank = ranks_per_host > 0 ? r % ranks_per_host : -1,
                .cpus = {}});
            sink_.add(schema::ThreadRow{.global_tid = tid(r), .name = "rank", .rank = r});
        }
    }

    static std::int64_t pid(int rank) { return schema::global_pid(100 + rank); }
    static std::int64_t tid(int rank) { return schema::global_tid(100 + rank, 100 + rank); }
    // A second host thread of a rank, like autograd's.
    static std::int64_t other_tid(int rank) { return schema::global_tid(100 + rank, 200 + rank); }

    store::ColumnSink& sink() { return sink_; }

    void step(int rank, std::int64_t number, std::int64_t start, std::int64_t end) {
        sink_.add(schema::StepRow{
            .rank = rank, .step = number, .start = start, .end = end, .global_tid = tid(rank)});
    }

    // `launched`: when the launching call starts; nullopt for an event without a launch. Returns the
    // correlation id.
    std::int64_t kernel(int rank, std::int64_t start, std::int64_t end,
                        std::optional<std::int64_t> launched = {}, int stream = 7,
                        std::string_view name = "gemm") {
        const std::int64_t id = launch(rank, launched);
        sink_.add(schema::KernelRow{.start = start,
                                    .end = end,
                                    .device = rank,
                                    .stream = stream,
                                    .correlation = id,
                                    .global_pid = pid(rank),
                                    .short_name = sink_.intern(name)});
        return id;
    }
    void memcpy(int rank, std::int64_t start, std::int64_t end, std::optional<std::int64_t> launched = {},
                int stream = 8) {
        copy(rank, start, end, launched, stream, 64, schema::kCopyHostToDevice);
    }
    // `kind`: kCopyDiskToHost or kCopyHostToDisk.
    void file(int rank, int kind, std::int64_t start, std::int64_t end,
              std::optional<std::int64_t> launched = {}, int stream = 10) {
        copy(rank, start, end, launched, stream, 400, kind);
    }
    void memset(int rank, std::int64_t start, std::int64_t end, std::optional<std::int64_t> launched = {},
                int stream = 9) {
        sink_.add(schema::MemsetRow{.start = start,
                                    .end = end,
                                    .device = rank,
                                    .stream = stream,
                                    .correlation = launch(rank, launched),
                                    .global_pid = pid(rank),
                                    .bytes = 64});
    }
    void collective(int rank, std::int64_t start, std::int64_t end, const TestCollective& c) {
        const std::int64_t id = kernel(rank, start, end, c.launched, c.stream, "ncclDevKernel_Something");
        sink_.add(schema::CollectiveRow{.rank = rank,
                                        .correlation = id,
                                        .operation = c.operation,
                                        .bytes = c.bytes,
                                        .group = c.group,
                                        .group_size = c.group_size,
                                        .sequence = c.sequence,
                                        .unit = c.unit});
    }
    void runtime(int rank, std::int64_t start, std::int64_t end,
                 std::string_view name = "cudaStreamWaitEvent") {
        sink_.add(schema::RuntimeRow{.start = start,
                                     .end = end,
                                     .global_tid = tid(rank),
                                     .correlation = ++last_id_,
                                     .name = sink_.intern(name)});
    }
    void range(int rank, std::int64_t start, std::int64_t end, std::string_view name, int module = -1,
               std::string_view domain = "") {
        range_on(tid(rank), start, end, name, module, domain);
    }
    void range_on(std::int64_t thread, std::int64_t start, std::int64_t end, std::string_view name,
                  int module = -1, std::string_view domain = "") {
        sink_.add(schema::RangeRow{.start = start,
                                   .end = end,
                                   .text = sink_.intern(name),
                                   .domain = sink_.intern(domain),
                                   .global_tid = thread,
                                   .module = module});
    }
    void allocate(int rank, std::int64_t time, std::uint64_t address, std::int64_t bytes,
                  const TestMemory& m = {}) {
        sink_.add(schema::MemoryRow{.time = time,
                                    .rank = rank,
                                    .address = address,
                                    .bytes = bytes,
                                    .category = m.category,
                                    .space = m.space,
                                    .phase = m.phase,
                                    .unit = m.unit,
                                    .module = m.module,
                                    .name = sink_.intern(m.name)});
    }
    void free(int rank, std::int64_t time, std::uint64_t address, std::int64_t bytes,
              const TestMemory& m = {}) {
        allocate(rank, time, address, -bytes, m);
    }

    std::unique_ptr<store::Trace> take() { return sink_.take(); }

  private:
    void copy(int rank, std::int64_t start, std::int64_t end, std::optional<std::int64_t> launched,
              int stream, std::int64_t bytes, int kind) {
        sink_.add(schema::MemcpyRow{.start = start,
                                    .end = end,
                                    .device = rank,
                                    .stream = stream,
                                    .correlation = launch(rank, launched),
                                    .global_pid = pid(rank),
                                    .bytes = bytes,
                                    .copy_kind = kind});
    }
    std::int64_t launch(int rank, std::optional<std::int64_t> launched) {
        const std::int64_t id = ++last_id_;
        if (launched) {
            sink_.add(schema::RuntimeRow{.start = *launched,
                                         .end = *launched + 1,
                                         .global_tid = tid(rank),
                                         .correlation = id,
                                         .name = sink_.intern("cudaLaunchKernel_v7000")});
        }
        return id;
    }

    store::ColumnSink sink_;
    std::int64_t last_id_ = 0;
};

}  // namespace shardscope::traces
