// Session, record file, names and threads inside the injected program. Any of its threads may call this at
// any moment, even while it forks, ends or runs out of space.
#include "profiler/inject/process_log.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "profiler/base/pid_namespace.h"
#include "profiler/inject/name_table.h"
#include "profiler/inject/session_format.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // since Linux 5.14; elsewhere it fails and pages are made on first touch
#endif

// Calls the function when the thread ends (glibc 2.18); the handle keeps this library loaded until then.
extern "C" {  // NOLINTBEGIN(bugprone-reserved-identifier): the C library's names
__attribute__((weak)) int __cxa_thread_atexit_impl(void (*function)(void*), void* argument, void* library);
extern void* __dso_handle;
}  // NOLINTEND(bugprone-reserved-identifier)

namespace shardscope::profiler::inject {
namespace {

constexpr std::size_t kPathBytes = 4096;

class Locked {
  public:
    explicit Locked(pthread_mutex_t& mutex) : mutex_(mutex) { ::pthread_mutex_lock(&mutex_); }
    ~Locked() { ::pthread_mutex_unlock(&mutex_); }
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;

  private:
    pthread_mutex_t& mutex_;
};

class KeepErrno {
  public:
    KeepErrno() : value_(errno) {}
    ~KeepErrno() { errno = value_; }
    KeepErrno(const KeepErrno&) = delete;
    KeepErrno& operator=(const KeepErrno&) = delete;

  private:
    int value_;
};

// A record passed to tell(), followed by its bytes; in the order of the calls.
struct Told {
    Told* next;
    std::size_t bytes;
};

// The library's one piece of global state: no caller passes it a context of ours.
struct Process {
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // session, record file, names, domains
    std::atomic<SessionHeader*> session{nullptr};
    std::atomic<bool> looked_for_session{false};
    char directory[kPathBytes - 64] = {};

    std::atomic<ProcessHeader*> file{nullptr};  // mapped; its chunks follow at kProcessHeaderBytes
    std::size_t mapped_bytes = 0;
    bool file_failed = false;
    char path[kPathBytes] = {};
    ChunkArena arena;
    std::atomic<std::uint32_t> next_log{1};

