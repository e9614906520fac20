// Fibers and their scheduling; see grid.h. A fiber is started by makecontext and from then on switched by
// _setjmp and _longjmp, which save no signal mask and so need no system call. It executes one thread after
// the other, of all blocks and grids; only one that was abandoned half-way is started again.
#undef _FORTIFY_SOURCE  // its longjmp treats a jump to another stack as a fault
#include "tests/trainer/played_cuda/grid.h"

#include <csetjmp>
#include <csignal>
#include <exception>
#include <memory>
#include <span>
#include <vector>

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

namespace {
thread_local std::uint64_t steps_of_thread = 0;
}

// Called by what -fsanitize-coverage=trace-pc compiles, at each basic block.
// NOLINTNEXTLINE(bugprone-reserved-identifier)
extern "C" void __sanitizer_cov_trace_pc() {
    ++steps_of_thread;
}

namespace played_cuda {

thread_local Place place;

std::uint64_t steps() {
    return steps_of_thread;
}

namespace {

constexpr std::size_t kStack = 128 * 1024;  // per fiber; only touched pages take memory
constexpr std::size_t kMaxThreads = 1024;   // per block
constexpr std::size_t kMaxShared = 227 * 1024;
constexpr std::size_t kMaxExchange = 16;  // size of a value that lanes exchange

enum class State : unsigned char { fresh, running, at_warp, at_block, ended };

struct Fiber {
    State state = State::fresh;
    bool begun = false;  // waits in its loop, or in its thread, to continue at `where`
    unsigned mask = 0;   // at_warp: the mask of its operation
    const char* what = "";
    uint3 thread;
    jmp_buf where;
    alignas(16) unsigned char value[kMaxExchange];  // at_warp: its own value
    unsigned char* values = nullptr;                // at_warp: where the values of the warp go
    std::size_t bytes = 0;
};

std::string text(uint3 at) {
    return "(" + std::to_string(at.x) + ", " + std::to_string(at.y) + ", " + std::to_string(at.z) + ")";
}

// Memory with a guard page at its end, where an access is a fault.
class Guarded {
  public:
    explicit Guarded(std::size_t bytes) : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
        size_ = (bytes + page_ - 1) / page_ * page_;
        void* mapped = mmap(nullptr, size_ + 2 * page_, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (mapped == MAP_FAILED) throw std::bad_alloc();
        whole_ = static_cast<unsigned char*>(mapped);
        mprotect(whole_, page_, PROT_NONE);
        mprotect(whole_ + page_ + size_, page_, PROT_NONE);
    }
    ~Guarded() { munmap(whole_, size_ + 2 * page_); }
    Guarded(const Guarded&) = delete;
    Guarded& operator=(const Guarded&) = delete;

    unsigned char* begin() const { return whole_ + page_; }
    unsigned char* end() const { return whole_ + page_ + size_; }
    bool guards(const void* address) const {
        const auto* at = static_cast<const unsigned char*>(address);
        return (at >= whole_ && at < begin()) || (at >= end() && at < end() + page_);
    }

  private:
    std::size_t page_, size_ = 0;
    unsigned char* whole_ = nullptr;
};

// One per OS thread, which is kept: its stacks are reused for every block.
class Player {
  public:
    Player() : stacks_(kMaxThreads), shared_(kMaxShared), fibers_(kMaxThreads) {}

    void run(dim3 grid, dim3 block, std::size_t shared_bytes, const std::function<void()>& thread);
    void wait(State state, const char* what);
    void exchange(unsigned mask, const void* value, std::size_t bytes, void* values, const char* what);
    void* shared() const { return shared_.end() - rounded_; }
    std::size_t shared_bytes() const { return shared_bytes_; }
    bool owns(const void* address) const { return busy_ && shared_.guards(address); }
    [[noreturn]] void fail(const std::string& sentence);

  private:
    void run_block();
    void resume(Fiber& fiber);
    bool play_warp(std::size_t first, std::size_t end);
    bool release_lanes(std::size_t first, std::size_t end);
    void check_barrier();
    static void enter();

