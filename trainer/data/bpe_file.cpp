// A vocabulary as text; see bpe.h.
#include <charconv>
#include <stdexcept>
#include <system_error>

#include <fmt/core.h>

#include "trainer/data/bpe.h"
#include "trainer/data/dataset.h"
#include "trainer/kernels/random.h"

namespace shardscope::trainer::data {
namespace {

constexpr std::string_view kFirstLine = "shardscope-bpe 1";
constexpr const char* kWhatToDo = "take an intact copy of it or train the vocabulary again";

std::string check_line(std::string_view before) {
    return fmt::format("check {:016x}", kernels::stream_of(before));
}

// Lines of a text, counted, for messages.
class Lines {
  public:
    Lines(std::string_view text, const std::string& name) : text_(text), name_(name) {}

    std::string_view next(const char* expected) {
        ++number_;
        const std::size_t end = text_.find('\n', position_);
        if (end == std::string_view::npos) fail(fmt::format("the file ends where {} is expected", expected));
        const std::string_view line = text_.substr(position_, end - position_);
        position_ = end + 1;
        return line;
    }
    bool at_end() const { return position_ == text_.size(); }
    std::size_t position() const { return position_; }

    [[noreturn]] void fail(const std::string& what) const {
        throw DataError(fmt::format("{}: line {}: {}; {}", name_, number_, what, kWhatToDo));
    }

  private:
    std::string_view text_;
    const std::string& name_;
    std::size_t position_ = 0;
    int number_ = 0;
};

// Takes a number off the front of the line.
bool take_number(std::string_view& line, Token& number) {
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
    if (error != std::errc() || number < 0) return false;
    line.remove_prefix(static_cast<std::size_t>(end - line.data()));
    return true;
}

bool take(std::string_view& line, std::string_view word) {
    if (!line.starts_with(word)) return false;
    line.remove_prefix(word.size());
    return true;
}

}  // namespace

std::string to_text(const BpeTokenizer& tokenizer) {
    std::string text = fmt::format("{}\nmerges {}\n", kFirstLine, tokenizer.merges().size());
    for (const Merge& merge : tokenizer.merges()) text += fmt::format("{} {}\n", merge.left, merge.right);
    return text + check_line(text) + "\n";
}

BpeTokenizer bpe_from_text(std::string_view text, const std::string& name) {
    if (!text.starts_with(kFirstLine)) {
        throw DataError(fmt::format("{}: is not a vocabulary: its first line is not \"{}\"; {}", name,
                                    kFirstLine, kWhatToDo));
    }
    Lines lines(text, name);
    if (lines.next("the kind of file") != kFirstLine) lines.fail("this version cannot be read");
    std::string_view line = lines.next("the number of merges");
    Token count = 0;
    if (!take(line, "merges ") || !take_number(line, count) || !line.empty()) {
        lines.fail("is not \"merges NUMBER\"");
    }
    std::vector<Merge> merges;
    for (Token i = 0; i < count; ++i) {
        line = lines.next("a merge");
        Merge merge;
        if (!take_number(line, merge.left) || !take(line, " ") || !take_number(line, merge.right) ||
            !line.empty()) {
            lines.fail("is not a merge (two tokens)");
        }
        merges.push_back(merge);
    }
    const std::string expected = check_line(text.substr(0, lines.position()));
    if (lines.next("the check") != expected)
        lines.fail("the checksum does not match: a line before it was changed");
    if (!lines.at_end()) lines.fail("the file continues after the checksum");
    try {
        return BpeTokenizer(std::move(merges));
    } catch (const std::invalid_argument& error) {
        throw DataError(fmt::format("{}: {}; {}", name, error.what(), kWhatToDo));
    }
}

}  // namespace shardscope::trainer::data
