// One character class per byte; see words.h.
#include "trainer/data/words.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace shardscope::trainer::data {
namespace {

enum class Class : std::uint8_t { other, letter, digit, space };

constexpr std::array<Class, 256> make_classes() {
    std::array<Class, 256> classes{};
    for (std::size_t byte = 0; byte < 256; ++byte) {
        const bool letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte >= 0x80;
        if (letter) classes[byte] = Class::letter;
        if (byte >= '0' && byte <= '9') classes[byte] = Class::digit;
        if (byte == ' ' || (byte >= '\t' && byte <= '\r')) classes[byte] = Class::space;
    }
    return classes;
}

constexpr std::array<Class, 256> kClasses = make_classes();

Class class_of(char c) {
    return kClasses[static_cast<unsigned char>(c)];
}

// The end of the run of equal classes that contains position `start`, at most `limit`.
std::size_t end_of_run(std::string_view text, std::size_t start, std::size_t limit) {
    std::size_t end = start + 1;
    while (end < limit && class_of(text[end]) == class_of(text[start])) ++end;
    return end;
}

}  // namespace

std::string_view first_word(std::string_view text) {
    const std::size_t limit = std::min(text.size(), kLongestWord);
    if (class_of(text[0]) != Class::space) return text.substr(0, end_of_run(text, 0, limit));

    const bool space_before_word = text[0] == ' ' && limit > 1 && class_of(text[1]) != Class::space;
    if (space_before_word) return text.substr(0, end_of_run(text, 1, limit));

    std::size_t end = end_of_run(text, 0, limit);
    // The last space goes with the word after it.
    if (end < text.size() && class_of(text[end]) != Class::space && text[end - 1] == ' ' && end > 1) --end;
    return text.substr(0, end);
}

}  // namespace shardscope::trainer::data
