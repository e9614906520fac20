#include "profiler/sampler/gpu_visibility.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string_view>
#include <system_error>

#include "traces/schema/text.h"

namespace shardscope::profiler {
namespace {

// The place of the GPU that an entry names; -1: none.
std::ptrdiff_t place_of(const std::vector<nvml::GpuFacts>& gpus, std::string_view entry) {
    if (entry.starts_with("MIG-GPU-")) {  // "MIG-GPU-UUID/1/0"
        entry.remove_prefix(4);
        entry = entry.substr(0, entry.find('/'));
    }
    if (entry.starts_with("GPU-")) {
        const auto has_it = [&](const nvml::GpuFacts& gpu) { return gpu.uuid.starts_with(entry); };
        const auto found = std::find_if(gpus.begin(), gpus.end(), has_it);
        // CUDA takes a beginning only if it is unambiguous.
        if (found == gpus.end() || std::find_if(found + 1, gpus.end(), has_it) != gpus.end()) return -1;
        return found - gpus.begin();
    }
    int number = -1;
    const char* const end = entry.data() + entry.size();
    const auto [behind, error] = std::from_chars(entry.data(), end, number);
    if (error != std::errc{} || behind != end) return -1;
    const auto found = std::find_if(gpus.begin(), gpus.end(),
                                    [&](const nvml::GpuFacts& gpu) { return gpu.number == number; });
    return found == gpus.end() ? -1 : found - gpus.begin();
}

}  // namespace

std::vector<bool> visible_gpus(const std::vector<nvml::GpuFacts>& gpus,
                               const std::optional<std::string>& variable) {
    std::vector<bool> visible(gpus.size(), !variable);
    for (std::string_view rest = variable ? std::string_view(*variable) : ""; !rest.empty();) {
        const std::size_t comma = std::min(rest.find(','), rest.size());
        const std::ptrdiff_t place = place_of(gpus, traces::schema::trimmed(rest.substr(0, comma)));
        if (place < 0) break;
        visible[static_cast<std::size_t>(place)] = true;
        rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
    return visible;
}

}  // namespace shardscope::profiler
