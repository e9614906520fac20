// One function for each kind of record. Nsight's numbers for CUPTI's values: schema 3.25.0.
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include <fmt/core.h>

#include "profiler/cupti/abi.h"
#include "profiler/cupti/records.h"
#include "profiler/record/findings.h"
#include "profiler/record/handlers.h"
#include "profiler/recorder/cuda_clock.h"
#include "profiler/recorder/cuda_rows.h"
#include "profiler/recorder/record_reading.h"
#include "traces/store/grouped.h"

namespace shardscope::profiler {
namespace {

using traces::schema::StringId;

// ENUM_CUPTI_OVERHEAD_TYPE, and the name shown in the row. Types that have no number there are unknown.
struct OverheadKind {
    std::uint32_t cupti;
    int type;
    const char* name;
};
constexpr std::array kOverheads = {
    OverheadKind{1, 2, "Driver JIT compiler"},
    OverheadKind{1u << 16, 3, "Profiler buffer flush"},
    OverheadKind{2u << 16, 4, "Profiler instrumentation"},
    OverheadKind{3u << 16, 5, "Profiler resources"},
    OverheadKind{4u << 16, 6, "Runtime module loading"},
    OverheadKind{5u << 16, 7, "Lazy function loading"},
    OverheadKind{6u << 16, 8, "Command buffer full"},
    OverheadKind{7u << 16, 1, "Profiler buffer request"},
    OverheadKind{8u << 16, 1, "Unified memory profiling start"},
};
constexpr OverheadKind kUnknownOverhead = {0, 1, "Unknown overhead"};

// "GPU-01234567-89ab-…", as the driver's tools print it.
std::string uuid_text(const std::uint8_t (&uuid)[16]) {
    std::string text = "GPU";
    for (int i = 0; i < 16; ++i) {
        if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
        text += fmt::format("{:02x}", uuid[i]);
    }
    return text;
}

class CudaHandler final : public RecordHandler {
  public:
    explicit CudaHandler(const ProcessFacts& process) : process_(process) {}

    bool convert(RecordConverter& to, std::uint32_t, RecordKind kind, const std::byte* bytes,
                 std::size_t size) override {
        if (kind == record_kind(CudaKind::notice)) return notice(to, bytes, size);
        return take_one_of<CudaClockRecord, CudaLossRecord, CudaDeviceRecord, CudaContextRecord,
                           CudaStreamRecord, CudaApiRecord, CudaKernelRecord, CudaMemcpyRecord,
                           CudaMemsetRecord, CudaSynchronizationRecord, CudaEventRecord, CudaMemoryRecord,
                           CudaPoolRecord, CudaOverheadRecord, CudaGraphRecord>(to, kind, bytes, size);
    }

    void close(RecordConverter& to, std::int64_t end_ns) override {
        if (told_.dropped != 0) {
            say(to, end_ns,
                fmt::format("process {}: CUPTI lost {} for lack of buffers", process_.pid,
                            cuda_events(told_.dropped)));
        }
        if (told_.untimed != 0) {
            say(to, end_ns,
                fmt::format("process {}: {} omitted; CUPTI's buffers on the device were full, or the program "
                            "ended before the events did",
                            process_.pid,
                            cuda_events(told_.untimed, " had no valid times and was",
                                        " had no valid times and were")));
        }
        if (told_.misplaced != 0) {
            say(to, end_ns,
                fmt::format("process {}: the launch of {} is unknown; the time of each decides whether it is "
                            "in the recorded window",
                            process_.pid, cuda_events(told_.misplaced)));
        }
        if (unplaced_ != 0) {
            say(to, end_ns,
                fmt::format("process {}: {} invalid times and {} omitted", process_.pid,
                            cuda_events(static_cast<std::uint64_t>(unplaced_), " has", " have"),
                            unplaced_ == 1 ? "was" : "were"));
        }
    }

    void visit_strings(const std::function<void(StringId)>& visit) const override {
        for (const auto& [id, names] : kernels_) {
            visit(names.demangled);
            visit(names.base);
        }
        for (const auto& [type, name] : overhead_names_) visit(name);
    }

  private:
    // "1 CUDA event", "2 CUDA events", followed by the verb if one is given.
    static std::string cuda_events(std::uint64_t count, const std::string& does = "",
                                   const std::string& they_do = "") {
        return traces::store::counted(static_cast<std::int64_t>(count), "CUDA event" + does,
                                      "CUDA events" + they_do);
    }

