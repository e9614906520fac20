// Parts of one small job as its processes would have recorded them, for tests of merge and slice.
//
// In the job's time, step s begins at s · 1000 us; in it, on each rank, counted from its start:
//       0 us   range ProfilerStep#s, 900 us; in it
//      10 us   range nn.Module: Linear_0 of module 0, 700 us
//      20 us   ncclAllGather (domain NCCL), 10 us; a call of 2 us launches the gather of 4096 bytes at 22 us
//      50 us   + 5 us · rank: the gather's kernel, until 100 us on all ranks
//     110 us   a call launches the kernel gemm, which runs from 950 to 1050 us: into the next step
//   memory: 1000 bytes of parameters from the start; 4096 of unsharded parameters from 20 to 800 us of each
//   step. counter reserved_bytes: 100 · (s + 1) at the step's start.
// A part's own time is the job's minus `origin_ns`, read on a clock that is `clock_ns` ahead and gains
// `drift` seconds per second.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "traces/store/write/writer.h"

namespace shardscope::traces {

inline constexpr std::int64_t kUs = 1000, kStepNs = 1'000'000;
inline constexpr std::int64_t kJobUtc = 1'800'000'000'000'000'000;  // ns since 1970 when the job began

struct PartSpec {
    std::string path;
    std::vector<int> ranks = {0};
    std::string host = "node0";
    std::int64_t pid = 500;
    int steps = 3;
    std::int64_t origin_ns = 0;  // when the part began, relative to the job
    std::int64_t clock_ns = 0;   // how far its host's clock is ahead
    std::int64_t system_ns = 0;  // its host's CLOCK_MONOTONIC when the job began; 0: unknown
    double drift = 0;
    std::int64_t step_ns = kStepNs;
    std::int64_t late_ns = 0;  // how much later its gathers' kernels end than those of the other parts
    std::vector<schema::ClockRow> clocks;  // `at_ns` in the job's time
    std::vector<schema::StopRow> stops;    // likewise
    std::int64_t first_correlation = 1;
    int group_size = 2;
    std::int64_t group = 7;
    int device = -1;  // the device of all its ranks; -1: the rank's number
    std::string class_name = "Linear";
    std::vector<schema::ScheduleRow> schedule;
    std::vector<std::pair<std::string, schema::MetricRow>> metrics;  // by name; `time` in the job's time
    struct Counter {
        std::string name, host;  // `host` empty: the rank says it
        schema::CounterRow row;  // `time` in the job's time
    };
    std::vector<Counter> counters;
    std::vector<schema::DeviceRow> devices;
    std::vector<schema::TopologyRow> topology;
    struct Mark {
        int rank = 0;           // none of the part's: a thread without a rank marks
        std::int64_t time = 0;  // the job's
        std::string text;
    };
    std::vector<Mark> marks;
    std::vector<std::pair<std::string, std::string>> run = {{"model.width", "256"}};
    std::uint64_t schema_size = 0;  // of a payload's schema with a dynamic id; 0: there is none
    bool finished = true;
};

class PartWriter {
  public:
    explicit PartWriter(const PartSpec& spec)
        : spec_(spec),
          writer_({.path = spec.path,
                   .overwrite = true,
                   .start_utc_ns = kJobUtc + spec.origin_ns + spec.clock_ns,
                   .start_system_ns = spec.system_ns == 0 ? 0 : spec.system_ns + drifted(spec.origin_ns)}),
          correlation_(spec.first_correlation) {
        for (const auto& [key, value] : spec_.run) writer_.add(schema::RunInfoRow{key, value});
        writer_.add(
            schema::ProcessRow{.global_pid = schema::global_pid(spec_.pid), .pid = spec_.pid, .name = "job"});
        writer_.add(schema::ModuleRow{.id = 0,
                                      .name = spec_.class_name + "_0",
                                      .class_name = spec_.class_name,
                                      .path = "net",
                                      .unit = 0,
                                      .parameters = 1000});
        writer_.add(schema::UnitRow{.id = 0, .module = 0, .name = "root", .elements = 1000, .bytes = 4096});
        writer_.add(schema::GroupRow{
            .group = spec_.group, .axis = "shard", .ranks = {}, .name = {}, .description = {}});
        for (const schema::ScheduleRow& row : spec_.schedule) writer_.add(row);
        for (const int rank : spec_.ranks) add_rank(rank);
        for (int step = 0; step < spec_.steps; ++step) {
            for (const int rank : spec_.ranks) add_step(rank, step);
        }
        if (spec_.schema_size > 0) add_payload();
        for (schema::ClockRow row : spec_.clocks) {
            row.at_ns = at(row.at_ns);
            writer_.add(row);
        }
        for (schema::StopRow row : spec_.stops) {
            row.at_ns = at(row.at_ns);
            writer_.add(row);
        }
        for (auto [name, row] : spec_.metrics) {
            row.time = at(row.time);
            row.name = writer_.intern(name);
            writer_.add(row);
        }
        for (auto [name, host, row] : spec_.counters) {
            row.time = at(row.time);
            row.name = writer_.intern(name);
            if (!host.empty()) row.host = writer_.intern(host);
            writer_.add(row);
        }
        for (const schema::DeviceRow& row : spec_.devices) writer_.add(row);
        for (const schema::TopologyRow& row : spec_.topology) writer_.add(row);
        for (const PartSpec::Mark& mark : spec_.marks) {
            schema::RangeRow row{.start = at(mark.time), .end = {}, .event_type = schema::kNvtxMark};
            row.text = writer_.intern(mark.text);
            row.global_tid = thread(mark.rank);
            writer_.add(row);
        }
        writer_.add(schema::LossRow{.step = 0, .loss = 2.5});
        writer_.commit();
        if (spec_.finished) writer_.finish(at(spec_.steps * spec_.step_ns + 100 * kUs), 0);
    }

