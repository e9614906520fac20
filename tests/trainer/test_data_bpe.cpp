// Words, byte-pair vocabularies and their files, compared with a plain trainer that recounts everything at
// each merge.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/traces/temporary_folder.h"
#include "trainer/data/bpe.h"
#include "trainer/data/bpe_training.h"
#include "trainer/data/dataset.h"
#include "trainer/data/source.h"
#include "trainer/data/words.h"
#include "trainer/kernels/random.h"

namespace shardscope::trainer::data {
namespace TEST_FILE {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> words_of(std::string_view text) {
    std::vector<std::string> words;
    while (!text.empty()) {
        words.emplace_back(first_word(text));
        text.remove_prefix(words.back().size());
    }
    return words;
}

std::vector<Merge> learned(std::string_view text, int wanted) {
    return learn_merges({&text, 1}, wanted);
}

// Text of few letters, full of repetitions and of runs of one letter.
std::string babble(std::size_t bytes, std::uint64_t seed) {
    std::string text;
    for (std::size_t i = 0; i < bytes; ++i) text += "aaab cd\n1."[kernels::random_bits(seed, 1, i) % 10];
    return text;
}

std::string random_bytes(std::size_t count) {
    std::string bytes;
    for (std::size_t i = 0; i < count; ++i) bytes += static_cast<char>(kernels::random_bits(5, 2, i));
    return bytes;
}

// The plain way: count all pairs of all words, merge the most frequent, repeat.
std::vector<Merge> learned_plainly(std::string_view text, int wanted) {
    std::vector<std::vector<Token>> words;
    for (const std::string& word : words_of(text)) {
        words.emplace_back();
        for (const char c : word) words.back().push_back(static_cast<unsigned char>(c));
    }
    std::vector<Merge> merges;
    while (static_cast<int>(merges.size()) < wanted) {
        std::map<Merge, int> counts;
        for (const auto& word : words) {
            for (std::size_t i = 0; i + 1 < word.size(); ++i) ++counts[{word[i], word[i + 1]}];
        }
        Merge best;
        int most = 1;
        for (const auto& [pair, count] : counts) {
            if (count > most) {
                best = pair;
                most = count;
            }
        }
        if (most < 2) break;
        const auto token = static_cast<Token>(kByteTokens + merges.size());
        merges.push_back(best);
        for (auto& word : words) {
            std::vector<Token> shorter;
            for (std::size_t i = 0; i < word.size(); ++i) {
                const bool here = i + 1 < word.size() && word[i] == best.left && word[i + 1] == best.right;
                shorter.push_back(here ? token : word[i]);
                i += here;
            }
            word = shorter;
        }
    }
    return merges;
}

TEST(Words, EndWhereTheKindOfCharacterChanges) {
    EXPECT_THAT(words_of("the cat's 42 toys!"), ElementsAre("the", " cat", "'", "s", " 42", " toys", "!"));
    EXPECT_THAT(words_of("x==y;"), ElementsAre("x", "==", "y", ";"));
    EXPECT_THAT(words_of("h\xc3\xa4tte"), ElementsAre("h\xc3\xa4tte")) << "UTF-8 beyond ASCII is letters";
}

TEST(Words, TakeOneSpaceBeforeThem) {
    EXPECT_THAT(words_of("a  b"), ElementsAre("a", " ", " b"));
    EXPECT_THAT(words_of("  b"), ElementsAre(" ", " b"));
    EXPECT_THAT(words_of("a\n\n  b\n"), ElementsAre("a", "\n\n ", " b", "\n"));
    EXPECT_THAT(words_of("a\tb"), ElementsAre("a", "\t", "b"));
    EXPECT_THAT(words_of("a   "), ElementsAre("a", "   "));
    EXPECT_THAT(words_of(" "), ElementsAre(" "));
}

// 150 letters: 64 + 64 + 22; white space likewise.
TEST(Words, AreNeverLongerThanTheirLimit) {
    for (const char c : {'a', ' ', '\0', '7'}) {
        std::vector<std::size_t> sizes;
        for (const std::string& word : words_of(std::string(150, c))) sizes.push_back(word.size());
        EXPECT_THAT(sizes, ElementsAre(64, 64, 22));
    }
    EXPECT_THAT(words_of(" " + std::string(64, 'a')), ElementsAre(" " + std::string(63, 'a'), "a"));
}

TEST(Words, JoinedAreTheText) {
    const std::string text = random_bytes(5000) + babble(5000, 1);
    const std::vector<std::string> words = words_of(text);
    EXPECT_EQ(std::accumulate(words.begin(), words.end(), std::string()), text);
}

TEST(ByteTokenizer, EveryByteIsItsToken) {
    const ByteTokenizer tokenizer;
    EXPECT_EQ(tokenizer.vocabulary(), 256);
    EXPECT_THAT(tokenizer.encode(std::string_view("a\xff\0b", 4)), ElementsAre('a', 255, 0, 'b'));
    const std::string bytes = random_bytes(10000);
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(bytes)), bytes);
    EXPECT_THROW(tokenizer.decode(std::vector<Token>{256}), std::out_of_range);
    EXPECT_THROW(tokenizer.decode(std::vector<Token>{-1}), std::out_of_range);
}

