// Opens OpenBLAS and makes it choose the kernels that suit the processor; see blas.h.
#include "trainer/kernels/blas.h"

#include <array>
#include <cstdlib>
#include <optional>
#include <string_view>

#include <dlfcn.h>
#include <fmt/core.h>

namespace shardscope::trainer::kernels {
namespace {

constexpr int kRowMajor = 101;  // CBLAS's values
constexpr int kNoTranspose = 111;
constexpr int kTranspose = 112;

// Sets an environment variable for as long as this lives, then restores its previous value.
class EnvironmentValue {
  public:
    EnvironmentValue(const char* name, const char* value) : name_(name), before_(read(name)) {
        setenv(name_, value, 1);
    }
    ~EnvironmentValue() {
        if (before_) {
            setenv(name_, before_->c_str(), 1);
        } else {
            unsetenv(name_);
        }
    }
    EnvironmentValue(const EnvironmentValue&) = delete;
    EnvironmentValue& operator=(const EnvironmentValue&) = delete;

    static std::optional<std::string> read(const char* name) {
        const char* value = std::getenv(name);
        return value ? std::optional<std::string>(value) : std::nullopt;
    }

  private:
    const char* name_;
    std::optional<std::string> before_;
};

void* open_library(const char* library) {
    // Starts with one thread: otherwise the library would, while loading, start one per core of the
    // machine.
    const EnvironmentValue one_thread("OPENBLAS_NUM_THREADS", "1");
    void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        const char* reason = dlerror();
        throw BlasError(
            fmt::format("cannot open {} ({}): install OpenBLAS, for example with `apt-get install "
                        "libopenblas0`",
                        library, reason ? reason : "no reason given"));
    }
    return handle;
}

template <class Function>
Function find(void* handle, const char* name) {
    void* address = dlsym(handle, name);
    if (!address) {
        throw BlasError(fmt::format(
            "the BLAS library found has no function {}, so it is not OpenBLAS: install that, for example "
            "with `apt-get install libopenblas0`",
            name));
    }
    return reinterpret_cast<Function>(address);
}

std::string core_of(void* handle) {
    return find<const char* (*)()>(handle, "openblas_get_corename")();
}

// How wide the kernels of a core type are: 1 below AVX2, 2 AVX2, 3 AVX-512. Unknown names are assumed to be
// newer than this list, so the library's choice is kept.
int width_of_core(std::string_view core) {
    constexpr std::array<std::string_view, 21> kNarrow = {
        "Unknown", "Katmai", "Coppermine", "Northwood", "Prescott",   "Banias",      "Atom",
        "Core2",   "Penryn", "Dunnington", "Nehalem",   "Athlon",     "Opteron",     "Opteron_SSE3",
        "Nano",    "Bobcat", "Barcelona",  "Bulldozer", "Piledriver", "Steamroller", "Sandybridge"};
    constexpr std::array<std::string_view, 3> kMiddle = {"Haswell", "Zen", "Excavator"};
    for (std::string_view name : kNarrow) {
        if (core == name) return 1;
    }
    for (std::string_view name : kMiddle) {
        if (core == name) return 2;
    }
    return 3;
}

struct Processor {
    int width;             // as width_of_core
    const char* coretype;  // the OPENBLAS_CORETYPE for that width
    const char* features;
};

Processor processor() {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512cd")) {
        return {3, "SkylakeX", "AVX-512"};
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {2, "Haswell", "AVX2"};
#endif
    return {1, "", ""};
}

}  // namespace

Blas& Blas::get() {
    static Blas blas("libopenblas.so.0");
    return blas;
}

Blas::Blas(const char* library) {
    if (const auto inherited = EnvironmentValue::read("OPENBLAS_CORETYPE")) {
        unsetenv("OPENBLAS_CORETYPE");
        notes_.push_back(fmt::format("OPENBLAS_CORETYPE={} was set and is overridden", *inherited));
    }

    void* handle = open_library(library);
    core_ = core_of(handle);
    // OpenBLAS knows processors by model number and mistakes one newer than itself for an old one (0.3.21
    // takes Emerald Rapids for Prescott, at a fifth of the speed). The core type is read only while loading,
    // so load it again.
    const Processor here = processor();
    if (width_of_core(core_) < here.width) {
        const std::string chosen_by_itself = core_;
        dlclose(handle);
        {
            const EnvironmentValue coretype("OPENBLAS_CORETYPE", here.coretype);
            handle = open_library(library);
        }
        core_ = core_of(handle);
        if (core_ != chosen_by_itself) {
            notes_.push_back(
                fmt::format("OpenBLAS took this processor for {}; it has {}, so {} kernels are used",
                            chosen_by_itself, here.features, core_));
        } else {
            notes_.push_back(fmt::format(
                "OpenBLAS took this processor for {} and this cannot be corrected: it will be slow", core_));
        }
    }
    config_ = find<const char* (*)()>(handle, "openblas_get_config")();
    gemm_ = find<Gemm>(handle, "cblas_sgemm");
    set_threads_ = find<void (*)(int)>(handle, "openblas_set_num_threads");
    get_threads_ = find<int (*)()>(handle, "openblas_get_num_threads");
    set_threads(1);
    // The library stays open until the process ends: its threads and buffers may be in use until then.
}

void Blas::sgemm(bool transpose_a, bool transpose_b, int m, int n, int k, float alpha, const float* a,
                 int lda, const float* b, int ldb, float beta, float* c, int ldc) const {
    gemm_(kRowMajor, transpose_a ? kTranspose : kNoTranspose, transpose_b ? kTranspose : kNoTranspose, m, n,
          k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void Blas::set_threads(int threads) {
    set_threads_(threads < 1 ? 1 : threads);
}

int Blas::threads() const {
    return get_threads_();
}

}  // namespace shardscope::trainer::kernels
