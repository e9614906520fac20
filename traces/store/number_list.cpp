#include "traces/store/number_list.h"

#include <algorithm>

#include "traces/schema/text.h"

namespace shardscope::traces::store {
namespace {

constexpr std::size_t kMostNumbers = 1 << 20;  // more are damage

}  // namespace

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

std::vector<int> numbers_of_list(std::string_view text) {
    if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
    std::vector<int> numbers;
    while (!text.empty()) {
        std::string_view part = text.substr(0, text.find(','));
        text.remove_prefix(std::min(text.size(), part.size() + 1));
        while (part.starts_with(' ')) part.remove_prefix(1);
        while (part.ends_with(' ')) part.remove_suffix(1);
        const std::size_t dash = part.find('-');
        const auto first = schema::number_of<int>(part.substr(0, dash));
        const auto last =
            dash == std::string_view::npos ? first : schema::number_of<int>(part.substr(dash + 1));
        if (!first || !last || *first < 0 || *last < *first ||
            static_cast<std::size_t>(*last - *first) + numbers.size() > kMostNumbers)
            return {};
        for (int number = *first; number <= *last; ++number) numbers.push_back(number);
    }
    std::sort(numbers.begin(), numbers.end());
    return numbers;
}

}  // namespace shardscope::traces::store
