// Databases of ROCm's rocprofv3 ("rocpd" output): kernels, copies, API calls, ROCTx ranges and allocations of
// AMD GPUs, as rows. Times are nanoseconds since boot. An event's `stack_id` is the call that it belongs to:
// equal for a kernel and the API call that launched it.
#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/core.h>

#include "traces/import/input/importer.h"
#include "traces/import/rocpd/rccl_calls.h"
#include "traces/import/rocpd/rocpd_actors.h"
#include "traces/import/rocpd/rocpd_tables.h"
#include "traces/schema/communication_kernels.h"
#include "traces/store/columns/device_streams.h"
#include "traces/store/grouped.h"
#include "traces/store/sqlite/sqlite.h"

namespace shardscope::traces::importer {
namespace {

constexpr int kCopyPeerToPeer = 10;

// Reads a file, in the order in which its rows need each other.
class Rocpd {
  public:
    Rocpd(store::Database& database, std::string name, store::EventSink& sink, int first_rank)
        : name_(std::move(name)),
          sink_(sink),
          tables_(database, name_),
          begin_(tables_.begin()),
          actors_(tables_, name_, sink, first_rank),
          rccl_(tables_) {
        facts_.rows_rank = first_rank;
    }

    FileFacts read() {
        sink_.add(schema::RunInfoRow{"import.format", "rocpd"});
        read_regions();
        read_marks();
        read_kernels();
        read_copies();
        read_allocations();
        rccl_.add_collectives(sink_);
        actors_.add_ranks(sink_);
        if (actors_.orphans() > 0)
            note(fmt::format("{}: {} ignored: rocpd_info_process does not list their processes", name_,
                             store::counted(actors_.orphans(), "event was", "events were")));
        return facts_;
    }

  private:
    std::int64_t time(std::int64_t since_boot) {
        const std::int64_t ns = std::max<std::int64_t>(since_boot - begin_, 0);
        facts_.last_ns = std::max(facts_.last_ns, ns);
        return ns;
    }

    void read_regions() {
        store::Statement rows(
            tables_.database(),
            "SELECT r.guid, r.pid, r.tid, r.start, r.\"end\", s.string, c.string, e.stack_id, CASE WHEN "
            "json_valid(e.extdata) THEN json_extract(e.extdata, '$.message') END, r.event_id FROM "
            "rocpd_region r "
            "LEFT JOIN rocpd_string s ON s.id = r.name_id AND s.guid = r.guid LEFT JOIN rocpd_event e ON "
            "e.id = "
            "r.event_id AND e.guid = r.guid LEFT JOIN rocpd_string c ON c.id = e.category_id AND c.guid = "
            "r.guid "
            "ORDER BY r.start, r.\"end\" DESC");
        while (rows.step()) {
            const RocpdProcess* process = actors_.process_of(rows);
            if (process == nullptr) continue;
            const std::int64_t thread = actors_.thread_of(*process, rows, 2);
            const std::int64_t start = time(rows.integer(3)), end = std::max(time(rows.integer(4)), start);
            const std::string_view name = rows.text(5), category = rows.text(6);
            const bool marker = category.starts_with("MARKER"), rccl = category.starts_with("RCCL");
            if (marker || rccl) {
                schema::RangeRow range;
                range.start = start;
                range.end = end;
                range.global_tid = thread;
                range.text = sink_.intern(marker && !rows.is_null(8) ? rows.text(8) : name);
                if (rccl) range.domain = sink_.intern("NCCL");
                sink_.add(range);
            } else {
                const std::int64_t correlation = process->correlation + rows.integer_or(7, 0);
                schema::RuntimeRow call;
                call.start = start;
                call.end = end;
                call.global_tid = thread;
                call.correlation = correlation;
                call.name = sink_.intern(name);
                call.driver = category.starts_with("HSA");
                sink_.add(call);
                launches_.emplace(correlation, std::pair(thread, start));
            }
            if (rccl) rccl_.add(thread, start, end, name, tables_.key(rows, 9));
        }
    }

