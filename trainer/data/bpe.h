// A byte-level vocabulary made by merging frequent pairs (Sennrich, Haddow, Birch: "Neural machine
// translation of rare words with subword units", ACL 2016; on bytes as in GPT-2): token 256 + i is the i-th
// merge, two earlier tokens joined. A word (words.h) is encoded by applying the merges in order. Immutable,
// so any number of threads may use it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trainer/data/tokenizer.h"

namespace shardscope::trainer::data {

struct Merge {
    Token left = 0;
    Token right = 0;
    bool operator==(const Merge&) const = default;
    bool operator<(const Merge& other) const {
        return left != other.left ? left < other.left : right < other.right;
    }
};

class BpeTokenizer final : public Tokenizer {
  public:
    // `merges` in order. Throws std::invalid_argument if one uses a token that does not exist yet, repeats an
    // earlier merge, or makes an entry longer than a word can be.
    explicit BpeTokenizer(std::vector<Merge> merges);

    std::string name() const override { return "bpe"; }
    int vocabulary() const override { return static_cast<int>(entries_.size()); }
    using Tokenizer::encode;
    void encode(std::string_view text, const Sink& sink) const override;
    std::string_view entry(Token token) const override;

    const std::vector<Merge>& merges() const { return merges_; }

  private:
    Token merged(Token left, Token right) const;  // kNone if there is no such merge
    void append_word(std::string_view word, std::vector<Token>& tokens) const;

    std::vector<Merge> merges_;
    std::vector<std::string> entries_;                  // by token: its bytes
    std::unordered_map<std::uint64_t, Token> by_pair_;  // (left << 32 | right) -> token
};

// The vocabulary as text: a line "shardscope-bpe 1", a line "merges N", N lines "LEFT RIGHT" in order, a line
// "check H": 16 hexadecimal digits of a hash of all bytes before that line.
std::string to_text(const BpeTokenizer& tokenizer);

// The reverse. `name` names the text in messages. Throws DataError (with the line and what is wrong with it)
// if it is another kind of file, damaged or truncated.
BpeTokenizer bpe_from_text(std::string_view text, const std::string& name);

}  // namespace shardscope::trainer::data