// "low" 5 times, "lower" 2, "newest" 6, "widest" 3 (the example of the paper in bpe.h), each with a line
// feed, which is a word of its own. es: 6 + 3 = 9 times, and st as often: "e" is smaller. Then est (9). Then
// lo and ow (7 each): lo; low.
TEST(BpeTraining, MergesTheMostFrequentPairFirst) {
    std::string text;
    for (const auto& [word, times] : {std::pair{"low", 5}, {"lower", 2}, {"newest", 6}, {"widest", 3}}) {
        for (int i = 0; i < times; ++i) text += std::string(word) + "\n";
    }
    const BpeTokenizer tokenizer(learned(text, 4));
    EXPECT_EQ(tokenizer.entry(256), "es");
    EXPECT_EQ(tokenizer.entry(257), "est");
    EXPECT_EQ(tokenizer.entry(258), "lo");
    EXPECT_EQ(tokenizer.entry(259), "low");
    EXPECT_EQ(tokenizer.vocabulary(), 260);
    EXPECT_THAT(tokenizer.encode("lowest"), ElementsAre(259, 257)) << "a word that the text has not";
}

TEST(BpeTraining, IsWhatRecountingGives) {
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
        const std::string text = babble(1500, seed);
        EXPECT_EQ(learned(text, 120), learned_plainly(text, 120)) << "seed " << seed;
    }
    const std::string runs = std::string(9, 'a') + " " + std::string(6, 'a') + " " + std::string(100, 'b');
    EXPECT_EQ(learned(runs, 50), learned_plainly(runs, 50));
    EXPECT_EQ(learned(random_bytes(3000), 400), learned_plainly(random_bytes(3000), 400));
}

TEST(BpeTraining, EndsWhenNoPairOccursTwice) {
    EXPECT_TRUE(learned("", 10).empty());
    EXPECT_TRUE(learned("abcdef", 10).empty());
    EXPECT_EQ(learned("abab", 10), (std::vector<Merge>{{'a', 'b'}}));
    // No word extends from one text into the next.
    const std::string_view apart[] = {"a", "b", "a", "b"};
    EXPECT_TRUE(learn_merges(apart, 10).empty());
}

TEST(BpeTokenizer, AnyBytesComeBack) {
    const std::string text = babble(3000, 1);
    const BpeTokenizer tokenizer(learned(text, 200));
    for (const std::string& bytes : {text, babble(3000, 2), random_bytes(20000), std::string(1000, 'a'),
                                     std::string(1000, ' '), std::string("\0\0\xff\xfe", 4), std::string()}) {
        EXPECT_EQ(tokenizer.decode(tokenizer.encode(bytes)), bytes);
    }
    EXPECT_LT(tokenizer.encode(text).size(), text.size() * 2 / 3)
        << "200 merges shorten a text of ten letters";
}

