// Learns the merges of a byte-pair vocabulary from text. Deterministic: the same text gives the same merges
// on every machine.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "trainer/data/bpe.h"

namespace shardscope::trainer::data {

// Up to `wanted` merges, in order: repeatedly, the pair of neighbouring tokens that occurs most often within
// the words (words.h) of the texts becomes a token; of equally frequent pairs the one with the smaller left
// token, then the smaller right one. Fewer if no remaining pair occurs twice. A word never reaches from one
// text into the next.
//
// Time: one pass over the text, then per merge only the words that contain its pair (counts are kept up to
// date, the largest is found with a heap), each distinct word once however often it occurs.
std::vector<Merge> learn_merges(std::span<const std::string_view> texts, int wanted);

}  // namespace shardscope::trainer::data
