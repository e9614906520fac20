// Encoding and decoding; see bpe.h. Files are in bpe_file.cpp, training in bpe_training.cpp.
#include "trainer/data/bpe.h"

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>

#include <fmt/core.h>

#include "trainer/data/words.h"

namespace shardscope::trainer::data {
namespace {

constexpr Token kNone = std::numeric_limits<Token>::max();  // larger than every token, so merged last
constexpr std::size_t kRememberedWords = std::size_t{1} << 18;

std::uint64_t key_of(Token left, Token right) {
    return (static_cast<std::uint64_t>(left) << 32) | static_cast<std::uint32_t>(right);
}

}  // namespace

BpeTokenizer::BpeTokenizer(std::vector<Merge> merges) : merges_(std::move(merges)) {
    entries_.reserve(kByteTokens + merges_.size());
    by_pair_.reserve(merges_.size());
    for (int byte = 0; byte < kByteTokens; ++byte) entries_.emplace_back(1, static_cast<char>(byte));
    for (const Merge& merge : merges_) {
        const auto token = static_cast<Token>(entries_.size());
        if (merge.left < 0 || merge.left >= token || merge.right < 0 || merge.right >= token) {
            throw std::invalid_argument(
                fmt::format("merge {} joins {} and {}, and the tokens before it end at {}",
                            token - kByteTokens, merge.left, merge.right, token - 1));
        }
        std::string entry =
            entries_[static_cast<std::size_t>(merge.left)] + entries_[static_cast<std::size_t>(merge.right)];
        if (entry.size() > kLongestWord) {
            throw std::invalid_argument(fmt::format("merge {} has {} bytes, and a word has at most {}",
                                                    token - kByteTokens, entry.size(), kLongestWord));
        }
        if (!by_pair_.emplace(key_of(merge.left, merge.right), token).second) {
            throw std::invalid_argument(fmt::format("merge {} joins {} and {}, as an earlier one does",
                                                    token - kByteTokens, merge.left, merge.right));
        }
        entries_.push_back(std::move(entry));
    }
}

Token BpeTokenizer::merged(Token left, Token right) const {
    const auto found = by_pair_.find(key_of(left, right));
    return found == by_pair_.end() ? kNone : found->second;
}

// Always applies the earliest merge first, and among equal ones the leftmost. A merge creates only pairs of
// later merges, so this equals applying each merge to the whole word in turn.
void BpeTokenizer::append_word(std::string_view word, std::vector<Token>& tokens) const {
    std::array<Token, kLongestWord> at;    // the word so far
    std::array<Token, kLongestWord> pair;  // [i]: what at[i] and at[i + 1] become
    std::size_t count = word.size();
    for (std::size_t i = 0; i < count; ++i) at[i] = static_cast<unsigned char>(word[i]);
    for (std::size_t i = 0; i + 1 < count; ++i) pair[i] = merged(at[i], at[i + 1]);
    while (count > 1) {
        const auto first =
            std::min_element(pair.begin(), pair.begin() + static_cast<std::ptrdiff_t>(count - 1));
        if (*first == kNone) break;
        const auto i = static_cast<std::size_t>(first - pair.begin());
        at[i] = *first;
        std::copy(at.begin() + i + 2, at.begin() + count, at.begin() + i + 1);
        if (i + 2 < count) std::copy(pair.begin() + i + 2, pair.begin() + count - 1, pair.begin() + i + 1);
        --count;
        if (i > 0) pair[i - 1] = merged(at[i - 1], at[i]);
        if (i + 1 < count) pair[i] = merged(at[i], at[i + 1]);
    }
    tokens.insert(tokens.end(), at.begin(), at.begin() + static_cast<std::ptrdiff_t>(count));
}

void BpeTokenizer::encode(std::string_view text, const Sink& sink) const {
    // Most words of a text have been seen before.
    std::unordered_map<std::string_view, std::pair<std::size_t, std::size_t>>
        remembered;  // word -> begin, count
    std::vector<Token> tokens;
    while (!text.empty()) {
        const std::string_view word = first_word(text);
        text.remove_prefix(word.size());
        if (remembered.size() >= kRememberedWords) {
            remembered.clear();
            tokens.clear();
        }
        const auto [known, is_new] = remembered.try_emplace(word, tokens.size(), 0);
        auto& [begin, count] = known->second;
        if (is_new) {
            append_word(word, tokens);
            count = tokens.size() - begin;
        }
        sink({tokens.data() + begin, count});
    }
}

std::string_view BpeTokenizer::entry(Token token) const {
    if (token < 0 || token >= vocabulary()) {
        throw std::out_of_range(fmt::format("token {} is not in a vocabulary of {}", token, vocabulary()));
    }
    return entries_[static_cast<std::size_t>(token)];
}

}  // namespace shardscope::trainer::data
