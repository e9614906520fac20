#include "trainer/executor/host_memory.h"

#include <cstdlib>

#include <sys/mman.h>

namespace shardscope::trainer::executor {

namespace {

constexpr std::size_t kPage = 4096, kHugePage = std::size_t{2} << 20;

}  // namespace

std::byte* take_host_memory(std::size_t bytes) {
    const std::size_t page = bytes >= kHugePage ? kHugePage : kPage;
    // Rounded to whole small pages, which hold what is beyond the last whole huge page.
    const std::size_t rounded = (bytes + kPage - 1) / kPage * kPage;
    void* data = nullptr;
    if (::posix_memalign(&data, page, rounded) != 0) return nullptr;
    // This is only advice: where it is not granted, small pages do.
    if (page == kHugePage) ::madvise(data, rounded / kHugePage * kHugePage, MADV_HUGEPAGE);
    return static_cast<std::byte*>(data);
}

void give_back_host_memory(std::byte* data) noexcept {
    std::free(data);
}

}  // namespace shardscope::trainer::executor
