// A script's line as words, and suggestions for misspelt names. No Dear ImGui; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardscope::viewer::script {

struct Words {
    std::vector<std::string> words;
    // Where the previous word ended: what follows it can be taken unchanged.
    std::string rest;   // the line after its first word, without outer blanks; unquoted if it is one word
    std::string error;  // "a quote is not closed"
};
Words split_words(std::string_view line);

// The at most `most` names nearest to `wanted`: first those that begin with it or contain it, then by the
// number of letters to change (Levenshtein distance), at most half of them.
std::vector<std::string> nearest_names(std::string_view wanted, const std::vector<std::string>& names,
                                       std::size_t most = 5);

// "; did you mean a, b?" or nothing.
std::string did_you_mean(std::string_view wanted, const std::vector<std::string>& names);

}  // namespace shardscope::viewer::script
