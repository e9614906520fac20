// The handler and what runs on a new thread use system calls as such where the C library's function could be
// replaced: sanitizers do so with functions that are not ready there.
#include "profiler/preload/thread_timers.h"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "profiler/base/pid_namespace.h"
#include "profiler/inject/session_format.h"
#include "profiler/preload/next_function.h"
#include "profiler/preload/process_maps.h"
#include "profiler/preload/sample_ring.h"
#include "profiler/preload/signal_masks.h"
#include "profiler/preload/stack_walk.h"

// sigaction() under a name that sanitizers leave alone: they would delay the handler.
// NOLINTNEXTLINE(bugprone-reserved-identifier): the C library's
extern "C" int __sigaction(int signal, const struct sigaction* action, struct sigaction* before);

namespace shardscope::profiler::preload {
namespace {

constexpr std::int64_t kNsPerSecond = 1'000'000'000;
constexpr int kNoTimer = -1;

// What a new thread is to do. These are used again, and never returned.
struct Start {
    void* (*function)(void*);
    void* argument;
    Start* next;
};

// The library's one piece of global state: a signal handler has no context of ours.
struct Process {
    char directory[4000] = {};
    std::atomic<RingHeader*> ring{nullptr};
    std::uint32_t slots = 0;  // of the ring
    pid_t pid = 0;
    std::uint64_t image = 0;  // TimerSample::image
    std::atomic<bool> wrote_maps{false};
    std::atomic<Start*> unused{nullptr};
    std::atomic_flag taking;  // of these
    std::atomic<bool> has_key{false};
    pthread_key_t key = 0;  // whose destructor is called when a thread ends
};
constinit Process process;

struct ThreadTimer {
    int timer = kNoTimer;  // the kernel's number
    bool sampled = false;
    pid_t tid = 0;
    std::int64_t used = 0;  // processor time at the last sample
};
constinit __attribute__((tls_model("initial-exec"))) thread_local ThreadTimer this_thread;

constinit NextFunction<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)> next_create{
    "pthread_create"};
constinit NextFunction<int(pthread_key_t*, void (*)(void*))> next_key{"pthread_key_create"};
constinit NextFunction<int(pthread_key_t, const void*)> next_set{"pthread_setspecific"};

std::int64_t time_of(clockid_t clock) {
    timespec t{};
    ::syscall(SYS_clock_gettime, clock, &t);
    return std::int64_t{t.tv_sec} * kNsPerSecond + t.tv_nsec;
}

// --- a sample --------------------------------------------------------------------------------------------

void delete_timer() {
    if (this_thread.timer == kNoTimer) return;
    ::syscall(SYS_timer_delete, this_thread.timer);
    this_thread.timer = kNoTimer;
}

// Processor time since the last sample. The first stands for a whole interval, however soon it came: on
// average that is the time before it and what is left when the thread ends.
std::int64_t next_weight(const RingHeader& ring) {
    const std::int64_t used = time_of(CLOCK_THREAD_CPUTIME_ID);
    const std::int64_t since = used - this_thread.used;
    const std::int64_t weight = this_thread.sampled || since > ring.interval_ns ? since : ring.interval_ns;
    this_thread.used = used;
    this_thread.sampled = true;
    return weight;
}

void take_sample(RingHeader* ring, const ucontext_t& context) {
    const std::int64_t weight = next_weight(*ring);
    if (!process.wrote_maps.exchange(true, std::memory_order_relaxed))
        write_process_maps(process.directory, process.pid, process.image);
    std::uint64_t turn = 0;
    RingSlot* slot = take_slot(ring, process.slots, &turn);
    if (slot == nullptr) return;
    TimerSample& sample = slot->sample;
    unsigned cpu = 0;
    ::syscall(SYS_getcpu, &cpu, nullptr, nullptr);
    sample.pid = process.pid;
    sample.tid = this_thread.tid;
    sample.cpu = static_cast<std::int32_t>(cpu);
    sample.time = time_of(CLOCK_MONOTONIC);
    sample.weight = weight;
    sample.image = process.image;
    ::syscall(SYS_prctl, PR_GET_NAME, sample.name);
    sample.frames = walk_stack(registers_of(context), sample.addresses, TimerSample::kMostFrames);
    publish_slot(slot, turn);
}

void on_signal(int, siginfo_t* info, void* context) {
    // Not ours: as without a handler, nothing happens.
    if (info->si_code != SI_TIMER || info->si_value.sival_ptr != &process) return;
    const int error = errno;
    RingHeader* ring = process.ring.load(std::memory_order_relaxed);
    if (ring == nullptr || ring->closed.load(std::memory_order_relaxed) != 0) {
        delete_timer();
    } else {
        take_sample(ring, *static_cast<const ucontext_t*>(context));
    }
    errno = error;
}

// --- threads ---------------------------------------------------------------------------------------------

void count_untimed(RingHeader* ring, int why) {
    ring->no_timer.store(why, std::memory_order_relaxed);
    ring->untimed.fetch_add(1, std::memory_order_relaxed);
}

timespec after(std::int64_t ns) {
    return {ns / kNsPerSecond, ns % kNsPerSecond};
}

// Gives the calling thread a timer. Also in a forked child.
void start_timer() {
    RingHeader* ring = process.ring.load(std::memory_order_relaxed);
    if (ring == nullptr || ring->closed.load(std::memory_order_relaxed) != 0) return;
    this_thread.tid = static_cast<pid_t>(::syscall(SYS_gettid));
    this_thread.used = time_of(CLOCK_THREAD_CPUTIME_ID);
    this_thread.sampled = false;
    unblock_timer_signal();
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = kTimerSignal;
    event.sigev_value.sival_ptr = &process;
    event._sigev_un._tid = this_thread.tid;
    int timer = kNoTimer;
    if (::syscall(SYS_timer_create, CLOCK_THREAD_CPUTIME_ID, &event, &timer) != 0)
        return count_untimed(ring, errno);
    this_thread.timer = timer;
    // Of periods shorter than the kernel's tick, the first ends at the first tick: many threads end soon.
    const bool at_ticks = ring->period_ns < ring->interval_ns;
    const itimerspec times{after(ring->period_ns), after(at_ticks ? 1 : ring->period_ns)};
    if (::syscall(SYS_timer_settime, timer, 0, &times, nullptr) != 0) {
        count_untimed(ring, errno);
        delete_timer();
    }
}

// Of the key's: the kernel keeps the timer of a thread that has ended.
void end_thread(void*) {
    delete_timer();
}

// The key is made as early as there are threads: the first keys need no memory of their own in a thread.
bool prepare_key() {
    if (process.has_key.load(std::memory_order_acquire)) return true;
    auto* make = next_key.get();
    if (make == nullptr || next_set.get() == nullptr || make(&process.key, &end_thread) != 0) return false;
    process.has_key.store(true, std::memory_order_release);
    return true;
}

// One thread at a time takes, so that the first is not taken and put back by others meanwhile.
Start* unused_start() {
    Start* first = nullptr;
    if (!process.taking.test_and_set(std::memory_order_acquire)) {
        first = process.unused.load(std::memory_order_acquire);
        while (first != nullptr && !process.unused.compare_exchange_weak(first, first->next)) {
        }
        process.taking.clear(std::memory_order_release);
    }
    if (first != nullptr) return first;
    return static_cast<Start*>(std::malloc(sizeof *first));  // NOLINT(cppcoreguidelines-no-malloc)
}

void put_back(Start* start) {
    start->next = process.unused.load(std::memory_order_relaxed);
    while (!process.unused.compare_exchange_weak(start->next, start, std::memory_order_release)) {
    }
}

// The thread's first function. Calls the program's last, as a jump, and so is not in its stack.
void* begin_thread(void* argument) {
    auto* start = static_cast<Start*>(argument);
    void* (*function)(void*) = start->function;
    void* of = start->argument;
    put_back(start);
    if (next_set.get()(process.key, &process) == 0) start_timer();
    return function(of);
}

// --- processes -------------------------------------------------------------------------------------------

// Whether the tool knows the process by its own pid, so that its threads can be sampled.
bool begin_image(RingHeader* ring) {
    if (ring->pid_namespace != 0 && own_pid_namespace() != ring->pid_namespace) {
        count_untimed(ring, EXDEV);
        return false;
    }
    process.pid = ::getpid();
    process.image = static_cast<std::uint64_t>(time_of(CLOCK_MONOTONIC));
    process.wrote_maps.store(false, std::memory_order_relaxed);
    return true;
}

// The child has one thread, this one, and no timer.
void after_fork_in_child() {
    RingHeader* ring = process.ring.load(std::memory_order_relaxed);
    if (ring == nullptr) return;
    const int error = errno;
    this_thread.timer = kNoTimer;
    process.taking.clear(std::memory_order_relaxed);
    if (begin_image(ring)) {
        start_timer();
    } else {
        process.ring.store(nullptr, std::memory_order_relaxed);
    }
    errno = error;
}

// The ring of the session that the environment names, mapped; null if there is none.
RingHeader* find_ring() {
    const char* directory = ::getenv(kSessionVariable);
    if (directory == nullptr || ::strlen(directory) >= sizeof process.directory) return nullptr;
    ::strcpy(process.directory, directory);
    char path[sizeof process.directory + sizeof kRingFile + 1];
    ::snprintf(path, sizeof path, "%s/%s", directory, kRingFile);
    const int fd = ::open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) return nullptr;
    const off_t bytes = ::lseek(fd, 0, SEEK_END);
    void* memory = MAP_FAILED;
    if (bytes >= static_cast<off_t>(sizeof(RingHeader)))
        memory = ::mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ::close(fd);
    if (memory == MAP_FAILED) return nullptr;
    auto* ring = static_cast<RingHeader*>(memory);
    process.slots = ring->slots;
    if (ring->magic == kRingMagic && ring->format == kRingFormat && process.slots > 0 &&
        static_cast<off_t>(ring_bytes(process.slots)) <= bytes)
        return ring;
    ::munmap(memory, static_cast<std::size_t>(bytes));
    return nullptr;
}

