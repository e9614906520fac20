#include "traces/schema/sort_rows.h"

#include <algorithm>
#include <numeric>

namespace shardscope::traces::schema {

std::vector<std::uint32_t> stable_order(std::size_t size,
                                        bool (*less)(const void*, std::uint32_t, std::uint32_t),
                                        const void* context) {
    std::vector<std::uint32_t> order(size);
    std::iota(order.begin(), order.end(), std::uint32_t{0});
    const auto before = [&](std::uint32_t a, std::uint32_t b) { return less(context, a, b); };
    if (std::is_sorted(order.begin(), order.end(), before)) return {};
    std::stable_sort(order.begin(), order.end(), before);
    return order;
}

}  // namespace shardscope::traces::schema
