// A program with known functions, for tests of stack sampling: stacks_program ROUNDS [WHAT]. Three parts of
// its processor time are spent in hot(), which two functions call, one part in cold(). Prints the share of
// hot() that it measured itself, and the processor time that it used (s). WHAT: "thread", a second thread
// does the same; "fork", a child does it instead; "threads", a thread for each 10 rounds; "blocked", like
// thread, with all signals blocked; "handler", the handler of a signal on a stack of its own does it;
// "profiler", with a profiler's own timer and SIGPROF, whose count it checks.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <random>
#include <thread>

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

volatile double result = 0;

double cpu_seconds(clockid_t clock = CLOCK_THREAD_CPUTIME_ID) {
    timespec t;
    ::clock_gettime(clock, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

}  // namespace

// Not in a namespace, so that names are as in C. The additions keep calls from becoming jumps, and a variable
// in memory gives a function that calls nothing its frame.
extern "C" {

[[gnu::noinline]] double hot(long n) {
    volatile double x = 1;
    for (long i = 0; i < n; ++i) x = x * 1.0000001 + 1e-9;
    return x;
}

[[gnu::noinline]] double cold(long n) {
    volatile double x = 2;
    for (long i = 0; i < n; ++i) x = x * 1.0000001 + 1e-9;
    return x;
}

[[gnu::noinline]] double first_caller(long n) {
    return hot(n) + 1;
}

[[gnu::noinline]] double second_caller(long n) {
    return hot(2 * n) + 2;
}

[[gnu::noinline]] double work(long rounds) {
    constexpr long kPiece = 80'000;
    double in_hot = 0, in_cold = 0, sum = 0;
    std::minstd_rand random;
    std::uniform_int_distribution<long> length(kPiece / 2, kPiece * 3 / 2);
    for (long i = 0; i < rounds; ++i) {
        const long piece = length(random);  // equal ones could keep step with the ticks of a timer
        const double start = cpu_seconds();
        sum += first_caller(piece) + second_caller(piece);
        const double middle = cpu_seconds();
        sum += cold(piece);
        in_hot += middle - start;
        in_cold += cpu_seconds() - middle;
    }
    result = sum;
    return in_hot / (in_hot + in_cold);
}
}

namespace {

long rounds = 100;
double share = 0;
volatile sig_atomic_t ticks = 0;

double in_two_threads() {
    std::thread helper([] {
        ::pthread_setname_np(::pthread_self(), "helper");
        result = work(rounds);
    });
    const double of_this = work(rounds);
    helper.join();
    return of_this;
}

int in_child() {
    const pid_t child = ::fork();
    if (child == 0) {
        std::printf("%.6f %.3f\n", work(rounds), cpu_seconds());
        std::fflush(stdout);
        ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

// The C library, which has no frame pointers, hides it as its caller, but not main().
[[gnu::noinline]] void in_handler() {
    stack_t stack{};
    stack.ss_size = 64 << 10;
    stack.ss_sp = std::malloc(stack.ss_size);
    ::sigaltstack(&stack, nullptr);
    struct sigaction action {};
    action.sa_handler = [](int) { share = work(rounds); };
    action.sa_flags = SA_ONSTACK;
    ::sigaction(SIGUSR1, &action, nullptr);
    ::syscall(SYS_tgkill, ::getpid(), ::gettid(), SIGUSR1);  // raise() would lose the frame pointer
}

// Whether about as many of its signals have come as should.
bool with_profiler() {
    ::signal(SIGPROF, [](int) { ticks = ticks + 1; });
    const itimerval period{{0, 20'000}, {0, 20'000}};
    ::setitimer(ITIMER_PROF, &period, nullptr);
    share = work(rounds);
    return ticks > cpu_seconds() / 0.02 / 2;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc > 1) rounds = std::atol(argv[1]);
    const char* what = argc > 2 ? argv[2] : "";
    if (std::strcmp(what, "fork") == 0) return in_child();
    if (std::strcmp(what, "thread") == 0) {
        share = in_two_threads();
    } else if (std::strcmp(what, "threads") == 0) {
        for (long i = 0; i < rounds / 10; ++i) std::thread([] { share = work(10); }).join();
    } else if (std::strcmp(what, "blocked") == 0) {
        sigset_t all;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
        share = in_two_threads();
    } else if (std::strcmp(what, "handler") == 0) {
        in_handler();
    } else if (std::strcmp(what, "profiler") == 0) {
        if (!with_profiler()) return 1;
    } else {
        share = work(rounds);
    }
    std::printf("%.6f %.3f\n", share, cpu_seconds(CLOCK_PROCESS_CPUTIME_ID));
    return 0;
}
