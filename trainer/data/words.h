// How text is cut into words before byte pairs are merged: no token reaches over the end of a word, so that a
// vocabulary holds "dog" and " dog", but not "dog." and "dog!". In the spirit of GPT-2's expression (Radford
// et al., "Language models are unsupervised multitask learners", 2019), for bytes and without tables:
//
//   word  = [one space] run of letters | [one space] run of digits | [one space] run of other characters
//         | run of white space
//   letter: a-z, A-Z and every byte from 0x80 on (whatever UTF-8 writes in several bytes)
//   white space: space, tab, line feed, vertical tab, form feed, carriage return
//
// White space before a word leaves its last character to that word if it is a space. A word that is longer
// than kLongestWord bytes ends there, and the next begins: a text without white space costs no more than
// another.
#pragma once

#include <cstddef>
#include <string_view>

namespace shardscope::trainer {

inline constexpr std::size_t kLongestWord = 64;

// The first word of a text that is not empty; never empty. Cutting words off until nothing is left gives the
// whole text.
std::string_view first_word(std::string_view text);

}  // namespace shardscope::trainer
