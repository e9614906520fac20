// Calls the NCCL library that the argument names without any communicator, which needs no GPU: the calls
// fail, and their NVTX ranges contain the arguments. Exits with 77 if the library cannot be loaded.
#include <cstddef>
#include <cstdio>

#include <dlfcn.h>

namespace {

// ncclAllGather, ncclAllReduce and ncclReduceScatter; types and operations are NCCL's numbers.
using Gather = int (*)(const void*, void*, std::size_t count, int type, void* communicator, void* stream);
using Reduce = int (*)(const void*, void*, std::size_t count, int type, int operation, void* communicator,
                       void* stream);
using Group = int (*)();
constexpr int kFloat32 = 7, kFloat64 = 8, kBfloat16 = 9;
constexpr int kSum = 0, kMax = 2;

template <typename F>
F find(void* library, const char* name) {
    return reinterpret_cast<F>(::dlsym(library, name));
}

}  // namespace

int main(int argc, char** argv) {
    void* library = ::dlopen(argc > 1 ? argv[1] : "libnccl.so.2", RTLD_NOW);
    if (library == nullptr) {
        std::printf("%s\n", ::dlerror());
        return 77;
    }
    const auto gather = find<Gather>(library, "ncclAllGather");
    const auto scatter = find<Reduce>(library, "ncclReduceScatter");
    const auto reduce = find<Reduce>(library, "ncclAllReduce");
    const auto start = find<Group>(library, "ncclGroupStart");
    const auto end = find<Group>(library, "ncclGroupEnd");
    if (gather == nullptr || scatter == nullptr || reduce == nullptr || start == nullptr || end == nullptr) {
        return 77;
    }
    gather(nullptr, nullptr, 1024, kFloat32, nullptr, nullptr);
    reduce(nullptr, nullptr, 100, kFloat64, kMax, nullptr, nullptr);
    start();
    scatter(nullptr, nullptr, 512, kBfloat16, kSum, nullptr, nullptr);
    end();
    return 0;
}
