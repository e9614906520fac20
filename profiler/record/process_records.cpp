// Maps and checks the record file of one process.
#include "profiler/record/process_records.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profiler/base/pid_namespace.h"
#include "profiler/record/handlers.h"

namespace shardscope::profiler {
namespace {

ProcessHeader& header_of(std::byte* memory) {
    return *reinterpret_cast<ProcessHeader*>(memory);
}

}  // namespace

std::unique_ptr<ProcessRecords> ProcessRecords::open(const std::string& path, traces::store::EventSink& sink,
                                                     const Calibration& clock, MonotonicTime origin,
                                                     RowPids& row_pids, int number, Findings* findings,
                                                     bool* not_ours) {
    *not_ours = false;
    traces::store::FileDescriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    struct stat facts;
    if (!file || ::fstat(file.get(), &facts) != 0) return nullptr;
    if (facts.st_size < static_cast<off_t>(kProcessHeaderBytes)) return nullptr;  // still being made
    // Maps the header alone first: it says how far the file may grow.
    void* memory = ::mmap(nullptr, kProcessHeaderBytes, PROT_READ, MAP_SHARED, file.get(), 0);
    if (memory == MAP_FAILED) return nullptr;
    const ProcessHeader& header = header_of(static_cast<std::byte*>(memory));
    const bool ready = header.ready.load(std::memory_order_acquire) == 1;
    const std::uint32_t max_chunks = header.max_chunks;
    *not_ours =
        ready && (header.magic != kProcessMagic || header.format != kRecordFormat ||
                  header.chunk_bytes != kMappedChunkBytes || max_chunks == 0 || max_chunks > (1u << 20));
    ::munmap(memory, kProcessHeaderBytes);
    const std::size_t bytes = kProcessHeaderBytes + std::size_t{max_chunks} * kMappedChunkBytes;
    if (ready && !*not_ours)
        memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file.get(), 0);
    if (!ready || *not_ours || memory == MAP_FAILED) return nullptr;
    return std::unique_ptr<ProcessRecords>(new ProcessRecords(path, std::move(file),
                                                              {static_cast<std::byte*>(memory), bytes}, sink,
                                                              clock, origin, row_pids, number, findings));
}

ProcessRecords::ProcessRecords(std::string path, traces::store::FileDescriptor file, Mapping mapping,
                               traces::store::EventSink& sink, const Calibration& clock, MonotonicTime origin,
                               RowPids& row_pids, int number, Findings* findings)
    : path_(std::move(path)),
      file_(std::move(file)),
      mapping_(mapping),
      pid_(header_of(mapping.memory).pid),
      rank_(header_of(mapping.memory).rank),
      start_ticks_(header_of(mapping.memory).start_ticks),
      name_(header_of(mapping.memory).name,
            ::strnlen(header_of(mapping.memory).name, sizeof(ProcessHeader::name))),
      same_pid_namespace_(header_of(mapping.memory).pid_namespace == own_pid_namespace()),
      reader_(mapping.memory + kProcessHeaderBytes, kMappedChunkBytes, 0, &header_of(mapping.memory).control),
      converter_(sink, clock, origin, row_pids.of(header_of(mapping.memory).pid_namespace, pid_)) {
    add_handlers(converter_, {row_pid(), rank_, number, findings});
}

ProcessRecords::~ProcessRecords() {
    ::munmap(mapping_.memory, mapping_.bytes);
    ::unlink(path_.c_str());
}

bool ProcessRecords::gone() const {
    return same_pid_namespace_ && ::kill(static_cast<pid_t>(pid_), 0) != 0 && errno == ESRCH;
}

void ProcessRecords::snapshot() {
    struct stat facts;
    if (::fstat(file_.get(), &facts) != 0) return;
    const auto size = std::min(static_cast<std::size_t>(facts.st_size), mapping_.bytes);
    reader_.limit(static_cast<std::uint32_t>((std::max(size, kProcessHeaderBytes) - kProcessHeaderBytes) /
                                             kMappedChunkBytes));
    reader_.snapshot();
}

void ProcessRecords::drain() {
    reader_.drain([this](std::uint32_t log, std::uint32_t tid, std::span<const std::byte> records) {
        bytes_read_ += records.size();
        converter_.convert(log, tid, records);
    });
}

void ProcessRecords::close(std::int64_t end_ns) {
    reader_.open_gaps([this](std::uint32_t log, Ticks ticks, std::uint64_t min_depth) {
        converter_.close_after_loss(log, ticks, min_depth);
    });
    converter_.close_open_ranges(end_ns);
}

}  // namespace shardscope::profiler