// The definition: apply every merge in its order to the whole word.
TEST(BpeTokenizer, EncodesAsTheMergesInTheirOrderWould) {
    const std::vector<Merge> merges = learned(babble(3000, 1), 200);
    const BpeTokenizer tokenizer(merges);
    for (const std::string& word : words_of(babble(5000, 3) + std::string(64, 'a'))) {
        std::vector<Token> tokens;
        for (const char c : word) tokens.push_back(static_cast<unsigned char>(c));
        for (std::size_t m = 0; m < merges.size(); ++m) {
            for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
                if (tokens[i] != merges[m].left || tokens[i + 1] != merges[m].right) continue;
                tokens[i] = static_cast<Token>(kByteTokens + m);
                tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(i) + 1);
            }
        }
        ASSERT_EQ(tokenizer.encode(word), tokens) << '"' << word << '"';
    }
}

TEST(BpeTokenizer, RefusesImpossibleMerges) {
    EXPECT_THROW(BpeTokenizer({{'a', 256}}), std::invalid_argument) << "not there yet";
    EXPECT_THROW(BpeTokenizer({{-1, 'a'}}), std::invalid_argument);
    EXPECT_THROW(BpeTokenizer({{'a', 'b'}, {'a', 'b'}}), std::invalid_argument) << "twice";
    std::vector<Merge> doubling = {{'a', 'a'}};
    for (Token token = 256; token < 261; ++token) doubling.push_back({token, token});
    EXPECT_EQ(BpeTokenizer(doubling).entry(261).size(), 64U);
    doubling.push_back({261, 261});
    EXPECT_THROW(BpeTokenizer{doubling}, std::invalid_argument) << "an entry of 128 bytes";
    EXPECT_THROW(BpeTokenizer({{'a', 'b'}}).entry(257), std::out_of_range);
}

class BpeFile : public ::testing::Test {
  protected:
    static std::string error_of(const std::string& text) {
        try {
            bpe_from_text(text, "file");
        } catch (const DataError& error) {
            return error.what();
        }
        return "no error";
    }

    traces::TemporaryFolder temporary_;
    const fs::path folder_ = temporary_.path();
    const BpeTokenizer tokenizer_{{{'a', 'b'}, {256, ' '}}};
};

TEST_F(BpeFile, ItsTextGivesTheSameMerges) {
    for (const BpeTokenizer& tokenizer : {tokenizer_, BpeTokenizer({})})
        EXPECT_EQ(bpe_from_text(to_text(tokenizer), "file").merges(), tokenizer.merges());
    EXPECT_THAT(to_text(tokenizer_),
                ::testing::StartsWith("shardscope-bpe 1\nmerges 2\n97 98\n256 32\ncheck "));
}

TEST_F(BpeFile, ATruncatedOrChangedFileIsRefused) {
    const std::string whole = to_text(tokenizer_);
    EXPECT_EQ(error_of(whole), "no error");
    for (std::size_t length = 0; length < whole.size(); ++length) {
        EXPECT_NE(error_of(whole.substr(0, length)), "no error") << "cut at " << length;
        std::string changed = whole;
        changed[length] = changed[length] == '1' ? '2' : '1';
        EXPECT_NE(error_of(changed), "no error") << "changed at " << length;
    }
}