    std::vector<std::unique_ptr<Guarded>> stacks_;
    Guarded shared_;
    std::size_t shared_bytes_ = 0, rounded_ = 0;
    std::vector<Fiber> fibers_;  // one per stack
    std::size_t threads_ = 0;    // threads of a block, which use the first fibers
    const std::function<void()>* thread_ = nullptr;
    std::size_t current_ = 0;
    bool busy_ = false;
    jmp_buf scheduler_;
    ucontext_t origin_;
    std::exception_ptr thrown_;
};

Player& player() {
    thread_local Player the_player;
    return the_player;
}

// A fault beyond the dynamic shared memory ends the fiber with an error; any other goes to the earlier
// handler.
struct sigaction earlier_fault;

void on_fault(int signal, siginfo_t* info, void* context) {
    Player& here = player();
    if (here.owns(info->si_addr)) {
        // The handler is left by a jump, so the signal must not stay blocked.
        sigset_t faults;
        sigemptyset(&faults);
        sigaddset(&faults, SIGSEGV);
        pthread_sigmask(SIG_UNBLOCK, &faults, nullptr);
        here.fail("reads or writes beyond the " + std::to_string(here.shared_bytes()) +
                  " bytes of dynamic shared memory that the launch gave it");
    }
    if ((earlier_fault.sa_flags & SA_SIGINFO) != 0 && earlier_fault.sa_sigaction) {
        earlier_fault.sa_sigaction(signal, info, context);
        return;
    }
    std::signal(SIGSEGV, SIG_DFL);  // the access is repeated, and ends the process
}

void watch_faults() {
    [[maybe_unused]] static const bool watched = [] {
        struct sigaction action = {};
        action.sa_sigaction = on_fault;
        action.sa_flags = SA_SIGINFO;
        sigemptyset(&action.sa_mask);
        return sigaction(SIGSEGV, &action, &earlier_fault) == 0;
    }();
}

void Player::run(dim3 grid, dim3 block, std::size_t shared_bytes, const std::function<void()>& thread) {
    if (busy_) throw PlayError("a kernel launches a grid");
    const std::size_t threads = std::size_t{block.x} * block.y * block.z;
    if (threads == 0 || threads > kMaxThreads) {
        throw PlayError("a launch asks for blocks of " + std::to_string(threads) +
                        " threads: 1 to 1024 are allowed");
    }
    if (grid.y > 65535 || grid.z > 65535 || grid.x > 0x7fffffffu || block.z > 64) {
        throw PlayError("a launch asks for a grid that is beyond the device's limits");
    }
    if (shared_bytes > kMaxShared) {
        throw PlayError("a launch asks for " + std::to_string(shared_bytes) +
                        " bytes of dynamic shared memory: the device has " + std::to_string(kMaxShared));
    }
    watch_faults();
    thread_ = &thread;
    shared_bytes_ = shared_bytes;
    rounded_ = (shared_bytes + 15) / 16 * 16;
    threads_ = threads;
    for (std::size_t i = 0; i < threads; ++i) {
        if (!stacks_[i]) stacks_[i] = std::make_unique<Guarded>(kStack);
        fibers_[i].begun = fibers_[i].begun && fibers_[i].state == State::ended;
        fibers_[i].thread = {static_cast<unsigned>(i % block.x), static_cast<unsigned>(i / block.x % block.y),
                             static_cast<unsigned>(i / block.x / block.y)};
    }
    place.block_size = block;
    place.grid_size = grid;
    busy_ = true;
    const struct Idle {
        bool& busy;
        ~Idle() { busy = false; }
    } idle{busy_};
    for (unsigned z = 0; z < grid.z; ++z) {
        for (unsigned y = 0; y < grid.y; ++y) {
            for (unsigned x = 0; x < grid.x; ++x) {
                place.block = {x, y, z};
                run_block();
            }
        }
    }
}

void Player::run_block() {
    std::memset(shared(), 0xff, rounded_);
    const std::span<Fiber> fibers(fibers_.data(), threads_);
    for (Fiber& fiber : fibers) fiber.state = State::fresh;
    while (true) {
        std::size_t ended = 0;
        for (std::size_t first = 0; first < threads_; first += kWarp) {
            const std::size_t end = std::min(first + kWarp, threads_);
            while (play_warp(first, end)) {
            }
        }
        for (const Fiber& fiber : fibers) ended += fiber.state == State::ended;
        if (ended == threads_) return;
        check_barrier();
        for (Fiber& fiber : fibers) fiber.state = State::running;
    }
}

// Resumes every lane that can continue; false if none could.
bool Player::play_warp(std::size_t first, std::size_t end) {
    bool moved = false;
    for (current_ = first; current_ < end; ++current_) {
        Fiber& fiber = fibers_[current_];
        if (fiber.state != State::fresh && fiber.state != State::running) continue;
        moved = true;
        resume(fiber);
    }
    return moved && release_lanes(first, end);
}

// Lanes that wait for each other and have all arrived exchange their values and may continue.
bool Player::release_lanes(std::size_t first, std::size_t end) {
    bool released = false;
    for (std::size_t i = first; i < end; ++i) {
        if (fibers_[i].state != State::at_warp) continue;
        const unsigned mask = fibers_[i].mask;
        bool complete = true;
        for (unsigned lane = 0; lane < kWarp; ++lane) {
            if (((mask >> lane) & 1u) == 0) continue;
            const std::size_t other = first + lane;
            complete = complete && other < end && fibers_[other].state == State::at_warp &&
                       fibers_[other].mask == mask && fibers_[other].what == fibers_[i].what &&
                       fibers_[other].bytes == fibers_[i].bytes;
        }
        if (!complete) continue;
        const std::size_t bytes = fibers_[i].bytes;
        unsigned char all[kWarp * kMaxExchange] = {};
        for (std::size_t from = first; from < end; ++from) {
            std::memcpy(all + (from - first) * bytes, fibers_[from].value, bytes);
        }
        for (std::size_t to = first; to < end; ++to) {
            if (((mask >> (to - first)) & 1u) == 0) continue;
            std::memcpy(fibers_[to].values, all, kWarp * bytes);
            fibers_[to].state = State::running;
        }
        released = true;
    }
    return released;
}

// Every thread must be at the barrier now, and at the same kind of barrier.
void Player::check_barrier() {
    const std::span<const Fiber> fibers(fibers_.data(), threads_);
    const Fiber* waiting = nullptr;
    for (const Fiber& fiber : fibers) {
        if (fiber.state == State::at_warp) {
            place.thread = fiber.thread;
            throw PlayError("thread " + text(fiber.thread) + " of block " + text(place.block) + " waits at " +
                            fiber.what + " for lanes of its mask that do not come");
        }
        if (fiber.state == State::at_block) waiting = &fiber;
    }
    for (const Fiber& fiber : fibers) {
        if (fiber.state == State::ended || fiber.what != waiting->what) {
            throw PlayError("thread " + text(fiber.thread) + " of block " + text(place.block) +
                            " does not meet " + waiting->what + ", at which thread " + text(waiting->thread) +
                            " waits");
        }
    }
}

void Player::resume(Fiber& fiber) {
    place.thread = fiber.thread;
    place.lane = static_cast<unsigned>(current_ % kWarp);
    if (_setjmp(scheduler_) == 0) {
        fiber.state = State::running;
        if (fiber.begun) _longjmp(fiber.where, 1);
        fiber.begun = true;
        ucontext_t begin;
        getcontext(&begin);
        begin.uc_stack.ss_sp = stacks_[current_]->begin();
        begin.uc_stack.ss_size = kStack;
        begin.uc_link = nullptr;
        makecontext(&begin, enter, 0);
        swapcontext(&origin_, &begin);  // never returns here: fibers leave by a jump to scheduler_
    }
    if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
}

// What a fiber does: runs one thread, then waits to be reused.
void Player::enter() {
    Player& here = player();
    Fiber& fiber = here.fibers_[here.current_];
    while (true) {
        try {
            (*here.thread_)();
        } catch (...) {
            here.thrown_ = std::current_exception();
        }
        fiber.state = State::ended;
        if (_setjmp(fiber.where) == 0) _longjmp(here.scheduler_, 1);
    }
}

void Player::wait(State state, const char* what) {
    Fiber& fiber = fibers_[current_];
    fiber.state = state;
    fiber.what = what;
    if (_setjmp(fiber.where) == 0) _longjmp(scheduler_, 1);
}

void Player::exchange(unsigned mask, const void* value, std::size_t bytes, void* values, const char* what) {
    Fiber& fiber = fibers_[current_];
    if (((mask >> place.lane) & 1u) == 0)
        fail(std::string("calls ") + what + " with a mask that lacks its own lane");
    if (bytes > kMaxExchange) fail(std::string("gives ") + what + " a value of more than 16 bytes");
    std::memcpy(fiber.value, value, bytes);
    fiber.values = static_cast<unsigned char*>(values);
    fiber.bytes = bytes;
    fiber.mask = mask;
    wait(State::at_warp, what);
}

void Player::fail(const std::string& sentence) {
    const PlayError error("thread " + text(place.thread) + " of block " + text(place.block) + " " + sentence);
    thrown_ = std::make_exception_ptr(error);
    _longjmp(scheduler_, 1);
}

}  // namespace

void block_barrier(const char* what) {
    player().wait(State::at_block, what);
}

void exchange(unsigned mask, const void* value, std::size_t bytes, void* values, const char* what) {
    player().exchange(mask, value, bytes, values, what);
}

void* dynamic_shared() {
    return player().shared();
}

std::size_t dynamic_shared_bytes() {
    return player().shared_bytes();
}

void run_grid(dim3 grid, dim3 block, std::size_t shared_bytes, const std::function<void()>& thread) {
    player().run(grid, block, shared_bytes, thread);
}

}  // namespace played_cuda

namespace {
thread_local int votes = 0;  // summed over the threads of the running block
}

int __syncthreads_count(int predicate) {
    played_cuda::block_barrier("__syncthreads_count");  // so that all threads have read the previous sum
    if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0) votes = 0;
    played_cuda::block_barrier("__syncthreads_count");
    votes += predicate != 0;
    played_cuda::block_barrier("__syncthreads_count");
    return votes;
}
int __syncthreads_and(int predicate) {
    return __syncthreads_count(predicate == 0) == 0;
}
int __syncthreads_or(int predicate) {
    return __syncthreads_count(predicate) != 0;
}

unsigned __ballot_sync(unsigned mask, int predicate) {
    const unsigned char mine = predicate != 0;
    unsigned char all[played_cuda::kWarp];
    played_cuda::exchange(mask, &mine, 1, all, "__ballot_sync");
    unsigned ballot = 0;
    for (unsigned lane = 0; lane < played_cuda::kWarp; ++lane) {
        if (((mask >> lane) & 1u) != 0 && all[lane] != 0) ballot |= 1u << lane;
    }
    return ballot;
}