    template <typename Record>
    bool take(RecordConverter& to, const std::byte* bytes, std::size_t size) {
        const auto record = read_record<Record>(bytes, size);
        if (record) add(to, *record);
        return record.has_value();
    }
    // Converts a record as the struct of its kind.
    template <typename... Records>
    bool take_one_of(RecordConverter& to, RecordKind kind, const std::byte* bytes, std::size_t size) {
        return ((kind == record_kind(Records::kKind) && take<Records>(to, bytes, size)) || ...);
    }

    void say(RecordConverter& to, std::int64_t time, const std::string& text) {
        to.sink().add(traces::schema::DiagnosticRow{time, traces::schema::Severity::warning, text});
        process_.findings->note(text);
    }

    // --- helpers -------------------------------------------------------------------------------------------

    // Sets both ends in trace time. False before the first clock record, and for times that no clock can have
    // shown.
    bool set_times(RealTime start, RealTime end, std::int64_t* row_start, std::int64_t* row_end) {
        if (clock_.place(start, end, row_start, row_end)) return true;
        ++unplaced_;
        ++process_.findings->lost;
        return false;
    }

    // Sets the fields that all rows of device work have; false if set_times() fails.
    template <typename Record, typename Row>
    bool set_place(RecordConverter& to, const Record& r, Row& row) {
        if (!set_times(r.start, r.end, &row.start, &row.end)) return false;
        row.device = device_id(to, r.device, r.context);
        row.context = r.context;
        row.stream = r.stream;
        row.correlation = correlation(r.correlation);
        row.global_pid = global_pid();
        return true;
    }

    std::int64_t correlation(std::uint32_t id) const { return std::int64_t{process_.number} << 32 | id; }

    std::int64_t global_pid() const { return traces::schema::global_pid(process_.pid); }

    // The trace's id of a device that is used.
    int device_id(RecordConverter& to, std::int32_t cuda_device) {
        const auto known = devices_.find(cuda_device);
        if (known != devices_.end()) return known->second;
        const int id = process_.findings->devices.id(process_.pid, cuda_device, process_.rank);
        devices_.emplace(cuda_device, id);
        describe(to, cuda_device);
        return id;
    }

    int device_id(RecordConverter& to, std::int32_t cuda_device, std::int32_t context) {
        contexts_.try_emplace(context, cuda_device);
        return device_id(to, cuda_device);
    }

    // The device of a context; the process's first device if the context is unknown.
    int device_of_context(RecordConverter& to, std::int32_t context) {
        const auto known = contexts_.find(context);
        if (known != contexts_.end()) return device_id(to, known->second);
        return devices_.empty() ? device_id(to, 0) : devices_.begin()->second;
    }

    // Describes a device once it is used and CUPTI has reported it.
    void describe(RecordConverter& to, std::int32_t cuda_device) {
        const auto facts = facts_.find(cuda_device);
        const auto id = devices_.find(cuda_device);
        if (facts == facts_.end() || id == devices_.end()) return;
        facts->second.device = id->second;
        to.sink().add(facts->second);
        const auto rank = process_.findings->ranks.find(process_.rank);
        if (rank == process_.findings->ranks.end() || rank->second.device != id->second) return;
        // If a launcher starts several processes of one rank, the rank is the process that uses its device.
        rank->second.global_pid = global_pid();
        rank->second.global_tid = traces::schema::global_tid(process_.pid, process_.pid);
        rank->second.device_name = facts->second.name;
        rank->second.device_memory = facts->second.memory;
        to.sink().add(rank->second);
    }

    const SymbolNames& kernel_names(RecordConverter& to, std::uint32_t name) {
        const auto [it, added] = kernels_.try_emplace(name);
        if (added) it->second = intern_names(to.sink(), to.text(name));
        return it->second;
    }

    // --- the kinds -----------------------------------------------------------------------------------------

    void add(RecordConverter& to, const CudaClockRecord& r) {
        const std::int64_t now = to.to_trace_ns(r.ticks);
        if (r.time.ns <= 0 || r.time > CudaClock::kLatest || now < -kLongest || now > kLongest) return;
        const auto step = clock_.add(r.time, now);
        if (!step || ++steps_ > kMostSteps) return;
        say(to, now, CudaClock::describe_step(*step, now));
    }

    bool notice(RecordConverter& to, const std::byte* bytes, std::size_t size) {
        const auto r = read_record<TextRecord>(bytes, size);
        if (!r || r->owner < 1 || r->owner > 3) return false;
        const char* text = reinterpret_cast<const char*>(bytes) + sizeof(TextRecord);
        const std::string sentence(text, ::strnlen(text, size - sizeof(TextRecord)));
        // One notice is enough if many processes lack the same thing.
        if (process_.findings->note(sentence)) {
            to.sink().add(traces::schema::DiagnosticRow{
                to.to_trace_ns(r->ticks), static_cast<traces::schema::Severity>(r->owner), sentence});
        }
        return true;
    }

