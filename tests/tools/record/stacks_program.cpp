// A program with known functions, for tests of stack sampling: stacks_program ROUNDS [WHAT]. Three parts of
// its processor time are spent in hot(), which two functions call, one part in cold(). Prints the share of
// hot() that it measured itself. WHAT: "thread", a second thread does the same; "fork", a child does it
// instead.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <thread>

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

volatile double result = 0;

double cpu_seconds() {
    timespec t;
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

}  // namespace

// Not in a namespace, so that names are as in C. The additions keep calls from becoming jumps.
extern "C" {

[[gnu::noinline]] double hot(long n) {
    double x = 1;
    for (long i = 0; i < n; ++i) x = x * 1.0000001 + 1e-9;
    return x;
}

[[gnu::noinline]] double cold(long n) {
    double x = 2;
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
    constexpr long kPiece = 200'000;
    double in_hot = 0, in_cold = 0, sum = 0;
    for (long i = 0; i < rounds; ++i) {
        const double start = cpu_seconds();
        sum += first_caller(kPiece) + second_caller(kPiece);
        const double middle = cpu_seconds();
        sum += cold(kPiece);
        in_hot += middle - start;
        in_cold += cpu_seconds() - middle;
    }
    result = sum;
    return in_hot / (in_hot + in_cold);
}
}

int main(int argc, char** argv) {
    const long rounds = argc > 1 ? std::atol(argv[1]) : 100;
    const char* what = argc > 2 ? argv[2] : "";
    double share = 0;
    if (std::strcmp(what, "fork") == 0) {
        std::fflush(stdout);
        const pid_t child = ::fork();
        if (child == 0) {
            std::printf("%.6f\n", work(rounds));
            std::fflush(stdout);
            ::_exit(0);
        }
        int status = 0;
        ::waitpid(child, &status, 0);
        return WEXITSTATUS(status);
    }
    if (std::strcmp(what, "thread") == 0) {
        std::thread helper([&] {
            ::pthread_setname_np(::pthread_self(), "helper");
            result = work(rounds);
        });
        share = work(rounds);
        helper.join();
    } else {
        share = work(rounds);
    }
    std::printf("%.6f\n", share);
    return 0;
}
