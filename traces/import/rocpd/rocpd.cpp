// Databases of ROCm's rocprofv3 ("rocpd" output): kernels, copies, API calls, ROCTx ranges and allocations of
// AMD GPUs.
//
// Source: ROCm/rocm-systems, projects/rocprofiler-sdk: source/share/rocprofiler-sdk-rocpd/rocpd_*.sql (tables
// and views) and source/lib/output/generateRocpd.cpp (what they hold). Each table's name carries the writing
// process's id, so that files can be joined. The file's own views without it are not trusted: temporary ones
// of the same names take their place here. Ids are unique together with `guid`. Times are nanoseconds since
// boot. An event's `stack_id` is the call that it belongs to: equal for a kernel and the API call that
// launched it.
#include <algorithm>
#include <charconv>
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "traces/import/input/importer.h"
#include "traces/schema/communication_kernels.h"
#include "traces/store/columns/device_streams.h"
#include "traces/store/error.h"
#include "traces/store/grouped.h"
#include "traces/store/sqlite/sqlite.h"

namespace shardscope::traces {
namespace {

using Key = std::pair<int, std::int64_t>;  // the number of a guid, and an id

constexpr int kCopyPeerToPeer = 10;
constexpr std::int64_t kProcess = std::int64_t{1} << 40;  // the distance of two processes' correlation ids

// The columns that are read. A table that lacks one has NULL in its place.
struct Table {
    const char* name;
    bool needed;  // whether a file without it cannot be read
    std::initializer_list<const char*> columns;
};
const Table kTables[] = {
    {"rocpd_string", true, {"id", "string"}},
    {"rocpd_info_node", false, {"id", "hostname"}},
    {"rocpd_info_process", true, {"id", "nid", "pid", "command"}},
    {"rocpd_info_thread", true, {"id", "pid", "tid", "name"}},
    {"rocpd_info_agent", true, {"id", "type", "type_index", "name", "model_name", "product_name"}},
    {"rocpd_info_kernel_symbol", false, {"id", "kernel_name", "display_name"}},
    {"rocpd_event", true, {"id", "category_id", "stack_id", "extdata"}},
    {"rocpd_arg", false, {"event_id", "name", "value"}},
    {"rocpd_track", false, {"id", "pid", "tid"}},
    {"rocpd_sample", false, {"track_id", "timestamp", "event_id"}},
    {"rocpd_region", true, {"pid", "tid", "start", "end", "name_id", "event_id"}},
    {"rocpd_kernel_dispatch",
     true,
     {"pid", "agent_id", "kernel_id", "stream_id", "start", "end", "event_id", "grid_size_x", "grid_size_y",
      "grid_size_z", "workgroup_size_x", "workgroup_size_y", "workgroup_size_z", "group_segment_size",
      "private_segment_size"}},
    {"rocpd_memory_copy",
     true,
     {"pid", "start", "end", "dst_agent_id", "src_agent_id", "size", "stream_id", "event_id"}},
    {"rocpd_memory_allocate",
     false,
     {"id", "pid", "tid", "agent_id", "type", "level", "start", "address", "size"}},
};

// A collective call of RCCL.
struct Call {
    Operation operation = Operation::other;
    std::int64_t bytes = 0;  // of the full buffer; 0: unknown
};

// An API call of RCCL on a thread; at the end of a group of calls, these.
struct RcclRange {
    std::int64_t start = 0, end = 0;
    std::vector<Call> calls;
    int kernels = 0;  // that were launched in it
};

std::optional<std::int64_t> number(std::string_view text) {
    std::int64_t value = 0;
    const auto [stop, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
    return fault == std::errc() && stop == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

// The size of an ncclDataType_t, by its name or its number; 0: unknown.
std::int64_t element_bytes(std::string_view type) {
    struct Type {
        const char *name, *number;
        int bytes;
    };
    constexpr Type kTypes[] = {
        {"ncclInt8", "0", 1},        {"ncclChar", "0", 1},        {"ncclUint8", "1", 1},
        {"ncclInt32", "2", 4},       {"ncclInt", "2", 4},         {"ncclUint32", "3", 4},
        {"ncclInt64", "4", 8},       {"ncclUint64", "5", 8},      {"ncclFloat16", "6", 2},
        {"ncclHalf", "6", 2},        {"ncclFloat32", "7", 4},     {"ncclFloat", "7", 4},
        {"ncclFloat64", "8", 8},     {"ncclDouble", "8", 8},      {"ncclBfloat16", "9", 2},
        {"ncclFloat8e4m3", "10", 1}, {"ncclFloat8e5m2", "11", 1},
    };
    for (const Type& known : kTypes) {
        if (type == known.name || type == known.number) return known.bytes;
    }
    return 0;
}

Operation operation_of_call(std::string_view name) {
    if (!name.starts_with("nccl")) return Operation::other;
    name.remove_prefix(4);
    for (int o = 0; o < static_cast<int>(Operation::other); ++o) {
        if (name == kOperationNcclNames[static_cast<std::size_t>(o)]) return static_cast<Operation>(o);
    }
    return Operation::other;
}

class Rocpd {
  public:
    Rocpd(Database& database, std::string name, EventSink& sink, int first_rank)
        : database_(database), name_(std::move(name)), sink_(sink), first_rank_(first_rank) {}

    FileFacts read() {
        for (const Table& table : kTables) make_view(table);
        begin_ = std::min({first("rocpd_region", "start"), first("rocpd_kernel_dispatch", "start"),
                           first("rocpd_memory_copy", "start")});
        if (begin_ == std::numeric_limits<std::int64_t>::max()) begin_ = 0;
        sink_.add(RunInfoRow{"import.format", "rocpd"});
        read_processes();
        read_agents();
        read_rccl_arguments();
        read_regions();
        read_marks();
        read_kernels();
        read_copies();
        read_allocations();
        add_collectives();
        add_ranks();
        facts_.rows_rank = first_rank_;
        return facts_;
    }

  private:
    struct Process {
        std::string host;
        std::int64_t pid = 0, global_tid = 0;
        int rank = 0;
        std::int64_t correlation = 0;  // added to its own
        std::vector<Key> agents;       // the GPUs that it used, in the order of their first use
    };
    struct Agent {
        bool is_gpu = false;
        int index = 0;
        std::string name, chip;
    };
    // What an event of the device belongs to.
    struct Place {
        int device = 0, stream = 0;
        std::int64_t global_pid = 0, correlation = 0;
    };

    // A temporary view of the rows of all processes.
    void make_view(const Table& table) {
        std::vector<std::string> names;
        Statement tables(
            database_,
            "SELECT name FROM main.sqlite_master WHERE type = 'table' AND rootpage > 0 ORDER BY 1");
        const std::string joined = fmt::format("{}_", table.name);
        while (tables.step()) {
            if (tables.text(0) == table.name || tables.text(0).starts_with(joined))
                names.emplace_back(tables.text(0));
        }
        if (names.empty() && table.needed)
            throw StoreError(
                fmt::format("{}: a rocpd database without the table {}; record it again with rocprofv3 of "
                            "ROCm 7 or later",
                            name_, table.name));
        const auto columns_of = [&](const std::string& name) {
            std::string list;
            const auto add = [&](const char* column) {
                const std::string quoted = quoted_name(column);
                const bool has = !name.empty() && database_.has_column(name, column);
                list += fmt::format("{}{}{}", list.empty() ? "" : ", ", has ? "" : "NULL AS ", quoted);
            };
            add("guid");
            for (const char* column : table.columns) add(column);
            return list;
        };
        std::string rows;
        for (const std::string& name : names)
            rows += fmt::format("{}SELECT {} FROM main.{}", rows.empty() ? "" : " UNION ALL ",
                                columns_of(name), quoted_name(name));
        if (names.empty()) rows = fmt::format("SELECT {} WHERE 0", columns_of(""));
        database_.execute(fmt::format("CREATE TEMP VIEW {} AS {}", table.name, rows));
    }

    // The number of the row's guid, which is in column 0; most rows have that of the row before.
    Key key(const Statement& row, int id) {
        const std::string_view guid = row.text(0);
        if (guid != last_guid_ || guids_.empty()) {
            last_guid_ = guid;
            last_number_ = guids_.emplace(last_guid_, static_cast<int>(guids_.size())).first->second;
        }
        return {last_number_, row.integer(id)};
    }

    std::int64_t first(const char* view, const char* column) {
        Statement least(database_, fmt::format("SELECT MIN({}) FROM {}", column, view));
        return least.step() ? least.integer_or(0, std::numeric_limits<std::int64_t>::max())
                            : std::numeric_limits<std::int64_t>::max();
    }

    std::int64_t time(std::int64_t since_boot) {
        const std::int64_t ns = std::max<std::int64_t>(since_boot - begin_, 0);
        facts_.last_ns = std::max(facts_.last_ns, ns);
        return ns;
    }

    void read_processes() {
        Statement rows(
            database_,
            "SELECT p.guid, p.id, p.pid, p.command, n.hostname FROM rocpd_info_process p LEFT JOIN "
            "rocpd_info_node n ON n.id = p.nid AND n.guid = p.guid ORDER BY p.pid, p.guid, p.id");
        while (rows.step()) {
            Process process;
            const int nth = static_cast<int>(processes_.size());
            process.host = rows.text(4);
            process.pid = rows.integer(2);
            process.rank = first_rank_ + nth;
            process.correlation = nth * kProcess;
            process.global_tid = global_tid(process.pid, process.pid);
            sink_.add(ProcessRow{global_pid(process.pid), process.pid, std::string(rows.text(3))});
            processes_.emplace(key(rows, 1), std::move(process));
        }
        if (processes_.empty())
            throw StoreError(fmt::format("{}: no process in rocpd_info_process; record it again", name_));
        Statement threads(database_, "SELECT guid, id, pid, tid, name FROM rocpd_info_thread");
        while (threads.step()) {
            const auto process = processes_.find(key(threads, 2));
            if (process == processes_.end()) continue;
            const std::int64_t tid = global_tid(process->second.pid, threads.integer(3));
            threads_.emplace(key(threads, 1), tid);
            sink_.add(ThreadRow{tid, std::string(threads.text(4)), process->second.rank});
        }
    }

    void read_agents() {
        Statement rows(
            database_,
            "SELECT guid, id, type, type_index, COALESCE(NULLIF(product_name, ''), model_name), name "
            "FROM rocpd_info_agent");
        while (rows.step())
            agents_[key(rows, 1)] = Agent{rows.text(2) == "GPU", static_cast<int>(rows.integer(3)),
                                          std::string(rows.text(4)), std::string(rows.text(5))};
    }

    // Which of its devices this agent is to the process; nothing for a processor.
    std::optional<std::size_t> nth_device(Process& process, const Key& agent) {
        const auto known = agents_.find(agent);
        if (known != agents_.end() && !known->second.is_gpu) return std::nullopt;
        const auto it = std::find(process.agents.begin(), process.agents.end(), agent);
        const auto nth = static_cast<std::size_t>(it - process.agents.begin());
        if (it == process.agents.end()) process.agents.push_back(agent);
        return nth;
    }

    Process* process_of(const Statement& row) {
        const auto process = processes_.find(key(row, 1));
        if (process == processes_.end()) ++orphans_;
        return process == processes_.end() ? nullptr : &process->second;
    }

    std::int64_t thread_of(const Process& process, const Statement& row, int tid) {
        const auto thread = threads_.find(key(row, tid));
        return thread == threads_.end() ? process.global_tid : thread->second;
    }

    void read_rccl_arguments() {
        Statement rows(
            database_,
            "SELECT a.guid, a.event_id, a.name, a.value FROM rocpd_arg a JOIN rocpd_event e ON e.id = "
            "a.event_id AND e.guid = a.guid JOIN rocpd_string c ON c.id = e.category_id AND c.guid = "
            "e.guid WHERE c.string LIKE 'RCCL%'");
        while (rows.step()) arguments_[key(rows, 1)].emplace(rows.text(2), rows.text(3));
    }

    Call call_of(std::string_view name, const Key& event) {
        Call call{operation_of_call(name)};
        const auto arguments = arguments_.find(event);
        if (arguments == arguments_.end()) return call;
        const auto of = [&](std::initializer_list<const char*> keys) -> std::string_view {
            for (const char* key : keys) {
                const auto it = arguments->second.find(key);
                if (it != arguments->second.end()) return it->second;
            }
            return {};
        };
        if (name.starts_with("ncclCommInit")) {
            if (const auto ranks = number(of({"nranks"}))) group_sizes_.insert(*ranks);
            return call;
        }
        const auto count = number(of({"count", "sendcount", "recvcount"}));
        const std::int64_t width = element_bytes(of({"datatype", "dataType"}));
        std::int64_t ranks = 1;
        if (call.operation == Operation::all_gather || call.operation == Operation::reduce_scatter ||
            call.operation == Operation::all_to_all)
            ranks = group_sizes_.size() == 1 ? *group_sizes_.begin() : 0;
        if (!count || *count < 0 || __builtin_mul_overflow(*count, width, &call.bytes) ||
            __builtin_mul_overflow(call.bytes, ranks, &call.bytes))
            call.bytes = 0;
        return call;
    }

    void read_regions() {
        Statement rows(
            database_,
            "SELECT r.guid, r.pid, r.tid, r.start, r.\"end\", s.string, c.string, e.stack_id, CASE WHEN "
            "json_valid(e.extdata) THEN json_extract(e.extdata, '$.message') END, r.event_id FROM "
            "rocpd_region r "
            "LEFT JOIN rocpd_string s ON s.id = r.name_id AND s.guid = r.guid LEFT JOIN rocpd_event e ON "
            "e.id = "
            "r.event_id AND e.guid = r.guid LEFT JOIN rocpd_string c ON c.id = e.category_id AND c.guid = "
            "r.guid "
            "ORDER BY r.start, r.\"end\" DESC");
        struct Group {
            int depth = 0;
            std::vector<Call> calls;
        };
        std::map<std::int64_t, Group> groups;  // by thread
        while (rows.step()) {
            const Process* process = process_of(rows);
            if (process == nullptr) continue;
            const std::int64_t thread = thread_of(*process, rows, 2);
            const std::int64_t start = time(rows.integer(3)), end = std::max(time(rows.integer(4)), start);
            const std::string_view name = rows.text(5), category = rows.text(6);
            const bool marker = category.starts_with("MARKER"), rccl = category.starts_with("RCCL");
            if (marker || rccl) {
                RangeRow range;
                range.start = start;
                range.end = end;
                range.global_tid = thread;
                range.text = sink_.intern(marker && !rows.is_null(8) ? rows.text(8) : name);
                if (rccl) range.domain = sink_.intern("NCCL");
                sink_.add(range);
            } else {
                const std::int64_t correlation = process->correlation + rows.integer_or(7, 0);
                RuntimeRow call;
                call.start = start;
                call.end = end;
                call.global_tid = thread;
                call.correlation = correlation;
                call.name = sink_.intern(name);
                call.driver = category.starts_with("HSA");
                sink_.add(call);
                launches_.emplace(correlation, std::pair(thread, start));
            }
            if (!rccl) continue;
            Group& group = groups[thread];
            if (name == "ncclGroupStart") {
                if (group.depth++ == 0) group.calls.clear();
                continue;
            }
            const Call call = call_of(name, key(rows, 9));
            if (name == "ncclGroupEnd") {
                group.depth = std::max(group.depth - 1, 0);
                if (group.depth == 0) rccl_[thread].push_back({start, end, group.calls});
            } else if (call.operation == Operation::other) {
                continue;
            } else if (group.depth > 0) {
                group.calls.push_back(call);
            } else {
                rccl_[thread].push_back({start, end, {call}});
            }
        }
    }

    // Marks of ROCTx: samples without a length.
    void read_marks() {
        Statement rows(
            database_,
            "SELECT p.guid, t.pid, t.tid, p.timestamp, CASE WHEN json_valid(e.extdata) THEN "
            "json_extract(e.extdata, '$.message') END FROM rocpd_sample p JOIN rocpd_track t ON t.id = "
            "p.track_id AND t.guid = p.guid JOIN rocpd_event e ON e.id = p.event_id AND e.guid = p.guid "
            "JOIN rocpd_string c ON c.id = e.category_id AND c.guid = p.guid WHERE c.string LIKE "
            "'MARKER%' ORDER BY p.timestamp");
        while (rows.step()) {
            const Process* process = process_of(rows);
            if (process == nullptr) continue;
            RangeRow mark;
            mark.start = time(rows.integer(3));
            mark.event_type = kNvtxMark;
            mark.global_tid = thread_of(*process, rows, 2);
            mark.text = sink_.intern(rows.text(4));
            sink_.add(mark);
        }
    }

    std::optional<Place> place(const Statement& row, int agent, int stream, int stack) {
        Process* process = process_of(row);
        if (process == nullptr) return std::nullopt;
        const std::size_t nth = nth_device(*process, key(row, agent)).value_or(0);
        const auto number = std::clamp<std::int64_t>(row.integer_or(stream, 0), 0, kStreamsOfDevice - 1);
        return Place{process->rank, stream_of_device(nth, static_cast<int>(number)), global_pid(process->pid),
                     row.is_null(stack) ? 0 : process->correlation + row.integer(stack)};
    }

    void read_kernels() {
        Statement rows(
            database_,
            "SELECT k.guid, k.pid, k.agent_id, k.stream_id, e.stack_id, k.start, k.\"end\", "
            "COALESCE(NULLIF(y.display_name, ''), y.kernel_name), y.kernel_name, k.grid_size_x, "
            "k.grid_size_y, k.grid_size_z, k.workgroup_size_x, k.workgroup_size_y, k.workgroup_size_z, "
            "k.group_segment_size, k.private_segment_size FROM rocpd_kernel_dispatch k LEFT JOIN "
            "rocpd_event e ON e.id = k.event_id AND e.guid = k.guid LEFT JOIN rocpd_info_kernel_symbol y "
            "ON y.id = k.kernel_id AND y.guid = k.guid ORDER BY k.start");
        while (rows.step()) {
            const auto at = place(rows, 2, 3, 4);
            if (!at) continue;
            KernelRow kernel;
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
                // The grid counts work-items, as OpenCL's; CUDA's counts blocks.
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
            if (is_communication_kernel(name)) launched_in_rccl(kernel);
        }
    }

    void read_copies() {
        Statement rows(
            database_,
            "SELECT m.guid, m.pid, m.dst_agent_id, m.src_agent_id, m.stream_id, e.stack_id, m.start, "
            "m.\"end\", m.size FROM rocpd_memory_copy m LEFT JOIN rocpd_event e ON e.id = m.event_id AND "
            "e.guid = m.guid ORDER BY m.start");
        while (rows.step()) {
            const auto gpu = [&](int column) {
                const auto agent = agents_.find(key(rows, column));
                return agent != agents_.end() && agent->second.is_gpu;
            };
            const bool to = gpu(2), from = gpu(3);
            const auto at = place(rows, to ? 2 : 3, 4, 5);
            if (!at) continue;
            MemcpyRow copy;
            copy.start = time(rows.integer(6));
            copy.end = std::max(time(rows.integer(7)), copy.start);
            copy.device = at->device;
            copy.stream = at->stream;
            copy.correlation = at->correlation;
            copy.global_pid = at->global_pid;
            copy.bytes = std::max<std::int64_t>(rows.integer_or(8, 0), 0);
            copy.copy_kind = !to && !from                         ? kCopyHostToHost
                             : !from                              ? kCopyHostToDevice
                             : !to                                ? kCopyDeviceToHost
                             : rows.integer(2) == rows.integer(3) ? kCopyDeviceToDevice
                                                                  : kCopyPeerToPeer;
            copy.src_kind = from ? kMemKindDevice : kMemKindPageable;
            copy.dst_kind = to ? kMemKindDevice : kMemKindPageable;
            sink_.add(copy);
        }
    }

    void read_allocations() {
        Statement rows(database_,
                       "SELECT a.guid, a.pid, a.tid, a.agent_id, a.type, a.start, a.address, a.size FROM "
                       "rocpd_memory_allocate a WHERE a.level = 'REAL' ORDER BY a.start, a.id");
        struct Block {
            std::int64_t bytes = 0;
            MemorySpace space = MemorySpace::device;
            int stream = -1;
        };
        std::map<std::pair<int, std::uint64_t>, Block> live;  // by rank and address
        std::int64_t unpaired = 0;
        while (rows.step()) {
            Process* process = process_of(rows);
            if (process == nullptr) continue;
            MemoryRow row;
            row.time = time(rows.integer(5));
            row.rank = process->rank;
            row.address = static_cast<std::uint64_t>(rows.integer_or(6, 0));
            row.global_tid = thread_of(*process, rows, 2);
            const std::pair block_key(row.rank, row.address);
            if (rows.text(4) == "ALLOC") {
                Block block{std::max<std::int64_t>(rows.integer_or(7, 0), 0)};
                if (!rows.is_null(3)) {
                    const auto nth = nth_device(*process, key(rows, 3));
                    if (!nth) block.space = MemorySpace::pinned;
                    if (nth.value_or(0) > 0) block.stream = stream_of_device(*nth, 0);
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
            note(fmt::format("{}: {} of memory that was allocated before the recording; left out", name_,
                             counted(unpaired, "free", "frees")));
    }

    // Finds the call of RCCL in which the kernel was launched.
    void launched_in_rccl(const KernelRow& kernel) {
        const auto launch = launches_.find(kernel.correlation);
        if (launch == launches_.end()) return;
        const auto ranges = rccl_.find(launch->second.first);
        if (ranges == rccl_.end()) return;
        const std::int64_t at = launch->second.second;
        auto it = std::upper_bound(ranges->second.begin(), ranges->second.end(), at,
                                   [](std::int64_t t, const RcclRange& range) { return t < range.start; });
        if (it == ranges->second.begin() || (--it)->end <= at) return;
        ++it->kernels;
        in_rccl_.push_back({kernel.device, kernel.correlation, &*it});
    }

    // Only where one kernel belongs to one call is it known which; the others are communication by their
    // names.
    void add_collectives() {
        for (const auto& [rank, correlation, range] : in_rccl_) {
            if (range->kernels != 1 || range->calls.size() != 1) continue;
            CollectiveRow row;
            row.rank = rank;
            row.correlation = correlation;
            row.operation = range->calls.front().operation;
            row.bytes = range->calls.front().bytes;
            row.sequence = -1;
            if (group_sizes_.size() == 1)
                row.group_size =
                    static_cast<int>(std::clamp<std::int64_t>(*group_sizes_.begin(), 0, 1 << 30));
            sink_.add(row);
        }
    }

    void add_ranks() {
        for (const auto& [id, process] : processes_) {
            RankRow rank{.rank = process.rank,
                         .device = process.rank,
                         .global_pid = global_pid(process.pid),
                         .global_tid = process.global_tid,
                         .host = process.host,
                         .device_name = {}};
            const auto agent = process.agents.empty() ? agents_.end() : agents_.find(process.agents.front());
            if (agent != agents_.end()) {
                rank.device_name = agent->second.name;
                GpuRow gpu;
                gpu.device = rank.device;
                gpu.cuda_device = agent->second.index;
                gpu.pid = process.pid;
                gpu.name = agent->second.name;
                gpu.chip = agent->second.chip;
                sink_.add(gpu);
            }
            sink_.add(rank);
        }
        if (orphans_ > 0)
            note(fmt::format("{}: {} of processes that rocpd_info_process does not list; left out", name_,
                             counted(orphans_, "event", "events")));
    }

    void note(std::string text) { sink_.add(DiagnosticRow{0, Severity::warning, std::move(text)}); }

    struct InRccl {
        int rank = 0;
        std::int64_t correlation = 0;
        const RcclRange* range = nullptr;
    };

    Database& database_;
    std::string name_;
    EventSink& sink_;
    int first_rank_;
    std::int64_t begin_ = 0;
    std::int64_t orphans_ = 0;
    FileFacts facts_;
    std::map<std::string, int, std::less<>> guids_;
    std::string last_guid_;
    int last_number_ = 0;
    std::map<Key, Process> processes_;
    std::map<Key, std::int64_t> threads_;
    std::map<Key, Agent> agents_;
    std::map<Key, std::map<std::string, std::string, std::less<>>> arguments_;  // of RCCL's calls, by event
    std::set<std::int64_t> group_sizes_;                                        // of all communicators
    std::unordered_map<std::int64_t, std::pair<std::int64_t, std::int64_t>> launches_;  // thread and start
    std::map<std::int64_t, std::vector<RcclRange>> rccl_;                               // by thread, in order
    std::vector<InRccl> in_rccl_;
};

}  // namespace

FileFacts read_rocpd(const std::string& database, const std::string& name, EventSink& sink,
                     const FileRequest& request) {
    Database file(database, Database::Mode::immutable);
    return Rocpd(file, name, sink, request.rank).read();
}

}  // namespace shardscope::traces
