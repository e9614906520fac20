// Splits a script's line into words, and suggests names for misspelt ones. No Dear ImGui; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardscope::viewer::script {

struct Words {
    std::vector<std::string> words;
    std::string rest;   // the line after its first word, without outer blanks; unquoted if it is one word
    std::string error;  // "a quote is not closed"
};
Words split_words(std::string_view line);

// At most `most` names nearest to `wanted`: first those that contain it, then by Levenshtein distance, which
// must be at most half of the longer name's length.
std::vector<std::string> nearest_names(std::string_view wanted, const std::vector<std::string>& names,
                                       std::size_t most = 5);

// "; did you mean a, b?" or "".
std::string did_you_mean(std::string_view wanted, const std::vector<std::string>& names);

}  // namespace shardscope::viewer::script