    void add(RecordConverter&, const CudaLossRecord& r) {
        // The counts only grow, and never beyond this; other counts are damage.
        constexpr std::uint64_t kMost = std::uint64_t{1} << 50;
        if (r.dropped < told_.dropped || r.untimed < told_.untimed || r.dropped > kMost || r.untimed > kMost)
            return;
        process_.findings->lost +=
            static_cast<std::int64_t>(r.dropped - told_.dropped + r.untimed - told_.untimed);
        told_ = r;
    }

    void add(RecordConverter& to, const CudaDeviceRecord& r) {
        traces::schema::GpuRow row;
        row.cuda_device = r.device;
        row.pid = process_.pid;
        row.name = to.text(r.header.name);
        row.uuid = uuid_text(r.uuid);
        row.memory = r.memory;
        row.memory_bandwidth = r.memory_bandwidth;
        row.clock_hz = r.clock_hz;
        row.l2_bytes = r.l2_bytes;
        row.constant_bytes = r.constant_bytes;
        row.multiprocessors = static_cast<int>(r.multiprocessors);
        row.compute_major = static_cast<int>(r.compute_major);
        row.compute_minor = static_cast<int>(r.compute_minor);
        row.warp_threads = static_cast<int>(r.warp_threads);
        row.copy_engines = static_cast<int>(r.copy_engines);
        row.max_threads_per_block = static_cast<int>(r.max_threads_per_block);
        row.max_warps_per_multiprocessor = static_cast<int>(r.max_warps_per_multiprocessor);
        row.max_blocks_per_multiprocessor = static_cast<int>(r.max_blocks_per_multiprocessor);
        row.max_registers_per_block = static_cast<int>(r.max_registers_per_block);
        row.max_registers_per_multiprocessor = static_cast<int>(r.max_registers_per_multiprocessor);
        row.max_shared_per_block = r.max_shared_per_block;
        row.max_shared_per_multiprocessor = r.max_shared_per_multiprocessor;
        if (facts_.emplace(r.device, std::move(row)).second) describe(to, r.device);
    }

    void add(RecordConverter& to, const CudaContextRecord& r) {
        contexts_[r.context] = r.device;
        traces::schema::CudaContextRow row;
        row.pid = process_.pid;
        row.device = device_id(to, r.device);
        row.context = r.context;
        row.null_stream = r.null_stream;
        to.sink().add(row);
    }

    void add(RecordConverter& to, const CudaStreamRecord& r) {
        traces::schema::CudaStreamRow row;
        row.pid = process_.pid;
        row.context = r.context;
        row.stream = r.stream;
        row.priority = r.priority;
        row.flag = r.flag;
        to.sink().add(row);
    }

    void add(RecordConverter& to, const CudaApiRecord& r) {
        traces::schema::RuntimeRow row;
        if (!set_times(r.start, r.end, &row.start, &row.end)) return;
        row.global_tid = traces::schema::global_tid(process_.pid, r.tid);
        row.correlation = correlation(r.correlation);
        row.name = to.name(r.header.name);
        row.return_value = static_cast<int>(r.result);
        row.driver = r.header.flags != 0;
        to.emit(row);
    }

    void add(RecordConverter& to, const CudaKernelRecord& r) {
        traces::schema::KernelRow row;
        if (!set_place(to, r, row)) return;
        fill_row(kernel_names(to, r.header.name), row);
        fill_row(r, row);
        to.emit(row);
    }

    void add(RecordConverter& to, const CudaMemcpyRecord& r) {
        traces::schema::MemcpyRow row;
        if (!set_place(to, r, row)) return;
        fill_row(r, row);
        if (r.src_device >= 0 && r.dst_device >= 0) {
            row.src_device = device_id(to, r.src_device, r.src_context);
            row.src_context = r.src_context;
            row.dst_device = device_id(to, r.dst_device, r.dst_context);
            row.dst_context = r.dst_context;
        }
        to.emit(row);
    }

    void add(RecordConverter& to, const CudaMemsetRecord& r) {
        traces::schema::MemsetRow row;
        if (!set_place(to, r, row)) return;
        fill_row(r, row);
        to.emit(row);
    }

