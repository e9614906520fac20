// Code that all tokenizers share, and the simplest tokenizer; see tokenizer.h.
#include "trainer/data/tokenizer.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include <fmt/core.h>

namespace shardscope::trainer::data {

std::vector<Token> Tokenizer::encode(std::string_view text) const {
    std::vector<Token> tokens;
    encode(text, [&](std::span<const Token> some) { tokens.insert(tokens.end(), some.begin(), some.end()); });
    return tokens;
}

std::string Tokenizer::decode(std::span<const Token> tokens) const {
    std::string text;
    for (const Token token : tokens) text += entry(token);
    return text;
}

ByteTokenizer::ByteTokenizer() {
    for (int byte = 0; byte < kByteTokens; ++byte) bytes_ += static_cast<char>(byte);
}

void ByteTokenizer::encode(std::string_view text, const Sink& sink) const {
    std::array<Token, 4096> block;
    while (!text.empty()) {
        const std::size_t count = std::min(text.size(), block.size());
        std::transform(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(count), block.begin(),
                       [](char c) { return static_cast<unsigned char>(c); });
        sink({block.data(), count});
        text.remove_prefix(count);
    }
}

std::string_view ByteTokenizer::entry(Token token) const {
    if (token < 0 || token >= kByteTokens) {
        throw std::out_of_range(fmt::format("token {} is not in a vocabulary of 256 bytes", token));
    }
    return std::string_view(bytes_).substr(static_cast<std::size_t>(token), 1);
}

}  // namespace shardscope::trainer::data
