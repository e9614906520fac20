// A program that makes NVTX calls, for tests to record: nvtx_program SCENARIO. Built twice, over each backend
// of nvtx_calls.h. A wrong answer of the injected library ends it with status 9 (see expect()).
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/profiler/nvtx_calls.h"

namespace {

using namespace nvtx_calls;

Event text(const char* words) {
    Event event;
    event.text = words;
    return event;
}
Event registered(void* handle) {
    Event event;
    event.registered = handle;
    return event;
}

void expect(bool right, const char* what) {
    if (right) return;
    std::fprintf(stderr, "not so: %s\n", what);
    std::_Exit(9);
}

// Levels are what NVTX promises, if somebody listens.
void expect_level(int level, int wanted) {
    const bool injected = std::getenv("NVTX_INJECTION64_PATH") != nullptr;
    expect(!injected || level == wanted, "the level of a push or pop");
}

// Every call once.
int every_call() {
    errno = 4711;
    expect_level(push_a("outer"), 0);
    expect_level(push_w(L"w\u00efde \u20ac \U0001F600"), 1);
    Event colored = text("colored");
    colored.color = 0xFF123456;
    colored.category = 7;
    expect_level(push_ex(colored), 2);
    mark_a("mark a");
    mark_w(L"mark w");
    mark_ex(text("mark ex"));
    expect_level(pop(), 2);
    expect_level(pop(), 1);
    const std::uint64_t a = start_a("start a"), w = start_w(L"start w"), ex = start_ex(text("start ex"));
    end(a);
    std::thread([&] { end(w); }).join();
    expect_level(pop(), 0);
    end(ex);
    expect_level(pop(), -2);  // one too many
    name_category_a(7, "category a");
    name_category_w(8, L"category w");
    const auto tid = static_cast<std::uint32_t>(::syscall(SYS_gettid));
    name_thread_a(tid, "first name");
    name_thread_w(tid, L"main thread");

    void* domain = domain_create_a("Domain A");
    expect(domain == domain_create_a("Domain A"), "a domain of the same name is the same");
    void* wide_domain = domain_create_w(L"Domain W");
    void* name = register_a(domain, "registered a");
    void* wide_name = register_w(domain, L"registered w");
    // Each domain nests for itself: these two cross.
    expect_level(domain_push(domain, registered(name)), 0);
    expect_level(domain_push(wide_domain, registered(wide_name)), 0);
    domain_mark(domain, text("domain mark"));
    expect_level(domain_pop(domain), 0);
    expect_level(domain_pop(wide_domain), 0);
    domain_end(domain, domain_start(domain, text("domain start")));
    domain_name_category_a(domain, 9, "domain category a");
    domain_name_category_w(domain, 10, L"domain category w");
    domain_destroy(wide_domain);
    expect(errno == 4711 || std::getenv("NVTX_INJECTION64_PATH") == nullptr, "errno is left alone");
    return 0;
}

// What a program may get wrong.
int odd_calls() {
    push_a(nullptr);
    pop();
    push_a("");
    pop();
    const std::string long_text(100'000, 'x');
    push_a(long_text.c_str());
    pop();
    mark_ex(Event{});
    end(123456789);  // of a range that was never started
    pop();
    domain_pop(domain_create_a("never pushed"));
    return 0;
}

int threads() {
    std::vector<std::thread> workers;
    for (int t = 0; t < 4; ++t) {
        workers.emplace_back([] {
            void* domain = domain_create_a("workers");
            void* name = register_a(domain, "inner");
            for (int i = 0; i < 5000; ++i) {
                push_a("outer");
                domain_push(domain, registered(name));
                domain_pop(domain);
                pop();
            }
        });
    }
    for (auto& worker : workers) worker.join();
    return 0;
}

// Threads that come and go: their buffers must be used again (2000 of 64 KiB would not fit).
int short_threads() {
    for (int t = 0; t < 2000; ++t) {
        std::thread([] {
            push_a("short");
            pop();
        }).join();
    }
    return 0;
}

void start_and_finish_some() {
    push_a("open at the end");
    push_a("finished");
    pop();
}

int forks() {
    void* domain = domain_create_a("shared domain");
    void* name = register_a(domain, "registered before the fork");
    domain_push(domain, registered(name));
    const pid_t child = ::fork();
    if (child == 0) {
        domain_pop(domain);  // of a range of its parent: nothing
        domain_push(domain, registered(name));
        domain_push(domain, registered(register_a(domain, "registered by the child")));
        domain_pop(domain);
        domain_pop(domain);
        ::_exit(0);
    }
    int status = 1;
    ::waitpid(child, &status, 0);
    push_a("parent after the fork");
    pop();
    domain_pop(domain);
    return status;
}

int run(const std::string& scenario, char* self) {
    if (scenario == "every_call") return every_call();
    if (scenario == "odd_calls") return odd_calls();
    if (scenario == "threads") return threads();
    if (scenario == "short_threads") return short_threads();
    if (scenario == "forks") return forks();
    if (scenario == "exits") {
        start_and_finish_some();
        return 3;
    }
    if (scenario == "aborts") {
        start_and_finish_some();
        std::abort();
    }
    if (scenario == "is_killed") {
        start_and_finish_some();
        ::raise(SIGKILL);
    }
    if (scenario == "leaves_threads") {
        static std::atomic<bool> started{false};
        std::thread([] {
            for (;;) {
                push_a("background");
                pop();
                started = true;
            }
        }).detach();
        while (!started) std::this_thread::yield();
        start_and_finish_some();
        ::_exit(4);
    }
    if (scenario == "executes") {
        push_a("first image");
        ::execl(self, self, "every_call", nullptr);
        return 1;
    }
    if (scenario == "many") {
        for (int i = 0; i < 300'000; ++i) {
            push_a("a range with a text of some length");
            pop();
        }
        return 0;
    }
    if (scenario == "for_a_second") {
        const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(1);
        for (int i = 0; std::chrono::steady_clock::now() < until; ++i) {
            push_a("tick");
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
            pop();
        }
        return 0;
    }
    return 2;
}

}  // namespace

int main(int argc, char** argv) {
    return argc == 2 ? run(argv[1], argv[0]) : 2;
}
