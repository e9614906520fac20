// Edit distance with transpositions of adjacent letters, computed with three rows of its table.
#include "trainer/job/nearest.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <vector>

namespace shardscope::trainer::job {

int edit_distance(std::string_view a, std::string_view b) {
    const auto same = [](char x, char y) {
        return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
    };
    std::vector<int> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
    std::iota(last.begin(), last.end(), 0);
    for (std::size_t i = 1; i <= a.size(); ++i) {
        row[0] = static_cast<int>(i);
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const int replaced = last[j - 1] + (same(a[i - 1], b[j - 1]) ? 0 : 1);
            row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
            if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1])) {
                row[j] = std::min(row[j], before_last[j - 2] + 1);
            }
        }
        std::swap(before_last, last);
        std::swap(last, row);
    }
    return last[b.size()];
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates) {
    std::string_view best;
    int best_distance = 0;
    for (const std::string_view candidate : candidates) {
        const int distance = edit_distance(word, candidate);
        if (best.empty() || distance < best_distance) {
            best = candidate;
            best_distance = distance;
        }
    }
    const int bound = std::max(2, static_cast<int>(std::max(word.size(), best.size())) / 3);
    return best_distance <= bound && best_distance < static_cast<int>(word.size()) ? best
                                                                                   : std::string_view{};
}

}  // namespace shardscope::trainer::job