    // ROCTx marks: samples without a duration.
    void read_marks() {
        store::Statement rows(
            tables_.database(),
            "SELECT p.guid, t.pid, t.tid, p.timestamp, CASE WHEN json_valid(e.extdata) THEN "
            "json_extract(e.extdata, '$.message') END FROM rocpd_sample p JOIN rocpd_track t ON t.id = "
            "p.track_id AND t.guid = p.guid JOIN rocpd_event e ON e.id = p.event_id AND e.guid = p.guid "
            "JOIN rocpd_string c ON c.id = e.category_id AND c.guid = p.guid WHERE c.string LIKE "
            "'MARKER%' ORDER BY p.timestamp");
        while (rows.step()) {
            const RocpdProcess* process = actors_.process_of(rows);
            if (process == nullptr) continue;
            schema::RangeRow mark;
            mark.start = time(rows.integer(3));
            mark.event_type = schema::kNvtxMark;
            mark.global_tid = actors_.thread_of(*process, rows, 2);
            mark.text = sink_.intern(rows.text(4));
            sink_.add(mark);
        }
    }

    void read_kernels() {
        store::Statement rows(
            tables_.database(),
            "SELECT k.guid, k.pid, k.agent_id, k.stream_id, e.stack_id, k.start, k.\"end\", "
            "COALESCE(NULLIF(y.display_name, ''), y.kernel_name), y.kernel_name, k.grid_size_x, "
            "k.grid_size_y, k.grid_size_z, k.workgroup_size_x, k.workgroup_size_y, k.workgroup_size_z, "
            "k.group_segment_size, k.private_segment_size FROM rocpd_kernel_dispatch k LEFT JOIN "
            "rocpd_event e ON e.id = k.event_id AND e.guid = k.guid LEFT JOIN rocpd_info_kernel_symbol y "
            "ON y.id = k.kernel_id AND y.guid = k.guid ORDER BY k.start");
        while (rows.step()) {
            const auto at = actors_.place(rows, 2, 3, 4);
            if (!at) continue;
            schema::KernelRow kernel;
            kernel.start = time(rows.integer(5));
            kernel.end = std::max(time(rows.integer(6)), kernel.start);
            kernel.device = at->device;
            kernel.stream = at->stream;
            kernel.correlation = at->correlation;
            kernel.global_pid = at->global_pid;
            const std::string name(rows.is_null(7) ? "unknown kernel" : rows.text(7));
            kernel.short_name = sink_.intern(name.substr(0, name.find_first_of("(<")));
            kernel.demangled_name = sink_.intern(name);
            kernel.mangled_name = sink_.intern(rows.text(8));
            for (int i = 0; i < 3; ++i) {
                // The grid counts work-items, as in OpenCL; CUDA's counts blocks.
                const std::int64_t block = std::max<std::int64_t>(rows.integer_or(12 + i, 1), 1);
                kernel.block[i] = static_cast<int>(std::min<std::int64_t>(block, 1 << 20));
                kernel.grid[i] = static_cast<int>(
                    std::clamp<std::int64_t>((rows.integer_or(9 + i, 1) + block - 1) / block, 1, 1 << 30));
            }
            kernel.static_shared_memory =
                static_cast<int>(std::clamp<std::int64_t>(rows.integer_or(15, 0), 0, 1 << 30));
            kernel.local_memory_per_thread =
                static_cast<int>(std::clamp<std::int64_t>(rows.integer_or(16, 0), 0, 1 << 30));
            sink_.add(kernel);
            if (!schema::is_communication_kernel(name)) continue;
            const auto launch = launches_.find(kernel.correlation);
            if (launch != launches_.end())
                rccl_.add_kernel(kernel, launch->second.first, launch->second.second);
        }
    }

