// Learns merges from counts of pairs, updated merge by merge; see bpe_training.h.
#include "trainer/data/bpe_training.h"

#include <cstdint>
#include <queue>
#include <unordered_map>

#include "trainer/data/words.h"

namespace shardscope::trainer::data {
namespace {

struct MergeHash {
    std::size_t operator()(const Merge& pair) const {
        const std::uint64_t both =
            (static_cast<std::uint64_t>(pair.left) << 32) | static_cast<std::uint32_t>(pair.right);
        return static_cast<std::size_t>((both ^ (both >> 29)) * 0x9e3779b97f4a7c15u >> 7);
    }
};

// A distinct word: its tokens so far and how often it occurs.
struct Word {
    std::vector<Token> tokens;
    std::int64_t count = 0;
};

// The words in which a pair occurs. Words that no longer contain it may still be listed.
struct Occurrences {
    std::int64_t count = 0;
    std::vector<std::uint32_t> words;

    void add(std::uint32_t word, std::int64_t times) {
        count += times;
        if (words.empty() || words.back() != word) words.push_back(word);
    }
};

struct Candidate {
    std::int64_t count = 0;
    Merge pair;

    // Orders for std::priority_queue, which returns the largest: most occurrences, then the smallest pair.
    bool operator<(const Candidate& other) const {
        return count != other.count ? count < other.count : other.pair < pair;
    }
};

class Learner {
  public:
    explicit Learner(std::span<const std::string_view> texts);

    // Returns false when no pair occurs twice.
    bool learn(Merge& merge, Token token);

  private:
    void replace(std::uint32_t index, const Merge& pair, Token token);

    std::vector<Word> words_;
    std::unordered_map<Merge, Occurrences, MergeHash> pairs_;
    // Every pair that occurs has an entry with its count or a larger one: counts of a pair only fall once the
    // merge that made it possible is done, and an entry that is too large is put back when it is popped.
    std::priority_queue<Candidate> candidates_;
    std::vector<Merge> fresh_;  // pairs that the current merge made, some more than once
};

Learner::Learner(std::span<const std::string_view> texts) {
    std::unordered_map<std::string_view, std::uint32_t> index_of;
    for (std::string_view text : texts) {
        while (!text.empty()) {
            const std::string_view word = first_word(text);
            text.remove_prefix(word.size());
            if (word.size() < 2) continue;  // has no pair
            const auto [known, is_new] =
                index_of.try_emplace(word, static_cast<std::uint32_t>(words_.size()));
            if (is_new) {
                words_.emplace_back();
                words_.back().tokens.reserve(word.size());
                for (const char c : word) words_.back().tokens.push_back(static_cast<unsigned char>(c));
            }
            ++words_[known->second].count;
        }
    }
    for (std::uint32_t index = 0; index < words_.size(); ++index) {
        const Word& word = words_[index];
        for (std::size_t i = 0; i + 1 < word.tokens.size(); ++i) {
            pairs_[{word.tokens[i], word.tokens[i + 1]}].add(index, word.count);
        }
    }
    for (const auto& [pair, occurrences] : pairs_) candidates_.push({occurrences.count, pair});
}

bool Learner::learn(Merge& merge, Token token) {
    while (!candidates_.empty()) {
        const Candidate candidate = candidates_.top();
        candidates_.pop();
        const auto found = pairs_.find(candidate.pair);
        if (found == pairs_.end() || found->second.count < 2) continue;
        if (found->second.count != candidate.count) {
            candidates_.push({found->second.count, candidate.pair});
            continue;
        }
        merge = candidate.pair;
        const std::vector<std::uint32_t> words = std::move(found->second.words);
        fresh_.clear();
        for (const std::uint32_t word : words) replace(word, merge, token);
        pairs_.erase(merge);
        for (const Merge& pair : fresh_) candidates_.push({pairs_[pair].count, pair});
        return true;
    }
    return false;
}

// Replaces the pair in a word from left to right; each replacement removes the pairs with the current
// neighbours and adds those of the new token.
void Learner::replace(std::uint32_t index, const Merge& pair, Token token) {
    Word& word = words_[index];
    std::vector<Token>& tokens = word.tokens;
    const auto come = [&](Token left, Token right) {
        Occurrences& occurrences = pairs_[{left, right}];
        if (occurrences.count == 0) fresh_.push_back({left, right});
        occurrences.add(index, word.count);
    };
    const auto go = [&](Token left, Token right) { pairs_[{left, right}].count -= word.count; };

    std::size_t kept = 0;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        const bool here = i + 1 < tokens.size() && tokens[i] == pair.left && tokens[i + 1] == pair.right;
        if (!here) {
            tokens[kept++] = tokens[i];
            continue;
        }
        if (kept > 0) {
            go(tokens[kept - 1], pair.left);
            come(tokens[kept - 1], token);
        }
        if (i + 2 < tokens.size()) {
            go(pair.right, tokens[i + 2]);
            come(token, tokens[i + 2]);
        }
        tokens[kept++] = token;
        ++i;
    }
    tokens.resize(kept);
}

}  // namespace

std::vector<Merge> learn_merges(std::span<const std::string_view> texts, int wanted) {
    Learner learner(texts);
    std::vector<Merge> merges;
    Merge merge;
    while (static_cast<int>(merges.size()) < wanted &&
           learner.learn(merge, static_cast<Token>(kByteTokens + merges.size()))) {
        merges.push_back(merge);
    }
    return merges;
}

}  // namespace shardscope::trainer::data
