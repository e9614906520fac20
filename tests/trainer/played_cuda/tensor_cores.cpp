// Asynchronous copies; see tensor_cores.h.
#include "tests/trainer/played_cuda/tensor_cores.h"

#include <cstdint>
#include <string>
#include <vector>

namespace played_cuda {
namespace {

struct Copy {
    void* to;
    const void* from;
};

// Indexed by the thread's number in its block: the thread's groups that have not been copied yet. The last
// group is still open.
struct Pending {
    std::vector<std::vector<Copy>> groups{{}};
};
thread_local std::vector<Pending> pending;
thread_local bool late = false;

Pending& mine() {
    const std::size_t thread =
        threadIdx.x + blockDim.x * (threadIdx.y + static_cast<std::size_t>(blockDim.y) * threadIdx.z);
    if (pending.size() <= thread) pending.resize(thread + 1);
    return pending[thread];
}

void perform(const Copy& copy) {
    if (copy.from) {
        std::memcpy(copy.to, copy.from, 16);
    } else {
        std::memset(copy.to, 0, 16);
    }
}

void check_aligned(const void* address, const char* what) {
    if (reinterpret_cast<std::uintptr_t>(address) % 16 == 0) return;
    throw PlayError(std::string("cp.async ") + what + " an address that is not aligned to 16 bytes");
}

}  // namespace

LateCopies::LateCopies() {
    late = true;
}
LateCopies::~LateCopies() {
    late = false;
    pending.clear();
}

void copy_16_bytes(void* to, const void* from) {
    check_aligned(to, "writes");
    check_aligned(from, "reads");
    if (late) {
        mine().groups.back().push_back({to, from});
    } else {
        perform({to, from});
    }
}

void end_group() {
    if (late) mine().groups.emplace_back();
}

void wait_for_groups(int behind) {
    if (!late) return;
    auto& groups = mine().groups;
    while (groups.size() > static_cast<std::size_t>(behind) + 1) {
        for (const Copy& copy : groups.front()) perform(copy);
        groups.erase(groups.begin());
    }
}

}  // namespace played_cuda
