// A script's line as words, and names that are meant where another was written. No Dear ImGui; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardscope::viewer::script {

struct Words {
    std::vector<std::string> words;
    // Where the word before this one ended: what follows it can be taken as it stands.
    std::string rest;   // of the line after its first word, without blanks around; unquoted if it is one word
    std::string error;  // "a quote is not closed"
};
Words split_words(std::string_view line);

// The `most` names that are nearest to `wanted`: those that begin with it or hold it, then by how many
// letters would have to change (Levenshtein's distance), at most half of them.
std::vector<std::string> nearest_names(std::string_view wanted, const std::vector<std::string>& names,
                                       std::size_t most = 5);

// ", did you mean a, b?" or nothing.
std::string did_you_mean(std::string_view wanted, const std::vector<std::string>& names);

}  // namespace shardscope::viewer::script