    void read_copies() {
        store::Statement rows(
            tables_.database(),
            "SELECT m.guid, m.pid, m.dst_agent_id, m.src_agent_id, m.stream_id, e.stack_id, m.start, "
            "m.\"end\", m.size FROM rocpd_memory_copy m LEFT JOIN rocpd_event e ON e.id = m.event_id AND "
            "e.guid = m.guid ORDER BY m.start");
        while (rows.step()) {
            const bool to = actors_.is_gpu(tables_.key(rows, 2)), from = actors_.is_gpu(tables_.key(rows, 3));
            const auto at = actors_.place(rows, to ? 2 : 3, 4, 5);
            if (!at) continue;
            schema::MemcpyRow copy;
            copy.start = time(rows.integer(6));
            copy.end = std::max(time(rows.integer(7)), copy.start);
            copy.device = at->device;
            copy.stream = at->stream;
            copy.correlation = at->correlation;
            copy.global_pid = at->global_pid;
            copy.bytes = std::max<std::int64_t>(rows.integer_or(8, 0), 0);
            copy.copy_kind = !to && !from                         ? schema::kCopyHostToHost
                             : !from                              ? schema::kCopyHostToDevice
                             : !to                                ? schema::kCopyDeviceToHost
                             : rows.integer(2) == rows.integer(3) ? schema::kCopyDeviceToDevice
                                                                  : kCopyPeerToPeer;
            copy.src_kind = from ? schema::kMemKindDevice : schema::kMemKindPageable;
            copy.dst_kind = to ? schema::kMemKindDevice : schema::kMemKindPageable;
            sink_.add(copy);
        }
    }

    void read_allocations() {
        store::Statement rows(
            tables_.database(),
            "SELECT a.guid, a.pid, a.tid, a.agent_id, a.type, a.start, a.address, a.size FROM "
            "rocpd_memory_allocate a WHERE a.level = 'REAL' ORDER BY a.start, a.id");
        struct Block {
            std::int64_t bytes = 0;
            schema::MemorySpace space = schema::MemorySpace::device;
            int stream = -1;
        };
        std::map<std::pair<int, std::uint64_t>, Block> live;  // by rank and address
        std::int64_t unpaired = 0;
        while (rows.step()) {
            RocpdProcess* process = actors_.process_of(rows);
            if (process == nullptr) continue;
            schema::MemoryRow row;
            row.time = time(rows.integer(5));
            row.rank = process->rank;
            row.address = static_cast<std::uint64_t>(rows.integer_or(6, 0));
            row.global_tid = actors_.thread_of(*process, rows, 2);
            const std::pair block_key(row.rank, row.address);
            if (rows.text(4) == "ALLOC") {
                Block block{std::max<std::int64_t>(rows.integer_or(7, 0), 0)};
                if (!rows.is_null(3)) {
                    const auto nth = actors_.nth_device(*process, tables_.key(rows, 3));
                    if (!nth) block.space = schema::MemorySpace::pinned;
                    if (nth.value_or(0) > 0) block.stream = store::stream_of_device(*nth, 0);
                }
                live.insert_or_assign(block_key, block);
                row.bytes = block.bytes;
                row.space = block.space;
                row.stream = block.stream;
            } else {
                const auto block = live.find(block_key);
                if (block == live.end()) {
                    unpaired += row.address != 0 ? 1 : 0;
                    continue;
                }
                row.bytes = -block->second.bytes;
                row.space = block->second.space;
                row.stream = block->second.stream;
                live.erase(block);
            }
            sink_.add(row);
        }
        if (unpaired > 0)
            note(fmt::format("{}: {} ignored: the memory was allocated before the recording", name_,
                             store::counted(unpaired, "free was", "frees were")));
    }

    void note(std::string text) {
        sink_.add(schema::DiagnosticRow{0, schema::Severity::warning, std::move(text)});
    }

    std::string name_;
    store::EventSink& sink_;
    RocpdTables tables_;
    std::int64_t begin_;
    RocpdActors actors_;
    RcclCalls rccl_;
    FileFacts facts_;
    std::unordered_map<std::int64_t, std::pair<std::int64_t, std::int64_t>> launches_;  // thread and start
};

}  // namespace

FileFacts read_rocpd(const std::string& database, const std::string& name, store::EventSink& sink,
                     const FileRequest& request) {
    store::Database file(database, store::Database::Mode::immutable);
    return Rocpd(file, name, sink, request.rank).read();
}

}  // namespace shardscope::traces::importer
