// Opens, maps and reads the rings.
#include "profiler/stacks/perf_rings.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include <fmt/core.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace shardscope::profiler {
namespace {

constexpr std::size_t kRingBytes = std::size_t{128} << 10;  // a power of 2; what every user may lock
constexpr int kMostProcessors = 4096;
constexpr std::int64_t kNsPerSecond = 1'000'000'000;
constexpr std::size_t kDeepestStack = 512;
constexpr std::int64_t kDrainPeriodNs = 100'000'000;

std::size_t mapped_bytes() {
    return kRingBytes + static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

perf_event_attr attributes(int hertz, bool kernel) {
    perf_event_attr attr;
    std::memset(&attr, 0, sizeof attr);
    attr.size = sizeof attr;
    attr.type = PERF_TYPE_SOFTWARE;
    attr.config = PERF_COUNT_SW_CPU_CLOCK;
    attr.sample_period = static_cast<std::uint64_t>(kNsPerSecond / hertz);
    attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
                       PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN;
    attr.sample_id_all = 1;
    attr.disabled = 1;
    attr.enable_on_exec = 1;
    attr.inherit = 1;
    attr.exclude_kernel = kernel ? 0 : 1;
    attr.exclude_callchain_kernel = 1;
    attr.exclude_hv = 1;
    attr.mmap = 1;
    attr.comm = 1;
    attr.comm_exec = 1;
    attr.task = 1;
    attr.use_clockid = 1;
    attr.clockid = CLOCK_MONOTONIC;
    return attr;
}

// Reads the fields of a record one after the other; beyond its end all are 0.
class Fields {
  public:
    Fields(const std::byte* from, std::size_t size) : at_(from), left_(size) {}

    template <typename Number>
    Number next() {
        Number number{};
        if (left_ < sizeof number) {
            left_ = 0;
            return number;
        }
        std::memcpy(&number, at_, sizeof number);
        skip(sizeof number);
        return number;
    }
    // Up to the first 0, without the last `after` bytes.
    std::string text(std::size_t after) {
        if (left_ < after) return {};
        const auto* from = reinterpret_cast<const char*>(at_);
        const std::size_t size = ::strnlen(from, left_ - after);
        std::string text(from, size);
        skip(left_ - after);
        return text;
    }
    std::size_t left() const { return left_; }

  private:
    void skip(std::size_t size) {
        at_ += size;
        left_ -= size;
    }
    const std::byte* at_;
    std::size_t left_;
};

// What sample_id_all puts at the end of every other record: pid and tid, time, cpu.
constexpr std::size_t kSampleIdBytes = 8 + 8 + 8;

}  // namespace

PerfRefusal perf_refusal(int error, bool of_mapping) {
    PerfRefusal refusal;
    if (of_mapping) {
        refusal.reason = fmt::format("the kernel gives no memory for perf events ({})", std::strerror(error));
        if (error == EPERM)  // of what each user may lock
            refusal.advice = "a larger sysctl kernel.perf_event_mlock_kb or ulimit -l permits it";
        return refusal;
    }
    refusal.reason = fmt::format("the kernel refuses perf events ({})", std::strerror(error));
    switch (error) {
        case EACCES:
            refusal.advice = "sysctl kernel.perf_event_paranoid=2 permits them";
            break;
        case EPERM:  // a filter of system calls, as container engines have
            refusal.advice = "in a container --cap-add PERFMON permits them";
            break;
        case EMFILE:
        case ENFILE:
            refusal.reason =
                fmt::format("perf events need a descriptor for each processor ({})", std::strerror(error));
            refusal.advice = "a higher ulimit -n permits them";
            break;
        case ENOSYS:
        case ENOENT:
        case EOPNOTSUPP:
            refusal.reason = fmt::format("this kernel has no perf events ({})", std::strerror(error));
            break;
        default:
            break;
    }
    return refusal;
}

PerfRings::PerfRings(int hertz) {
    if (!open(hertz, true)) open(hertz, false);
}

PerfRings::~PerfRings() {
    close();
}

bool PerfRings::open(int hertz, bool kernel) {
    perf_event_attr attr = attributes(hertz, kernel);
    const auto refuse = [this](bool of_mapping) {
        refusal_ = perf_refusal(errno, of_mapping);
        close();
        return false;
    };
    const auto processors = std::min(static_cast<int>(::sysconf(_SC_NPROCESSORS_CONF)), kMostProcessors);
    for (int cpu = 0; cpu < processors; ++cpu) {
        Ring ring;
        ring.event = traces::store::FileDescriptor(
            static_cast<int>(::syscall(SYS_perf_event_open, &attr, 0, cpu, -1, PERF_FLAG_FD_CLOEXEC)));
        if (!ring.event && errno == ENODEV) continue;  // the processor is offline
        if (!ring.event) return refuse(false);
        ring.memory =
            ::mmap(nullptr, mapped_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, ring.event.get(), 0);
        if (ring.memory == MAP_FAILED) return refuse(true);
        rings_.push_back(std::move(ring));
    }
    refusal_ = rings_.empty() ? perf_refusal(ENODEV, false) : PerfRefusal{};
    return !rings_.empty();
}

void PerfRings::close() {
    for (const Ring& ring : rings_) ::munmap(ring.memory, mapped_bytes());
    rings_.clear();
}

bool PerfRings::can_wait(std::int64_t since) const {
    const auto has_room = [](const Ring& ring) {
        auto* page = static_cast<perf_event_mmap_page*>(ring.memory);
        const std::uint64_t head = std::atomic_ref(page->data_head).load(std::memory_order_relaxed);
        return head - page->data_tail < kRingBytes / 2;
    };
    return since < kDrainPeriodNs && std::all_of(rings_.begin(), rings_.end(), has_room);
}

void PerfRings::drain(const Visit& visit) {
    for (Ring& ring : rings_) drain(ring, visit);
}

void PerfRings::drain(Ring& ring, const Visit& visit) {
    auto* page = static_cast<perf_event_mmap_page*>(ring.memory);
    const std::byte* data = static_cast<const std::byte*>(ring.memory) + (mapped_bytes() - kRingBytes);
    const std::uint64_t head = std::atomic_ref(page->data_head).load(std::memory_order_acquire);
    std::uint64_t tail = page->data_tail;
    while (head - tail >= sizeof(perf_event_header)) {
        const std::size_t at = tail % kRingBytes;
        perf_event_header header;  // records begin at multiples of 8, so that it does not go over the end
        std::memcpy(&header, data + at, sizeof header);
        if (header.size < sizeof header || header.size > head - tail) break;
        const std::byte* record = data + at;
        if (at + header.size > kRingBytes) {
            wrapped_.resize(header.size);
            const std::size_t first = kRingBytes - at;
            std::memcpy(wrapped_.data(), record, first);
            std::memcpy(wrapped_.data() + first, data, header.size - first);
            record = wrapped_.data();
        }
        take(record, header.size, visit);
        tail += header.size;
    }
    std::atomic_ref(page->data_tail).store(tail, std::memory_order_release);
}

void PerfRings::take(const std::byte* record, std::size_t size, const Visit& visit) {
    perf_event_header header;
    std::memcpy(&header, record, sizeof header);
    Fields fields(record + sizeof header, size - sizeof header);
    const auto time = [&] {  // of a record other than a sample: before the processor's number
        std::uint64_t ns = 0;
        if (size >= sizeof header + kSampleIdBytes) std::memcpy(&ns, record + size - 16, sizeof ns);
        return MonotonicTime(static_cast<std::int64_t>(ns));
    };
    switch (header.type) {
        case PERF_RECORD_SAMPLE: {
            SampledStack stack;
            const auto address = fields.next<std::uint64_t>();
            stack.pid = fields.next<std::int32_t>();
            stack.tid = fields.next<std::int32_t>();
            stack.time = MonotonicTime(static_cast<std::int64_t>(fields.next<std::uint64_t>()));
            stack.cpu = fields.next<std::int32_t>();
            fields.next<std::uint32_t>();
            stack.weight = static_cast<std::int64_t>(fields.next<std::uint64_t>());
            const auto count = std::min<std::uint64_t>(fields.next<std::uint64_t>(), kDeepestStack);
            for (std::uint64_t i = 0; i < count && fields.left() > 0; ++i) {
                const auto frame = fields.next<std::uint64_t>();
                if (frame < PERF_CONTEXT_MAX) stack.addresses.push_back(frame);  // else a mark between spaces
            }
            stack.in_kernel = (header.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
            if (stack.addresses.empty() && !stack.in_kernel) stack.addresses.push_back(address);
            visit(std::move(stack));
            return;
        }
        case PERF_RECORD_MMAP: {
            CodeMapping mapping;
            mapping.time = time();
            mapping.pid = fields.next<std::int32_t>();
            fields.next<std::int32_t>();
            mapping.start = fields.next<std::uint64_t>();
            mapping.size = fields.next<std::uint64_t>();
            mapping.offset = fields.next<std::uint64_t>();
            mapping.file = fields.text(kSampleIdBytes);
            visit(std::move(mapping));
            return;
        }
        case PERF_RECORD_COMM: {
            ThreadName name;
            name.time = time();
            name.pid = fields.next<std::int32_t>();
            name.tid = fields.next<std::int32_t>();
            name.name = fields.text(kSampleIdBytes);
            if ((header.misc & PERF_RECORD_MISC_COMM_EXEC) != 0) visit(ProgramStart{name.time, name.pid});
            visit(std::move(name));
            return;
        }
        case PERF_RECORD_FORK: {
            ProcessFork fork;
            fork.time = time();
            fork.pid = fields.next<std::int32_t>();
            fork.parent = fields.next<std::int32_t>();
            if (fork.pid != fork.parent) visit(fork);  // else a thread
            return;
        }
        case PERF_RECORD_EXIT: {
            ThreadEnd end;
            end.time = time();
            end.pid = fields.next<std::int32_t>();
            fields.next<std::int32_t>();  // the parent's
            end.tid = fields.next<std::int32_t>();
            visit(end);
            return;
        }
        case PERF_RECORD_LOST:
            fields.next<std::uint64_t>();
            lost_ += static_cast<std::int64_t>(fields.next<std::uint64_t>());
            return;
        default:
            return;
    }
}

}  // namespace shardscope::profiler
