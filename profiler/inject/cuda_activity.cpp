// Converts CUPTI's records, kind by kind.
#include "profiler/inject/cuda_activity.h"

#include <initializer_list>

#include <stdlib.h>
#include <string.h>

#include "profiler/base/clock_anchor.h"
#include "profiler/cupti/convert.h"
#include "profiler/inject/process_log.h"

namespace shardscope::profiler::inject {

using cupti::begins_with;
using cupti::make_record;
using cupti::real_time;
using cupti::small;

namespace {

// Calls that programs make thousands of times and that neither launch nor wait.
bool is_wanted_runtime(const char* name) {
    for (const char* noise :
         {"INVALID", "cudaGetDevice_", "cudaSetDevice_", "cudaGetLastError_", "cudaPeekAtLastError_",
          "cudaEventCreate", "cudaEventDestroy_", "cudaDeviceGetAttribute_", "cudaStreamIsCapturing",
          "cudaStreamGetCaptureInfo", "cudaThreadExchangeStreamCaptureMode", "cudaOccupancy",
          "cudaFuncGetAttributes", "cudaPointerGetAttributes", "cudaGetDeviceCount", "cudaConfigureCall",
          "cudaSetupArgument"}) {
        if (begins_with(name, noise)) return false;
    }
    return true;
}

// The driver's calls that launch, copy, wait or manage memory: for programs without the runtime.
bool is_wanted_driver(const char* name) {
    for (const char* noise : {"cuMemGet", "cuMemHostGet", "cuMemPoolGet", "cuMemRangeGet",
                              "cuMemExportToShareableHandle", "cuMemRetainAllocationHandle"}) {
        if (begins_with(name, noise)) return false;
    }
    for (const char* wanted :
         {"cuLaunch", "cuGraphLaunch", "cuMem", "cuCtxSynchronize", "cuStreamSynchronize",
          "cuEventSynchronize", "cuStreamWaitEvent", "cuEventRecord", "cuModuleLoad", "cuLibraryLoad"}) {
        if (begins_with(name, wanted)) return true;
    }
    return false;
}

// Writes a record as it is, after a header.
template <typename Record>
void write(const Record& record) {
    Entered thread;
    if (!thread) return;
    auto* r = thread->writer.template begin<Record>(record.header.kind, record.header.name);
    if (r == nullptr) return;
    *r = record;
    thread->writer.publish();
}

}  // namespace

bool is_wanted_call(int domain, const char* name) {
    return domain == cupti::kDomainRuntime ? is_wanted_runtime(name) : is_wanted_driver(name);
}

bool CudaActivity::is_timed(std::uint64_t start, std::uint64_t end) {
    if (cupti::is_timed(start, end)) return true;
    ++untimed_;
    return false;
}

// --- whether work belongs to the recording -----------------------------------------------------------------

template <typename Record>
void CudaActivity::write_work(const Record& record, RealTime start) {
    static_assert(sizeof(Record) <= sizeof(Waiting::record));
    if (launches_.always_on()) return write(record);
    if (record.correlation == 0) {
        if (launches_.was_on(start)) write(record);
        return;
    }
    switch (launches_.of_launch(record.correlation)) {
        case CudaLaunches::Verdict::keep:
            return write(record);
        case CudaLaunches::Verdict::drop:
            return;
        case CudaLaunches::Verdict::unknown:
            return wait(&record, sizeof record, record.correlation, start);
    }
}

void CudaActivity::wait(const void* record, std::size_t bytes, std::uint32_t correlation, RealTime start) {
    if (waiting_count_ == waiting_room_) {
        const std::size_t room = waiting_room_ == 0 ? 1024 : waiting_room_ * 2;
        void* more =
            room <= kMostWaiting ? ::realloc(waiting_, room * sizeof(Waiting)) : nullptr;  // trivial structs
        if (more == nullptr) {
            settle(true);
            if (waiting_count_ == waiting_room_) return;  // no memory was ever available
        } else {
            waiting_ = static_cast<Waiting*>(more);
            waiting_room_ = room;
        }
    }
    Waiting& added = waiting_[waiting_count_++];
    added.correlation = correlation;
    added.rounds = 0;
    added.start = start;
    ::memcpy(added.record, record, bytes);
}

void CudaActivity::settle(bool last) {
    constexpr std::uint32_t kRounds = 3;  // in flushes; the call should have arrived long ago
    std::size_t kept = 0;
    for (std::size_t i = 0; i < waiting_count_; ++i) {
        Waiting& work = waiting_[i];
        auto verdict = launches_.of_launch(work.correlation);
        if (verdict == CudaLaunches::Verdict::unknown && (last || ++work.rounds >= kRounds)) {
            ++misplaced_;
            verdict =
                launches_.was_on(work.start) ? CudaLaunches::Verdict::keep : CudaLaunches::Verdict::drop;
        }
        if (verdict == CudaLaunches::Verdict::unknown) {
            if (kept != i) waiting_[kept] = work;
            ++kept;
        } else if (verdict == CudaLaunches::Verdict::keep) {
            RecordHeader header;
            ::memcpy(&header, work.record, sizeof header);
            Entered thread;
            if (!thread) continue;
            auto* r = thread->writer.begin<CudaClockRecord>(header.kind, header.name, header.bytes);
            if (r == nullptr) continue;
            ::memcpy(static_cast<void*>(r), work.record, header.bytes);
            thread->writer.publish();
        }
    }
    waiting_count_ = kept;
}

// --- the kinds ---------------------------------------------------------------------------------------------

void CudaActivity::convert(const cupti::Api& api) {
    const int domain = api.kind == cupti::kKindDriver ? cupti::kDomainDriver : cupti::kDomainRuntime;
    launches_.saw_call(api.correlation, real_time(api.start));
    CudaCalls::Call* call = calls_->find(domain, api.callback);
    if (call != nullptr && !call->wanted) return;
    if (!is_timed(api.start, api.end) || !launches_.was_on(real_time(api.start))) return;
    if (call != nullptr && call->id == 0) call->id = name_id(narrow_text(call->name));
    auto r = make_record<CudaApiRecord>(call != nullptr ? call->id : 0, domain == cupti::kDomainDriver);
    r.start = real_time(api.start);
    r.end = real_time(api.end);
    r.tid = api.tid;
    r.correlation = api.correlation;
    r.result = api.result;
    write(r);
}

std::uint32_t CudaActivity::kernel_name(const char* name) {
    if (name == nullptr) return 0;
    const auto bits = reinterpret_cast<std::uintptr_t>(name);
    KnownName& known = names_[(bits >> 4 ^ bits >> 14) % (sizeof names_ / sizeof *names_)];
    // After its module is unloaded, another name may lie at the same address.
    if (known.address == name && ::strcmp(known.text, name) == 0) return known.id;
    const std::uint32_t id = name_id(narrow_text(name));
    ::free(known.text);
    known = {nullptr, ::strdup(name), id};
    if (known.text != nullptr) known.address = name;
    return id;
}

void CudaActivity::convert(const cupti::Kernel& kernel) {
    if (!is_timed(kernel.start, kernel.end)) return;
    const auto r = cupti::to_record(kernel, cupti_->version, kernel_name(kernel.name));
    write_work(r, r.start);
}

template <typename Work>
void CudaActivity::convert_work(const Work& work) {
    if (!is_timed(work.start, work.end)) return;
    const auto r = cupti::to_record(work);
    write_work(r, r.start);
}

void CudaActivity::convert(const cupti::Memcpy& copy) {
    convert_work(copy);
}

void CudaActivity::convert(const cupti::MemcpyPeer& copy) {
    convert_work(copy);
}

void CudaActivity::convert(const cupti::Memset& set) {
    convert_work(set);
}

void CudaActivity::convert(const cupti::Synchronization& sync) {
    if (!is_timed(sync.start, sync.end)) return;
    auto r = make_record<CudaSynchronizationRecord>();
    r.start = real_time(sync.start);
    r.end = real_time(sync.end);
    r.correlation = sync.correlation;
    r.context = sync.context;
    r.stream = sync.stream;
    r.event = sync.event;
    r.type = small(sync.type);
    r.event_sync = static_cast<std::int64_t>(sync.event_sync);
    write_work(r, r.start);
}

void CudaActivity::convert(const cupti::CudaEvent& event) {
    const bool is_complete = cupti_->version >= cupti::kVersion12_8;
    auto r = make_record<CudaEventRecord>();
    r.time = real_time(event.device_time);
    r.correlation = event.correlation;
    r.device = is_complete ? small(event.device) : -1;
    r.context = small(event.context);
    r.stream = small(event.stream);
    r.event = small(event.event);
    r.event_sync = static_cast<std::int64_t>(event.event_sync);
    write_work(r, r.time);
}

void CudaActivity::convert(const cupti::Memory& memory) {
    if (!is_timed(memory.time, memory.time) || !launches_.was_on(real_time(memory.time))) return;
    auto r = make_record<CudaMemoryRecord>(memory.name != nullptr ? name_id(narrow_text(memory.name)) : 0);
    r.time = real_time(memory.time);
    r.address = memory.address;
    r.pc = memory.pc;
    r.bytes = static_cast<std::int64_t>(memory.bytes);
    r.correlation = memory.correlation;
    r.device = small(memory.device);
    r.context = small(memory.context);
    r.stream = memory.stream;
    r.mem_kind = static_cast<std::uint8_t>(memory.mem_kind);
    r.is_free = memory.operation == cupti::kMemoryRelease;
    r.pool_address = memory.pool_address;
    r.pool_threshold = static_cast<std::int64_t>(memory.pool_threshold);
    // For an imported pool, the size field holds the process that it came from.
    const bool is_local = memory.pool_type == cupti::kPoolLocal;
    r.pool_size = is_local ? static_cast<std::int64_t>(memory.pool_size) : 0;
    r.pool_used = is_local ? static_cast<std::int64_t>(memory.pool_used) : 0;
    write(r);
}

void CudaActivity::convert(const cupti::MemoryPool& pool) {
    if (!is_timed(pool.time, pool.time) || !launches_.was_on(real_time(pool.time))) return;
    auto r = make_record<CudaPoolRecord>();
    r.time = real_time(pool.time);
    r.address = pool.address;
    r.correlation = pool.correlation;
    r.device = small(pool.device);
    r.operation = small(pool.operation);
    r.type = small(pool.type);
    r.min_bytes_to_keep = static_cast<std::int64_t>(pool.min_bytes_to_keep);
    r.threshold = static_cast<std::int64_t>(pool.threshold);
    r.size = static_cast<std::int64_t>(pool.size);
    r.used = static_cast<std::int64_t>(pool.used);
    write(r);
}

void CudaActivity::convert(const cupti::Overhead& overhead) {
    if (!is_timed(overhead.start, overhead.end) || !launches_.was_on(real_time(overhead.start))) return;
    auto r = make_record<CudaOverheadRecord>();
    r.start = real_time(overhead.start);
    r.end = real_time(overhead.end);
    r.correlation = overhead.correlation;
    r.tid = overhead.object == cupti::kObjectThread ? overhead.object_id[1] : 0;
    r.type = overhead.overhead;
    write(r);
}

void CudaActivity::convert(const cupti::GraphTrace& graph) {
    if (!is_timed(graph.start, graph.end)) return;
    auto r = make_record<CudaGraphRecord>();
    r.start = real_time(graph.start);
    r.end = real_time(graph.end);
    r.correlation = graph.correlation;
    r.device = small(graph.device);
    r.context = small(graph.context);
    r.stream = small(graph.stream);
    r.graph = graph.graph;
    write_work(r, r.start);
}

void CudaActivity::convert(const cupti::Device& device) {
    auto r = make_record<CudaDeviceRecord>(device.name != nullptr ? name_id(narrow_text(device.name)) : 0);
    r.memory = static_cast<std::int64_t>(device.memory);
    r.memory_bandwidth = static_cast<std::int64_t>(device.memory_bandwidth) * 1000;
    r.clock_hz = std::int64_t{device.clock} * 1000;
    r.device = small(device.id);
    r.l2_bytes = device.l2_bytes;
    r.constant_bytes = device.constant_bytes;
    r.multiprocessors = device.multiprocessors;
    r.compute_major = device.compute_major;
    r.compute_minor = device.compute_minor;
    r.warp_threads = device.warp_threads;
    r.copy_engines = device.copy_engines;
    r.max_threads_per_block = device.max_threads_per_block;
    r.max_warps_per_multiprocessor = device.max_warps_per_multiprocessor;
    r.max_blocks_per_multiprocessor = device.max_blocks_per_multiprocessor;
    r.max_registers_per_block = device.max_registers_per_block;
    r.max_registers_per_multiprocessor = device.max_registers_per_multiprocessor;
    r.max_shared_per_block = device.max_shared_per_block;
    r.max_shared_per_multiprocessor = device.max_shared_per_multiprocessor;
    ::memcpy(r.uuid, device.uuid, sizeof r.uuid);
    write(r);
}

void CudaActivity::convert(const cupti::Context& context) {
    auto r = make_record<CudaContextRecord>();
    r.context = small(context.context);
    r.device = small(context.device);
    r.null_stream = context.null_stream;
    write(r);
}

void CudaActivity::convert(const cupti::Stream& stream) {
    auto r = make_record<CudaStreamRecord>();
    r.context = small(stream.context);
    r.stream = small(stream.stream);
    r.priority = static_cast<std::int32_t>(stream.priority);
    r.flag = small(stream.flag & 0xFFFF);
    write(r);
}

// --- clock and counts --------------------------------------------------------------------------------------

void CudaActivity::write_clock() {
    const RealTimeAnchor pair = read_realtime_anchor(session()->clock);
    auto r = make_record<CudaClockRecord>();
    r.ticks = pair.ticks;
    r.time = pair.time;
    write(r);
}

void CudaActivity::write_loss(std::uint64_t dropped_by_cupti) {
    dropped_ = dropped_by_cupti;
    if (told_[0] == dropped_ && told_[1] == untimed_ && told_[2] == misplaced_) return;
    told_[0] = dropped_;
    told_[1] = untimed_;
    told_[2] = misplaced_;
    auto r = make_record<CudaLossRecord>();
    r.dropped = dropped_;
    r.untimed = untimed_;
    r.misplaced = misplaced_;
    write(r);
}

}  // namespace shardscope::profiler::inject