    static constexpr std::int64_t kDynamicSchema = std::int64_t{1} << 32;

  private:
    // Converts the job's time to the part's.
    std::int64_t at(std::int64_t ns) const { return drifted(ns - spec_.origin_ns); }
    std::int64_t drifted(std::int64_t ns) const {
        return ns + static_cast<std::int64_t>(spec_.drift * static_cast<double>(ns));
    }
    std::int64_t thread(int rank) const {
        return schema::global_tid(spec_.pid, spec_.pid + rank - spec_.ranks.front());
    }
    int device(int rank) const { return spec_.device >= 0 ? spec_.device : rank; }

    void add_rank(int rank) {
        writer_.add(schema::RankRow{.rank = rank,
                                    .device = device(rank),
                                    .global_pid = schema::global_pid(spec_.pid),
                                    .global_tid = thread(rank),
                                    .host = spec_.host,
                                    .device_name = "processor",
                                    .shard = rank});
        writer_.add(schema::ThreadRow{
            .global_tid = thread(rank), .name = "rank " + std::to_string(rank), .rank = rank});
        writer_.add(schema::StreamRow{.rank = rank, .stream = 1, .name = "compute"});
        schema::PredictionRow prediction{.rank = rank, .peak_bytes = 5096, .at_peak = {}, .where = "forward"};
        prediction.at_peak[static_cast<int>(schema::MemoryCategory::parameters)] = 1000;
        prediction.at_peak[static_cast<int>(schema::MemoryCategory::unsharded_parameters)] = 4096;
        writer_.add(prediction);
        memory(rank, 0, 0x1000, 1000, schema::MemoryCategory::parameters);
    }

