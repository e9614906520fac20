// See fuzzy.h. Finds the best placement of the letters, not the first, by dynamic programming: placed[i] is
// the best score with the previous letter at position i.
#include "viewer/app/fuzzy.h"

#include <algorithm>
#include <vector>

#include "traces/schema/text.h"

namespace shardscope::viewer::app {
namespace {

constexpr int kNone = -1'000'000;
constexpr int kLetter = 4, kInRow = 6, kWordStart = 8;

bool starts_word(std::string_view name, std::size_t i) {
    if (i == 0) return true;
    const char before = name[i - 1];
    return before == ' ' || before == '_' || before == '.' || before == '/' || before == '-';
}

}  // namespace

std::optional<int> fuzzy_score(std::string_view typed, std::string_view name) {
    name = name.substr(0, 500);
    std::vector<int> placed(name.size(), kNone), next(name.size());
    int best = 0;
    bool first = true;
    for (const char c : typed) {
        if (c == ' ') continue;
        best = kNone;
        int before = first ? 0 : kNone;  // best score of the previous letter left of i
        for (std::size_t i = 0; i < name.size(); ++i) {
            next[i] = kNone;
            if (traces::schema::same_letter(name[i], c)) {
                const int in_row = !first && i > 0 && placed[i - 1] > kNone ? placed[i - 1] + kInRow : kNone;
                const int from = std::max(before, in_row);
                if (from > kNone) next[i] = from + kLetter + (starts_word(name, i) ? kWordStart : 0);
            }
            best = std::max(best, next[i]);
            if (!first && i > 0) before = std::max(before, placed[i - 1]);
        }
        if (best == kNone) return std::nullopt;
        placed = next;
        first = false;
    }
    return best - static_cast<int>(name.size()) / 8;
}

}  // namespace shardscope::viewer::app
