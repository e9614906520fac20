// How text is cut into words before byte pairs are merged: no token crosses the end of a word, so that a
// vocabulary contains "dog" and " dog", but not "dog." and "dog!". In the spirit of GPT-2's expression
// (Radford et al., "Language models are unsupervised multitask learners", 2019), for bytes and without
// tables:
//
//   word  = [one space] run of letters | [one space] run of digits | [one space] run of other characters
//         | run of white space
//   letter: a-z, A-Z and every byte from 0x80 on (all that UTF-8 encodes in several bytes)
//   white space: space, tab, line feed, vertical tab, form feed, carriage return
//
// If the last character of white space before a word is a space, it belongs to that word. A word that is
// longer than kLongestWord bytes ends there and the next begins, so a text without white space costs no more
// than any other.
#pragma once

#include <cstddef>
#include <string_view>

namespace shardscope::trainer::data {

inline constexpr std::size_t kLongestWord = 64;

// The first word of a non-empty text; never empty. The words cut off one after the other make up the whole
// text.
std::string_view first_word(std::string_view text);

}  // namespace shardscope::trainer::data
