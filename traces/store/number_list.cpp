#include "traces/store/number_list.h"

namespace shardscope::traces::store {

std::string number_list(std::span<const std::int64_t> numbers) {
    std::string text;
    for (std::size_t i = 0; i < numbers.size();) {
        std::size_t last = i;
        while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
        if (!text.empty()) text += ',';
        text += std::to_string(numbers[i]);
        if (last > i) text += (last == i + 1 ? "," : "-") + std::to_string(numbers[last]);
        i = last + 1;
    }
    return text;
}

}  // namespace shardscope::traces::store
