// The fake CUPTI inside a test program: it is loaded before CUPTI is searched, so that it is found first.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include <dlfcn.h>
#include <time.h>

#include "profiler/cupti/abi.h"
#include "tests/profiler/cuda/fake_cupti.h"

namespace shardscope::profiler::testing {

class FakeLibrary {
  public:
    // `file`: a path, or a name to search for.
    explicit FakeLibrary(const char* file) : library_(::dlopen(file, RTLD_LAZY)) {
        if (library_ == nullptr) throw std::runtime_error(std::string("no ") + file);
    }

    // The function that is declared by that name.
    template <typename F>
    F* function(const char* name) const {
        auto* found = reinterpret_cast<F*>(::dlsym(library_, name));
        if (found == nullptr) throw std::runtime_error(std::string("the fake has no ") + name);
        return found;
    }

    void call(int lane, const char* name, std::uint32_t correlation) const {
        cupti::Api api{};
        const bool is_runtime = std::strncmp(name, "cuda", 4) == 0;
        api.kind = is_runtime ? cupti::kKindRuntime : cupti::kKindDriver;
        api.start = api.end = static_cast<std::uint64_t>(now());
        api.correlation = correlation;
        emit(lane, api, name);
    }
    void kernel(int lane, std::uint32_t correlation, std::int64_t start, std::int64_t end,
                const char* name = "_Z4axpyPfS_") const {
        auto record = kernel_record(correlation, start, end);
        record.name = name;
        emit(lane, record);
    }
    static cupti::Kernel kernel_record(std::uint32_t correlation, std::int64_t start, std::int64_t end) {
        cupti::Kernel record{};
        record.kind = cupti::kKindConcurrentKernel;
        record.start = static_cast<std::uint64_t>(start);
        record.end = static_cast<std::uint64_t>(end);
        record.context = 1;
        record.stream = 13;
        record.correlation = correlation;
        for (int i = 0; i < 3; ++i) record.grid[i] = record.block[i] = 1;
        return record;
    }
    void external_id(int lane, std::uint32_t correlation, std::uint64_t id) const {
        emit(lane, cupti::ExternalCorrelation{cupti::kKindExternalCorrelation, cupti::kExternalCustom0, id,
                                              correlation, 0});
    }
    template <typename Record>
    void emit(int lane, const Record& record, const char* name = nullptr) const {
        emit_(lane, &record, sizeof record, name);
    }
    void complete(int lane) const { function<decltype(fake_complete)>("fake_complete")(lane); }
    void hold(int lane, bool held) const { function<decltype(fake_hold)>("fake_hold")(lane, held ? 1 : 0); }
    void drop(std::size_t records) const { function<decltype(fake_drop)>("fake_drop")(records); }
    FakeCounts counts() const { return function<decltype(fake_counts)>("fake_counts")(); }

    // CLOCK_REALTIME in ns, which is CUPTI's clock.
    static std::int64_t now() {
        timespec t;
        ::clock_gettime(CLOCK_REALTIME, &t);
        return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
    }

  private:
    void* library_;
    decltype(fake_emit)* emit_ = function<decltype(fake_emit)>("fake_emit");
};

// Sets a variable of the environment while the object lives.
class Environment {
  public:
    Environment(const char* name, const std::string& value) : name_(name) {
        ::setenv(name, value.c_str(), 1);
    }
    ~Environment() { ::unsetenv(name_); }
    Environment(const Environment&) = delete;
    Environment& operator=(const Environment&) = delete;

  private:
    const char* name_;
};

}  // namespace shardscope::profiler::testing
