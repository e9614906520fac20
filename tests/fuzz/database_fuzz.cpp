// Fuzzes the loader of databases and the analyses that follow: whatever a file contains, it loads or is
// refused with a StoreError. An input that begins as an SQLite file is used as it is; any other is a list of
// changes (three bytes of offset, one of length, the bytes) to a small valid trace, so that most of the file
// stays valid and deep code is reached without a corpus.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include <unistd.h>

#include "traces/analysis/communication/collectives.h"
#include "traces/analysis/communication/distributed.h"
#include "traces/analysis/job/utilization.h"
#include "traces/analysis/memory/memory.h"
#include "traces/analysis/modules/modules.h"
#include "traces/analysis/pipeline/pipeline.h"
#include "traces/analysis/samples/flame.h"
#include "traces/analysis/time/summary.h"
#include "traces/analysis/training/metrics.h"
#include "traces/store/columns/names.h"
#include "traces/store/load/loader.h"
#include "traces/store/write/writer.h"

namespace {

using namespace shardscope::traces;
using namespace shardscope::traces::schema;

// One rank that uses every kind of row.
void write_run(store::DatabaseWriter& to) {
    const std::int64_t pid = global_pid(7), tid = global_tid(7, 7);
    RankRow rank{.rank = 0, .device = 0, .global_pid = pid, .global_tid = tid};
    rank.host = "host";
    to.add(rank);
    ModuleRow module{.id = 0, .parent = -1, .name = "Linear_0", .class_name = "Linear", .path = "net.0"};
    to.add(module);
    to.add(UnitRow{.id = 0, .module = 0, .name = "net"});
    to.add(GroupRow{.group = 0, .axis = "tensor", .ranks = "0,1", .name = {}, .description = {}});
    to.add(DeviceRow{
        .host = "host", .kind = "gpu", .name = "card", .bus = "0000:17:00.0", .power_limit_watts = 700});
    to.add(DeviceRow{.host = "host", .kind = "infiniband", .name = "mlx5_0", .bytes_per_second = 5e10});
    to.add(TopologyRow{
        .host = "host", .from = "GPU0", .to_host = "host", .to = "NIC0", .link = "PIX", .source = "sys"});
    to.add(ScheduleRow{.rank = 0, .position = 0, .stage = 0, .kind = "F", .micro_batch = 0});
    to.add(MetricRow{
        .step = 1, .sample = 8, .time = 900, .rank = 0, .name = to.intern("learning_rate"), .value = 0.5});
    const auto range = [&](std::int64_t start, std::int64_t end, std::string_view name,
                           std::string_view domain, int id) {
        RangeRow row{.start = start, .end = end};
        row.text = to.intern(name);
        row.domain = to.intern(domain);
        row.global_tid = tid;
        row.module = id;
        row.external_id = domain.empty() ? 0 : start + 1;
        row.detail = to.intern(domain.empty() ? "" : "{\"a\":1}");
        to.add(row);
    };
    for (std::int64_t i = 0; i < 20; ++i) {
        const std::int64_t t = i * 1000;
        to.add(StepRow{.rank = 0, .step = i, .start = t, .end = t + 900, .global_tid = tid});
        range(t, t + 900, "ProfilerStep#" + std::to_string(i), "", -1);
        range(t + 5, t + 6, "metric loss=" + std::to_string(i), "", -1);
        range(t + 10, t + 800, "nn.Module: Linear_0", "", 0);
        range(t + 15, t + 790, i % 2 == 0 ? "PP:0F0" : "PP:0B0", "", -1);
        range(t + 20, t + 700, "aten::mm", store::kOperatorDomain, -1);
        RuntimeRow call{.start = t + 30, .end = t + 40, .global_tid = tid};
        call.correlation = i + 1;
        call.name = to.intern("cudaLaunchKernel_v7000");
        to.add(call);
        KernelRow kernel{.start = t + 100, .end = t + 400};
        kernel.stream = 7;
        kernel.correlation = i + 1;
        kernel.global_pid = pid;
        kernel.short_name = to.intern(i % 3 == 0 ? "ncclDevKernel_AllGather_RING_LL" : "gemm");
        kernel.external_id = t + 21;
        kernel.occupancy = 50;
        to.add(kernel);
        if (i % 3 == 0) {
            CollectiveRow collective{.rank = 0, .correlation = i + 1, .operation = Operation::all_gather};
            collective.bytes = 4096;
            collective.group_size = 2;
            collective.sequence = i;
            collective.unit = 0;
            to.add(collective);
        }
        MemoryRow memory{.time = t + 50, .rank = 0, .address = 0x100, .bytes = i % 2 == 0 ? 512 : -512};
        memory.global_tid = tid;
        memory.total = i % 2 == 0 ? 1024 : 512;
        memory.reserved = 4096;
        to.add(memory);
        to.add(LinkRow{.from_tid = tid, .from_time = t + 20, .to_tid = tid, .to_time = t + 1020});
        to.add(SegmentRow{.time = t, .rank = 0, .address = 0x100, .bytes = 4096});
        for (const char* name : {"gpu_utilization_percent", "gpu_power_watts", "gpu_throttle_reasons_bits",
                                 "host_cpu_cores", "process_cpu_cores", "infiniband_sent_bytes_per_second"}) {
            to.add(CounterRow{.time = t,
                              .rank = name[0] == 'p' ? 0 : -1,
                              .name = to.intern(name),
                              .value = static_cast<double>(i * i % 100),
                              .host = to.intern("host"),
                              .device = name[0] == 'g' || name[0] == 'i' ? 0 : -1});
        }
        to.add(SampleRow{.time = t + 60,
                         .global_tid = tid,
                         .event = to.intern(i % 4 == 0 ? "cycles" : "cpu-clock"),
                         .weight = 1'000'000,
                         .cpu = 1,
                         .stack = to.intern(i % 2 == 0 ? "hot (a.so)\nmain (a)" : "cold (a.so)\nmain (a)")});
        FlightRow flight{.rank = 0, .id = i};
        flight.created = t;
        to.add(flight);
    }
    to.finish(20'000, 0);
}

struct Folder {
    Folder() {
        std::string name = (std::filesystem::temp_directory_path() / "fuzz-database-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) std::abort();
        path = name;
        store::DatabaseWriter writer({.path = path + "/whole.sqlite", .on_this_machine = false});
        write_run(writer);
        std::ifstream file(path + "/whole.sqlite", std::ios::binary);
        whole.assign(std::istreambuf_iterator<char>(file), {});
    }
    ~Folder() { std::filesystem::remove_all(path); }
    std::string path, whole;
};

std::string changed(std::string bytes, std::string_view changes) {
    while (changes.size() > 4) {
        const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(changes[i]); };
        const std::size_t at = (byte(0) << 16 | byte(1) << 8 | byte(2)) % bytes.size();
        const std::size_t length = std::min<std::size_t>({byte(3), changes.size() - 4, bytes.size() - at});
        bytes.replace(at, length, changes.substr(4, length));
        changes.remove_prefix(4 + length);
    }
    return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const Folder folder;
    const std::string_view input(reinterpret_cast<const char*>(data), size);
    const std::string path = folder.path + "/input.sqlite";
    {
        std::ofstream file(path, std::ios::binary | std::ios::trunc);
        const std::string bytes =
            input.starts_with("SQLite format 3") ? std::string(input) : changed(folder.whole, input);
        file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    }
    try {
        const auto trace = store::load_trace(path);
        (void)analysis::summarize(*trace);
        (void)analysis::utilization_report(*trace, {}, {.lane_points = 20});
        const analysis::SamplesReport samples = analysis::samples_report(*trace);
        if (!samples.tree.empty() && samples.tree.front().total != samples.total) std::abort();
        (void)analysis::module_view(*trace);
        (void)analysis::memory_report(*trace);
        (void)analysis::collectives_report(*trace);
        (void)analysis::distributed_report(*trace);
        (void)analysis::pipeline_report(*trace);
        (void)analysis::metrics_report(*trace, {}, {}, 1.0);
    } catch (const store::StoreError&) {
        // Refused with an error message, as it should be.
    }
    return 0;
}