    void add(RecordConverter& to, const CudaSynchronizationRecord& r) {
        traces::schema::SynchronizationRow row;
        if (!set_times(r.start, r.end, &row.start, &row.end)) return;
        const auto context = static_cast<std::int32_t>(r.context);
        row.device = device_of_context(to, context);
        row.stream = r.stream == cupti::kNotApplicable ? -1 : static_cast<int>(r.stream);
        row.correlation = correlation(r.correlation);
        row.global_pid = global_pid();
        row.sync_type = r.type;
        row.event_id = r.event == cupti::kNotApplicable ? -1 : std::int64_t{r.event};
        row.context = context;
        if (r.event_sync != 0) row.event_sync_id = r.event_sync;
        to.emit(row);
    }

    void add(RecordConverter& to, const CudaEventRecord& r) {
        traces::schema::CudaEventRow row;
        std::int64_t end = 0;
        if (r.time.ns != 0 && !set_times(r.time, r.time, &row.time, &end)) return;
        row.device = r.device >= 0 ? device_id(to, r.device, r.context) : device_of_context(to, r.context);
        row.context = r.context;
        row.stream = r.stream;
        row.correlation = correlation(r.correlation);
        row.global_pid = global_pid();
        row.event_id = r.event;
        if (r.event_sync != 0) row.event_sync_id = r.event_sync;
        to.emit(row);
    }

    void add(RecordConverter& to, const CudaMemoryRecord& r) {
        traces::schema::CudaMemoryRow row;
        std::int64_t end = 0;
        if (!set_times(r.time, r.time, &row.time, &end)) return;
        row.global_pid = global_pid();
        row.device = device_id(to, r.device, r.context);
        row.context = r.context;
        row.address = r.address;
        row.pc = r.pc;
        row.bytes = r.bytes;
        row.mem_kind = mem_kind(r.mem_kind);
        row.is_free = r.is_free != 0;
        row.correlation = correlation(r.correlation);
        row.stream = r.stream == cupti::kNotApplicable ? -1 : static_cast<int>(r.stream);
        row.name = to.name(r.header.name);
        row.pool_address = r.pool_address;
        row.pool_threshold = r.pool_threshold;
        row.pool_size = r.pool_size;
        row.pool_used = r.pool_used;
        to.emit(row);
    }

    void add(RecordConverter& to, const CudaPoolRecord& r) {
        traces::schema::CudaPoolRow row;
        std::int64_t end = 0;
        if (!set_times(r.time, r.time, &row.time, &end)) return;
        row.global_pid = global_pid();
        row.device = device_id(to, r.device);
        row.address = r.address;
        row.operation = r.operation;
        row.type = r.type;
        row.correlation = correlation(r.correlation);
        row.min_bytes_to_keep = r.min_bytes_to_keep;
        row.threshold = r.threshold;
        row.size = r.size;
        row.used = r.used;
        to.emit(row);
    }

    void add(RecordConverter& to, const CudaOverheadRecord& r) {
        traces::schema::OverheadRow row;
        if (!set_times(r.start, r.end, &row.start, &row.end)) return;
        OverheadKind kind = kUnknownOverhead;
        for (const OverheadKind& known : kOverheads) {
            if (known.cupti == r.type) kind = known;
        }
        const auto [name, added] = overhead_names_.try_emplace(kind.cupti);
        if (added) name->second = to.sink().intern(kind.name);
        row.overhead_type = kind.type;
        row.name = name->second;
        row.global_tid = traces::schema::global_tid(process_.pid, r.tid != 0 ? r.tid : process_.pid);
        row.correlation = correlation(r.correlation);
        to.emit(row);
    }

    void add(RecordConverter& to, const CudaGraphRecord& r) {
        traces::schema::GraphTraceRow row;
        if (!set_place(to, r, row)) return;
        row.graph = r.graph;
        to.emit(row);
    }

    static constexpr int kMostSteps = 8;  // steps of the clock that are reported
    static constexpr std::int64_t kLongest = 1'000'000'000'000'000'000;  // of a recording: 31 years

    const ProcessFacts process_;
    CudaClock clock_;
    int steps_ = 0;
    std::int64_t unplaced_ = 0;  // events whose time could not be determined
    CudaLossRecord told_{};
    std::map<std::int32_t, int> devices_;  // CUDA's number -> the trace's id, of the devices in use
    std::map<std::int32_t, traces::schema::GpuRow> facts_;  // by CUDA's number, of all devices
    std::map<std::int32_t, std::int32_t> contexts_;         // context -> CUDA's number of its device
    std::unordered_map<std::uint32_t, SymbolNames> kernels_;
    std::map<std::uint32_t, StringId> overhead_names_;  // by CUPTI's type
};

}  // namespace

std::unique_ptr<RecordHandler> make_cuda_handler(const ProcessFacts& process) {
    return std::make_unique<CudaHandler>(process);
}

}  // namespace shardscope::profiler