    NameTable names;
    alignas(LogWriter) unsigned char name_log_memory[sizeof(LogWriter)] = {};
    LogWriter* name_log = nullptr;
    Told* told = nullptr;
    Told* last_told = nullptr;
    Domain domains[ThreadState::kMaxDomains] = {};
    std::uint32_t domain_count = 1;  // the default domain
};
constinit Process process;
constinit const std::atomic<SessionState> kClosed{SessionState::waiting};
constinit const std::atomic<SessionState> kNoSession{SessionState::stopped};

}  // namespace

constinit std::atomic<const std::atomic<SessionState>*> gate{&kClosed};
constinit std::atomic<const std::atomic<SessionState>*> nvtx_gate{&kClosed};
constinit std::atomic<const std::atomic<SessionState>*> session_state{&kNoSession};
constinit std::atomic<bool> records_nvtx{false};
constinit thread_local ThreadState* this_thread = nullptr;

namespace {

// --- the record file -------------------------------------------------------------------------------------

int rank_from_environment() {
    for (const char* variable : kRankVariables) {
        const char* text = ::getenv(variable);
        if (text == nullptr || *text < '0' || *text > '9') continue;
        char* end = nullptr;
        const long rank = ::strtol(text, &end, 10);
        if (*end == '\0' && rank < (1L << 30)) return static_cast<int>(rank);
    }
    return -1;
}

// Reserves disk space for a part of a file. A file beyond the program's limit (ulimit -f) would end the
// program by SIGXFSZ.
bool reserve(int fd, std::size_t offset, std::size_t bytes) {
    rlimit limit;
    if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < offset + bytes) return false;
    return ::posix_fallocate(fd, static_cast<off_t>(offset), static_cast<off_t>(bytes)) == 0;
}

// Reserves disk space for a further chunk, so that no later store can fail for lack of it. The file is opened
// by its path each time, because the program might close a descriptor that is kept open, and reuse its
// number.
bool grow_file(void*, std::uint32_t index) {
    const KeepErrno keep;
    const int fd = ::open(process.path, O_RDWR | O_CLOEXEC);
    if (fd < 0) return false;
    const std::size_t offset = kProcessHeaderBytes + std::size_t{index} * kMappedChunkBytes;
    const bool reserved = reserve(fd, offset, kMappedChunkBytes);
    ::close(fd);
    if (!reserved) return false;
    ::madvise(reinterpret_cast<char*>(process.file.load(std::memory_order_relaxed)) + offset,
              kMappedChunkBytes, MADV_POPULATE_WRITE);
    return true;
}

// Maps `fd`, as much of it as the session and the address space allow. Null on failure.
void* map_file(int fd, std::size_t wanted, std::size_t* mapped) {
    for (std::size_t bytes = wanted; bytes >= kProcessHeaderBytes + 2 * kMappedChunkBytes; bytes /= 2) {
        const std::size_t chunks = (bytes - kProcessHeaderBytes) / kMappedChunkBytes;
        *mapped = kProcessHeaderBytes + chunks * kMappedChunkBytes;
        void* memory = ::mmap(nullptr, *mapped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
        if (memory != MAP_FAILED) return memory;
    }
    return nullptr;
}

void write_text_record(LogWriter& writer, RecordKind kind, std::uint32_t name, std::uint64_t owner, Text text,
                       bool counts = true) {
    const std::size_t bytes = sizeof(TextRecord) + padded_size(text);
    auto* r = writer.begin<TextRecord>(kind, name, bytes, ~std::uint64_t{0}, counts);
    if (r == nullptr) return;
    r->ticks = writer.now();
    r->owner = owner;
    copy_text(r + 1, text);
    writer.publish();
}

void write_name(std::uint32_t id) {
    write_text_record(*process.name_log, RecordKind::define_name, id, 0, process.names.text(id));
}

void write_told(const Told& told) {
    RecordHeader header;
    std::memcpy(&header, &told + 1, sizeof header);
    auto* r = process.name_log->begin<ScopeRecord>(header.kind, header.name, told.bytes);
    if (r == nullptr) return;
    std::memcpy(&r->header, &told + 1, told.bytes);
    process.name_log->publish();
}

// Makes and maps this process's file. Under the lock.
bool open_file() {
    if (process.file.load(std::memory_order_relaxed) != nullptr) return true;
    if (process.file_failed) return false;
    process.file_failed = true;
    const SessionHeader* session = process.session.load(std::memory_order_relaxed);
    if (session == nullptr) return false;
    const Ticks start = read_ticks(session->clock);
    const int written = ::snprintf(process.path, sizeof process.path, "%s/%d-%llu%s", process.directory,
                                   ::getpid(), static_cast<unsigned long long>(start.count), kRecordSuffix);
    if (written < 0 || static_cast<std::size_t>(written) >= sizeof process.path) return false;
    const int fd = ::open(process.path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) return false;
    void* memory = nullptr;
    if (reserve(fd, 0, kProcessHeaderBytes)) {
        memory = map_file(fd, session->max_bytes, &process.mapped_bytes);
    }
    ::close(fd);
    if (memory == nullptr) {
        ::unlink(process.path);
        return false;
    }

    auto* header = static_cast<ProcessHeader*>(memory);  // a new file is all zero
    header->magic = kProcessMagic;
    header->format = kRecordFormat;
    header->pid = static_cast<std::uint32_t>(::getpid());
    header->parent_pid = static_cast<std::uint32_t>(::getppid());
    header->rank = rank_from_environment();
    header->pid_namespace = own_pid_namespace();
    header->start_ticks = start;
    header->chunk_bytes = kMappedChunkBytes;
    header->max_chunks =
        static_cast<std::uint32_t>((process.mapped_bytes - kProcessHeaderBytes) / kMappedChunkBytes);
    ::snprintf(header->name, sizeof header->name, "%s", program_invocation_short_name);
    process.file.store(header, std::memory_order_release);
    process.arena.init(static_cast<std::byte*>(memory) + kProcessHeaderBytes, kMappedChunkBytes,
                       header->max_chunks, &header->control, &grow_file, nullptr);
    process.name_log = new (process.name_log_memory) LogWriter;
    process.name_log->init(&process.arena, 0, header->pid, session->clock);
    for (std::uint32_t id = 1; id <= process.names.size(); ++id) write_name(id);
    for (const Told* told = process.told; told != nullptr; told = told->next) write_told(*told);
    process.file_failed = false;
    header->ready.store(1, std::memory_order_release);
    return true;
}

// --- fork ------------------------------------------------------------------------------------------------

void before_fork() {
    ::pthread_mutex_lock(&process.lock);
}
void after_fork_in_parent() {
    ::pthread_mutex_unlock(&process.lock);
}

// The child has one thread, this one. It leaves its parent's file alone and starts its own with the next
// event; names keep their ids.
void after_fork_in_child() {
    const KeepErrno keep;
    if (ProcessHeader* file = process.file.exchange(nullptr, std::memory_order_relaxed)) {
        ::munmap(file, process.mapped_bytes);
    }
    process.file_failed = false;
    process.arena.unlock_in_child();
    process.next_log.store(1, std::memory_order_relaxed);
    process.name_log = nullptr;
    if (this_thread != nullptr && this_thread != no_thread_state())
        ::munmap(this_thread, sizeof(ThreadState));
    this_thread = nullptr;
    reset_window_in_child();
    ::pthread_mutex_unlock(&process.lock);  // this thread took it before the fork
}

// --- threads ---------------------------------------------------------------------------------------------

// The argument is not used: after a fork, the state that was current at registration is gone.
void end_thread(void*) {
    ThreadState* state = this_thread;
    if (state == nullptr || state == no_thread_state()) {
        this_thread = no_thread_state();
        return;
    }
    const KeepErrno keep;
    if (auto* r = state->writer.begin<PopRecord>(RecordKind::thread_end, 0, sizeof(PopRecord),
                                                 ~std::uint64_t{0}, false)) {
        r->ticks = state->writer.now();
        r->domain = 0;
        r->depth = 0;
        state->writer.publish();
    }
    state->writer.finish();
    this_thread = no_thread_state();
    for (std::uint32_t i = 0; i < state->watched_ranges; ++i) range_ended(state->watched[i].watched);
    ::munmap(state, sizeof(ThreadState));
}

// The session that the environment names, mapped; null if there is none or it has another format.
SessionHeader* find_session() {
    const char* directory = ::getenv(kSessionVariable);
    if (directory == nullptr || ::strlen(directory) >= sizeof process.directory) return nullptr;
    ::strcpy(process.directory, directory);
    ::snprintf(process.path, sizeof process.path, "%s/%s", process.directory, kSessionFile);
    const int fd = ::open(process.path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return nullptr;
    void* memory = MAP_FAILED;
    if (::lseek(fd, 0, SEEK_END) >= static_cast<off_t>(sizeof(SessionHeader))) {
        memory = ::mmap(nullptr, sizeof(SessionHeader), PROT_READ, MAP_SHARED, fd, 0);
    }
    ::close(fd);
    if (memory == MAP_FAILED) return nullptr;
    auto* session = static_cast<SessionHeader*>(memory);
    if (session->magic == kSessionMagic && session->format == kRecordFormat) return session;
    ::munmap(memory, sizeof(SessionHeader));
    return nullptr;
}

}  // namespace

ThreadState* attach_thread() {
    const KeepErrno keep;
    this_thread = no_thread_state();
    const SessionHeader* session = process.session.load(std::memory_order_acquire);
    {
        const Locked locked(process.lock);
        if (session == nullptr || !open_file()) return nullptr;
    }
    void* memory =
        ::mmap(nullptr, sizeof(ThreadState), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    auto* state = new (memory) ThreadState;
    const auto tid = static_cast<std::uint32_t>(::syscall(SYS_gettid));
    state->writer.init(&process.arena, process.next_log.fetch_add(1, std::memory_order_relaxed), tid,
                       session->clock);
    char name[16] = {};
    ::prctl(PR_GET_NAME, name);
    write_text_record(state->writer, RecordKind::thread_start, 0, tid, narrow_text(name), false);
    if (__cxa_thread_atexit_impl != nullptr) __cxa_thread_atexit_impl(&end_thread, nullptr, &__dso_handle);
    this_thread = state;
    return state;
}

bool join_session() {
    if (process.session.load(std::memory_order_acquire) != nullptr) return true;
    if (process.looked_for_session.load(std::memory_order_acquire)) return false;
    const KeepErrno keep;
    const Locked locked(process.lock);
    if (!process.looked_for_session.load(std::memory_order_relaxed)) {
        SessionHeader* session = find_session();
        if (session != nullptr) {
            records_nvtx.store((session->sources & kSourceNvtx) != 0, std::memory_order_relaxed);
        }
        if (session != nullptr && prepare_window(*session, rank_from_environment(), &set_gate)) {
            ::pthread_atfork(&before_fork, &after_fork_in_parent, &after_fork_in_child);
            session_state.store(&session->state, std::memory_order_release);
            process.session.store(session, std::memory_order_release);
        }
        process.looked_for_session.store(true, std::memory_order_release);
    }
    return process.session.load(std::memory_order_relaxed) != nullptr;
}

const SessionHeader* session() {
    return process.session.load(std::memory_order_acquire);
}

void set_gate(const std::atomic<SessionState>* state, bool watches) {
    const bool plain = state != nullptr && !watches && records_nvtx.load(std::memory_order_relaxed);
    nvtx_gate.store(plain ? state : &kClosed, std::memory_order_release);
    gate.store(state != nullptr ? state : &kClosed, std::memory_order_release);
}

const Domain* domain(Text name) {
    const KeepErrno keep;
    const std::uint32_t id = name_id(name);
    const Locked locked(process.lock);
    for (std::uint32_t i = 1; i < process.domain_count; ++i) {
        if (process.domains[i].name == id) return &process.domains[i];
    }
    if (id == 0 || process.domain_count == ThreadState::kMaxDomains) return default_domain();
    Domain& added = process.domains[process.domain_count];
    added = {process.domain_count, id};
    ++process.domain_count;
    return &added;
}

std::uint32_t name_id(Text text) {
    const KeepErrno keep;
    const Locked locked(process.lock);
    bool added = false;
    const std::uint32_t id = process.names.find_or_add(text, &added);
    if (added) name_registered(text);
    if (added && process.file.load(std::memory_order_relaxed) != nullptr) write_name(id);
    return id;
}

Text name_text(std::uint32_t id) {
    const Locked locked(process.lock);
    return id == 0 || id > process.names.size() ? Text{"", 0} : process.names.text(id);
}

bool tell(const RecordHeader* record, std::size_t bytes) {
    const KeepErrno keep;
    const Locked locked(process.lock);
    auto* told = bytes <= kMaxRecord ? static_cast<Told*>(std::malloc(sizeof(Told) + bytes)) : nullptr;
    if (told == nullptr) {
        if (process.name_log != nullptr) process.name_log->leave_out();
        return false;
    }
    *told = {nullptr, bytes};
    std::memcpy(told + 1, record, bytes);
    (process.told == nullptr ? process.told : process.last_told->next) = told;
    process.last_told = told;
    if (process.file.load(std::memory_order_relaxed) != nullptr) write_told(*told);
    return true;
}

void write_text(RecordKind kind, std::uint32_t name, std::uint64_t owner, Text text) {
    if (stopped()) return;
    if (Entered thread; thread) write_text_record(thread->writer, kind, name, owner, text);
}

}  // namespace shardscope::profiler::inject