    void add_step(int rank, int step) {
        const std::int64_t t = step * spec_.step_ns;
        writer_.add(schema::StepRow{rank, step, at(t), at(t + 900 * kUs), thread(rank)});
        range(rank, t, 900, "ProfilerStep#" + std::to_string(step), -1, "");
        range(rank, t + 10 * kUs, 700, "nn.Module: " + spec_.class_name + "_0", 0, "");
        range(rank, t + 20 * kUs, 10, "ncclAllGather", -1, "NCCL");
        range(rank, t + 400 * kUs, 10, "rank " + std::to_string(rank) + " alone", -1,
              "domain of rank " + std::to_string(rank));
        const std::int64_t gather = launch(rank, t + 22 * kUs, t + (50 + 5 * rank) * kUs,
                                           t + 100 * kUs + spec_.late_ns, "ncclDevKernel_AllGather_local");
        writer_.add(schema::CollectiveRow{.rank = rank,
                                          .correlation = gather,
                                          .operation = schema::Operation::all_gather,
                                          .bytes = 4096,
                                          .group = spec_.group,
                                          .group_size = spec_.group_size,
                                          .sequence = step,
                                          .unit = 0,
                                          .phase = schema::Phase::forward});
        launch(rank, t + 110 * kUs, t + 950 * kUs, t + 1050 * kUs, "gemm");
        memory(rank, t + 20 * kUs, 0x2000, 4096, schema::MemoryCategory::unsharded_parameters);
        memory(rank, t + 800 * kUs, 0x2000, -4096, schema::MemoryCategory::unsharded_parameters);
        writer_.add(schema::CounterRow{.time = at(t),
                                       .rank = rank,
                                       .name = writer_.intern("reserved_bytes"),
                                       .value = 100.0 * (step + 1)});
    }

    std::int64_t launch(int rank, std::int64_t call, std::int64_t start, std::int64_t end,
                        std::string_view name) {
        const std::int64_t id = correlation_++;
        writer_.add(schema::RuntimeRow{.start = at(call),
                                       .end = at(call + 2 * kUs),
                                       .global_tid = thread(rank),
                                       .correlation = id,
                                       .name = writer_.intern("cudaLaunchKernel_v7000")});
        writer_.add(schema::KernelRow{.start = at(start),
                                      .end = at(end),
                                      .device = device(rank),
                                      .stream = 1,
                                      .correlation = id,
                                      .global_pid = schema::global_pid(spec_.pid),
                                      .short_name = writer_.intern(name)});
        return id;
    }

    void range(int rank, std::int64_t start, std::int64_t us, const std::string& text, int module,
               const std::string& domain) {
        writer_.add(schema::RangeRow{.start = at(start),
                                     .end = at(start + us * kUs),
                                     .text = writer_.intern(text),
                                     .domain = writer_.intern(domain),
                                     .global_tid = thread(rank),
                                     .module = module});
    }

    void memory(int rank, std::int64_t time, std::uint64_t address, std::int64_t bytes,
                schema::MemoryCategory category) {
        writer_.add(schema::MemoryRow{.time = at(time),
                                      .rank = rank,
                                      .address = address,
                                      .bytes = bytes,
                                      .category = category,
                                      .name = writer_.intern("buffer")});
    }

    // A schema whose id was assigned while the program ran, and a mark that uses it.
    void add_payload() {
        schema::PayloadSchemaRow schema{.domain = writer_.intern("app"),
                                        .id = static_cast<std::uint64_t>(kDynamicSchema),
                                        .name = "numbers",
                                        .type = 1,
                                        .size = spec_.schema_size};
        schema.entries.push_back({.name = "number", .type = 5});
        writer_.add(schema);
        schema::RangeRow mark{
            .start = at(5 * kUs), .event_type = schema::kNvtxMark, .text = writer_.intern("with payload")};
        mark.domain = writer_.intern("app");
        mark.global_tid = thread(spec_.ranks.front());
        mark.binary = schema::binary_payload(static_cast<std::uint64_t>(kDynamicSchema),
                                             std::string(static_cast<std::size_t>(spec_.schema_size), 'x'));
        writer_.add(mark);
    }

    const PartSpec& spec_;
    store::DatabaseWriter writer_;
    std::int64_t correlation_;
};

inline std::string write_part(const PartSpec& spec) {
    PartWriter writer(spec);
    return spec.path;
}

}  // namespace shardscope::traces