TEST_F(BpeFile, SaysWhereItIsDamaged) {
    constexpr const char* kEnd = "; take an intact copy of it or train the vocabulary again";
    EXPECT_EQ(error_of("{}"),
              std::string("file: is not a vocabulary: its first line is not \"shardscope-bpe 1\"") + kEnd);
    EXPECT_EQ(error_of("shardscope-bpe 1\nmerges two\n"),
              std::string("file: line 2: is not \"merges NUMBER\"") + kEnd);
    EXPECT_EQ(error_of("shardscope-bpe 1\nmerges 2\n97 98\n"),
              std::string("file: line 4: the file ends where a merge is expected") + kEnd);
    EXPECT_EQ(error_of("shardscope-bpe 1\nmerges 1\n97 9x\n"),
              std::string("file: line 3: is not a merge (two tokens)") + kEnd);
    EXPECT_EQ(error_of("shardscope-bpe 1\nmerges 1\n97 99999999999\n"),
              std::string("file: line 3: is not a merge (two tokens)") + kEnd);
    EXPECT_EQ(error_of("shardscope-bpe 1\nmerges 1\n97 98\ncheck 0123456789abcdef\n"),
              std::string("file: line 4: the checksum does not match: a line before it was changed") + kEnd);
    EXPECT_EQ(error_of(to_text(tokenizer_) + "x"),
              std::string("file: line 5: the file continues after the checksum") + kEnd);
    EXPECT_THAT(error_of("shardscope-bpe 1\nmerges 2000000000\n97 98\n"), HasSubstr("line 4"));
    const std::string impossible = "shardscope-bpe 1\nmerges 1\n300 98\n";
    EXPECT_THAT(
        error_of(impossible + "check " + fmt::format("{:016x}", kernels::stream_of(impossible)) + "\n"),
        HasSubstr("merge 0 joins 300 and 98"));
}

TEST_F(BpeFile, ATextIsTrainedOnInItsTokens) {
    const std::string path = (folder_ / "text").string();
    const std::string text = babble(4000, 4);
    std::ofstream(path, std::ios::binary) << text;
    const TextSource source = open_text({.path = path, .context = 8, .vocabulary = 300, .validation = 0.1});
    EXPECT_EQ(source.tokenizer->vocabulary(), 300);
    const std::vector<Token> tokens = source.tokenizer->encode(text);
    const auto held_out = static_cast<std::int64_t>(std::llround(0.1 * static_cast<double>(tokens.size())));
    EXPECT_EQ(source.validation->part().count, held_out);
    EXPECT_EQ(source.train->part().count, static_cast<std::int64_t>(tokens.size()) - held_out);
    std::vector<Token> input(8), target(8);
    for (int sample = 0; sample < 5; ++sample) {
        source.train->fill(sample, 1, input.data(), target.data());
        const auto start = tokens.begin() + source.train->position_of(sample);
        EXPECT_TRUE(std::equal(input.begin(), input.end(), start));
        EXPECT_TRUE(std::equal(target.begin(), target.end(), start + 1));
    }
    // Uses a checkpoint's vocabulary instead of training a new one.
    const TextSource other =
        open_text({.path = path,
                   .context = 8,
                   .tokenizer = std::make_shared<BpeTokenizer>(std::vector<Merge>{{'a', 'a'}})});
    EXPECT_EQ(other.tokenizer->vocabulary(), 257);
    EXPECT_GT(other.train->samples(), source.train->samples());
}

TEST_F(BpeFile, AVocabularyThatTheTextCannotGiveIsRefused) {
    const auto error_of_text = [&](const std::string& text, int vocabulary, int context = 2) {
        const std::string path = (folder_ / "text").string();
        std::ofstream(path, std::ios::binary) << text;
        try {
            open_text({.path = path, .context = context, .vocabulary = vocabulary});
        } catch (const DataError& error) {
            return std::string(error.what());
        }
        return std::string("no error");
    };
    const std::string path = (folder_ / "text").string();
    EXPECT_EQ(error_of_text("abab\n", 257), "no error");
    EXPECT_EQ(error_of_text("abab\n", 300), "model.vocabulary: 300 is more than " + path +
                                                " gives: no pair occurs twice any more after 257 entries; "
                                                "set it to at most 257, or name a longer "
                                                "text");
    EXPECT_EQ(
        error_of_text("abcdef", 300),
        "model.vocabulary: 300 is more than " + path +
            " gives: no pair of bytes occurs twice in its words; set it to 0 (bytes), or name a longer text");
    EXPECT_THAT(error_of_text("abab", 256), HasSubstr("model.vocabulary: 256 is too small"));
    EXPECT_THAT(error_of_text("", 300), HasSubstr("is empty"));
    EXPECT_EQ(error_of_text("abab\n", 257, 3),  // ab, ab, line feed: 3 tokens
              "data.path: " + path +
                  " has 3 tokens, and a sample needs model.context + 1 = 4; name a longer text or make "
                  "model.context "
                  "smaller");
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::data