bool install_handler() {
    struct sigaction action {
    }, before{};
    if (__sigaction(kTimerSignal, nullptr, &before) != 0) return false;
    const bool plain = (before.sa_flags & SA_SIGINFO) == 0;
    if (!plain || (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)) return false;
    action.sa_sigaction = &on_signal;
    // On the alternate stack, if there is one: a fiber's own may be too small.
    action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    ::sigfillset(&action.sa_mask);
    return __sigaction(kTimerSignal, &action, nullptr) == 0;
}

// Before main(), on the program's first thread. Later threads come through pthread_create().
__attribute__((constructor)) void begin_program() {
    RingHeader* ring = find_ring();
    if (ring == nullptr || !begin_image(ring)) return;
    next_create.get();
    prepare_signal_masks();
    prepare_key();
    if (!install_handler()) return count_untimed(ring, EBUSY);
    process.ring.store(ring, std::memory_order_release);
    ::pthread_atfork(nullptr, nullptr, &after_fork_in_child);
    start_timer();
}

}  // namespace

bool sampling() {
    return process.ring.load(std::memory_order_acquire) != nullptr;
}

}  // namespace shardscope::profiler::preload

namespace preload = shardscope::profiler::preload;

extern "C" __attribute__((visibility("default"))) int pthread_create(pthread_t* thread,
                                                                     const pthread_attr_t* attributes,
                                                                     void* (*function)(void*),
                                                                     void* argument) noexcept {
    auto* next = preload::next_create.get();
    if (next == nullptr) return EAGAIN;
    preload::Start* start = preload::sampling() && preload::prepare_key() ? preload::unused_start() : nullptr;
    if (start == nullptr) return next(thread, attributes, function, argument);
    start->function = function;
    start->argument = argument;
    const int failure = next(thread, attributes, &preload::begin_thread, start);
    if (failure != 0) preload::put_back(start);
    return failure;
}
