// A program that makes NVTX calls, for tests to record: nvtx_program SCENARIO. Built twice, over each backend
// of nvtx_calls.h. A wrong answer of the injected library exits with status 9 (see expect()).
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/profiler/nvtx_calls.h"

#ifdef SHARDSCOPE_SANITIZED_THREAD
// NVTX's own header reads the state of its initialization without synchronization while another thread may
// set it.
extern "C" const char*
__tsan_default_suppressions() {  // NOLINT(bugprone-reserved-identifier): the sanitizer's name
    return "race:nvtxInitOnce_v3\n";
}
#endif

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

// NVTX promises these levels if a tool is attached.
void expect_level(int level, int wanted) {
    const bool injected = std::getenv("NVTX_INJECTION64_PATH") != nullptr;
    expect(!injected || level == wanted, "the level of a push or pop");
}

// A long text, so that a handler often takes the last space in a chunk.
const char* handlers_text() {
    static const std::string kText(3000, 'h');
    return kText.c_str();
}

// Makes every call once.
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
    expect_level(pop(), -2);  // a pop too many
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
    // Each domain nests independently: these two cross.
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

// Mistakes that a program may make.
int odd_calls() {
    push_a(nullptr);
    pop();
    push_a("");
    pop();
    const std::string long_text(100'000, 'x');
    push_a(long_text.c_str());
    pop();
    mark_ex(Event{});
    end(123456789);  // a range that was never started
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

// 200,000 ranges from four threads: a few at a time for two seconds, or as fast as possible.
int four_threads(bool paced) {
    std::vector<std::thread> workers;
    for (int t = 0; t < 4; ++t) {
        workers.emplace_back([paced] {
            for (int i = 0; i < 50'000; ++i) {
                push_a("sent");
                pop();
                if (paced && i % 250 == 249) std::this_thread::sleep_for(std::chrono::milliseconds(10));
            }
        });
    }
    for (auto& worker : workers) worker.join();
    return 0;
}

// Short-lived threads: their buffers must be reused (2000 of 64 KiB would not fit).
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

// --- payloads
// ------------------------------------------------------------------------------------------------

struct Transfer {  // as NCCL describes a collective
    std::uint64_t communicator, bytes;
    std::int32_t root;
};
constexpr std::uint64_t kStaticIds = 1 << 24, kDynamicIds = std::uint64_t{1} << 32;

Schema transfer_schema() {
    Schema schema;
    schema.name = "transfer";
    schema.id = kStaticIds + 4;
    schema.size = sizeof(Transfer);
    schema.entries.resize(3);
    schema.entries[0] = {18, 0, 0, 0, "Communicator", "its hash"};
    schema.entries[1] = {22, 0, 0, 8, "Bytes", nullptr};
    schema.entries[2] = {kStaticIds + 20, 0, 0, 16, "Root", nullptr};
    return schema;
}

// Every kind of value and payload, on every kind of event.
int payloads() {
    initialize();
    void* domain = domain_create_a("Transfers");
    expect(domain_is_enabled(domain), "domains are enabled");
    const std::int64_t before = timestamp();
    expect(before != 0 && timestamp() >= before, "time goes on");
    void* resource = resource_create(domain, "a mutex");
    expect(resource != nullptr, "a resource has a handle");
    resource_destroy(resource);

    double real = -0.5;
    float short_real = 0.25f;
    std::int64_t negative = -7;
    std::uint64_t bits[7] = {0, std::uint64_t{1} << 63, 0, 0, 4'000'000'000u, 0, 0};
    std::memcpy(&bits[2], &negative, 8);
    std::memcpy(&bits[3], &real, 8);
    std::memcpy(&bits[5], &negative, 4);
    std::memcpy(&bits[6], &short_real, 4);
    for (int type = 1; type <= 6; ++type) {
        const std::string name = "value " + std::to_string(type);
        Event event = text(name.c_str());
        event.value_type = type;
        event.value = bits[type];
        type % 2 == 0 ? mark_ex(event) : domain_end(domain, domain_start(domain, event));
    }

    expect(register_schema(domain, transfer_schema()) == kStaticIds + 4, "the id that was asked for");
    expect(register_schema(domain, transfer_schema()) == kStaticIds + 4, "also the second time");
    Enumeration roots;
    roots.name = "roots";
    roots.id = kStaticIds + 20;
    roots.size = 4;
    roots.entries = {{"First", 0, false}, {"Second", 1, true}};
    expect(register_enum(domain, roots) == kStaticIds + 20, "the id of an enumeration");
    Schema note;  // its message is the event's text
    note.name = "note";
    note.entries.resize(2);
    note.entries[0] = {18, 0, 0, 0, "number", nullptr};
    note.entries[1] = {1, (1 << 4) | (1 << 10), 16, 8, "words", nullptr};
    const std::uint64_t note_id = register_schema(domain, note);
    expect(note_id >= kDynamicIds, "an id that the tool chose");
    Schema pointing;  // a pointer to its message
    pointing.entries.resize(1);
    pointing.entries[0] = {75, 1 << 10, 0, 0, "words", nullptr};
    const std::uint64_t pointing_id = register_schema(domain, pointing);
    Schema naming;  // a registered string as its message
    naming.entries.resize(1);
    naming.entries[0] = {80, 1 << 10, 0, 0, "name", nullptr};
    const std::uint64_t naming_id = register_schema(domain, naming);
    expect(pointing_id != note_id && naming_id != pointing_id, "ids differ");
    expect(register_scope(domain, "node[3]/gpu[1]", 1, kStaticIds + 1) == kStaticIds + 1, "a scope");
    expect(register_scope(domain, "elsewhere", kStaticIds + 1, 0) >= kDynamicIds, "another scope");

    Transfer transfer{0xABCDEF, 1 << 20, 1};
    Event event = text("both ends");
    event.payloads = {{kStaticIds + 4, sizeof transfer, &transfer}};
    expect_level(domain_push(domain, event), 0);
    transfer.bytes = 5;  // the call has copied the payload
    expect_level(pop_payload(domain, {{kStaticIds + 4, SIZE_MAX, &transfer}}), 0);
    event = text("two");
    event.payloads = {{77, 3, "abc"}, {78, 0, nullptr}, {79, 2, "de"}};
    domain_mark(domain, event);

    struct Note {
        std::uint64_t number;
        char words[16];
    } words = {3, "a word or two"};
    const char* pointed = "pointed at";
    void* name = register_a(domain, "registered");
    mark_payload(domain, {{note_id, sizeof words, &words}});
    expect_level(push_payload(domain, {{pointing_id, sizeof pointed, &pointed}}), 0);
    expect_level(domain_pop(domain), 0);
    end_payload(domain, start_payload(domain, {{naming_id, sizeof name, &name}}),
                {{kStaticIds + 4, sizeof transfer, &transfer}});

    // Two payloads are omitted: one larger than any chunk, and one of unknown size.
    const std::vector<char> large(100'000);
    event = text("too large");
    event.payloads = {{77, large.size(), large.data()}, {79, 2, "de"}};
    domain_mark(domain, event);
    event = text("unknown size");
    event.payloads = {{77, SIZE_MAX, large.data()}};
    domain_mark(domain, event);
    // Payloads as large as possible, so that payload and event lie in different chunks.
    for (int i = 0; i < 20; ++i) {
        event = text("large");
        event.payloads = {{77, 40'000, large.data()}};
        domain_mark(domain, event);
    }
    return 0;
}

// --- windows
// -------------------------------------------------------------------------------------------------

// Ten steps, each with a range, and a mark after each. Ranges that cross the edges of steps 3 and 5 have
// names.
template <typename Begin, typename End>
int ten_steps(Begin begin_step, End end_step) {
    void* other = domain_create_a("other");
    push_a("before");
    std::uint64_t across_start = 0, across_end = 0, late = 0;
    for (int i = 0; i < 10; ++i) {
        if (i == 2) across_start = start_a("begun in step 2");
        if (i == 5) across_end = start_a("begun after step 4");
        begin_step(i);
        push_a(("work " + std::to_string(i)).c_str());
        if (i == 3) end(across_start);
        if (i == 5) domain_push(other, text("begun in step 5"));
        if (i == 5) late = start_a("started in step 5");
        std::thread([&] {
            push_a(("thread " + std::to_string(i)).c_str());
            pop();
        }).join();
        pop();
        end_step(i);
        mark_a(("between " + std::to_string(i)).c_str());
        if (i == 6) domain_pop(other);
        if (i == 6) end(across_end);
    }
    end(late);
    pop();
    return 0;
}

std::string step_name(int i) {
    return "ProfilerStep#" + std::to_string(i);
}
int steps() {
    return ten_steps([](int i) { push_a(step_name(i).c_str()); }, [](int) { pop(); });
}
int registered_steps() {  // in a domain, as PyTorch's emit_nvtx writes them
    void* domain = domain_create_a("steps");
    return ten_steps(
        [&](int i) {
            domain_push(domain, registered(register_a(domain, (step_name(i) + ", op_id = 1").c_str())));
        },
        [&](int) { domain_pop(domain); });
}
int started_steps() {  // by start and end, the end on another thread
    std::uint64_t id = 0;
    return ten_steps([&](int i) { id = start_a(step_name(i).c_str()); },
                     [&](int) { std::thread([&] { end(id); }).join(); });
}

int phases() {
    for (int i = 0; i < 3; ++i) {
        mark_a("outside");
        push_a("phase two");  // a different name
        pop();
        push_a("phase");
        push_a("phase");  // nested arbitrarily deep
        mark_a("inside");
        pop();
        mark_a("inside");
        const std::uint64_t id = start_a("phase");
        pop();
        mark_a("inside");
        end(id);
    }
    mark_a("outside");
    return 0;
}

// Without NVTX: the library's own functions.
int plain_c() {
    const char* path = std::getenv("NVTX_INJECTION64_PATH");
    void* library = path != nullptr ? ::dlopen(path, RTLD_NOW) : nullptr;
    if (library == nullptr) return 9;
    const auto push = reinterpret_cast<void (*)(const char*)>(::dlsym(library, "shardscope_range_push"));
    const auto pop = reinterpret_cast<void (*)()>(::dlsym(library, "shardscope_range_pop"));
    const auto mark = reinterpret_cast<void (*)(const char*)>(::dlsym(library, "shardscope_mark"));
    const auto begin = reinterpret_cast<void (*)()>(::dlsym(library, "shardscope_profiler_start"));
    const auto end = reinterpret_cast<void (*)()>(::dlsym(library, "shardscope_profiler_stop"));
    push("early");
    push("early too");
    begin();
    pop();
    push("within");
    mark("marked");
    push("whole");
    end();
    pop();
    pop();
    push("late");
    pop();
    pop();
    pop();  // a pop too many
    begin();
    mark("again");
    mark(nullptr);
    return 0;
}

int forks() {
    void* domain = domain_create_a("shared domain");
    register_schema(domain, transfer_schema());
    void* name = register_a(domain, "registered before the fork");
    domain_push(domain, registered(name));
    const pid_t child = ::fork();
    if (child == 0) {
        domain_pop(domain);  // ends a range of its parent: no effect
        domain_push(domain, registered(name));
        Event child_event = registered(register_a(domain, "registered by the child"));
        child_event.payloads = {{kStaticIds + 4, 3, "abc"}};
        domain_push(domain, child_event);
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
    if (scenario == "paces") return four_threads(true);
    if (scenario == "floods") return four_threads(false);
    if (scenario == "payloads") return payloads();
    if (scenario == "steps") return steps();
    if (scenario == "registered_steps") return registered_steps();
    if (scenario == "started_steps") return started_steps();
    if (scenario == "phases") return phases();
    if (scenario == "plain_c") return plain_c();
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
    if (scenario == "interrupted") {
        // Before a handler may run: first uses of the text, and of NVTX, whose initialization a handler would
        // wait for forever.
        push_a(handlers_text());
        pop();
        struct sigaction action = {};
        action.sa_handler = [](int) {
            push_a(handlers_text());
            pop();
        };
        action.sa_flags = SA_RESTART;
        ::sigaction(SIGALRM, &action, nullptr);
        const itimerval often = {{0, 50}, {0, 50}};
        ::setitimer(ITIMER_REAL, &often, nullptr);
        for (int i = 0; i < 300'000; ++i) {
            push_a("interrupted");
            pop();
            if (i == 150'000) ::raise(SIGALRM);  // between records, in case the timer never fires there
        }
        const itimerval never = {};
        ::setitimer(ITIMER_REAL, &never, nullptr);
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
