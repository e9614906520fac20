// Sentences that rows of a table share: rows hold their numbers, and the sentences follow the table.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "traces/report/text_table.h"

namespace shardscope::trainer::cli {

class Footnotes {
  public:
    // "impossible [1]"
    std::string cell(const std::string& verdict, const std::string& sentence) {
        const auto found = std::find(sentences_.begin(), sentences_.end(), sentence);
        const auto number = found - sentences_.begin() + 1;
        if (found == sentences_.end()) sentences_.push_back(sentence);
        return fmt::format("{} [{}]", verdict, number);
    }
    std::string text() const {
        std::string all;
        for (std::size_t i = 0; i < sentences_.size(); ++i)
            all += fmt::format("[{}] {}\n", i + 1, traces::report::printable(sentences_[i]));
        return all;
    }

  private:
    std::vector<std::string> sentences_;
};

}  // namespace shardscope::trainer::cli
