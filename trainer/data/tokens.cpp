// Bytes from files, tokens from memory; see tokens.h.
#include "trainer/data/tokens.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>

namespace shardscope::trainer::data {
namespace {

constexpr int kShortVocabulary = 1 << 16;

}  // namespace

void ByteTokens::read(std::int64_t first, int count, Token* out) const {
    std::array<char, 4096> block;
    std::int64_t left = count;
    for (int file = text_->file_at(first); left > 0;) {
        const std::int64_t at = first - text_->start_of(file);
        const std::int64_t here =
            std::min({left, text_->file(file).size() - at, static_cast<std::int64_t>(block.size())});
        if (here == 0) {
            ++file;
            continue;
        }
        text_->file(file).read(at, {block.data(), static_cast<std::size_t>(here)});
        out = std::transform(block.begin(), block.begin() + here, out,
                             [](char byte) { return static_cast<unsigned char>(byte); });
        first += here;
        left -= here;
    }
}

EncodedTokens::EncodedTokens(const TextFiles& text, const Tokenizer& tokenizer) {
    if (tokenizer.vocabulary() > kShortVocabulary) tokens_ = std::vector<std::uint32_t>();
    std::visit(
        [&](auto& tokens) {
            using Short = typename std::decay_t<decltype(tokens)>::value_type;
            for (int file = 0; file < text.files(); ++file) {
                const std::string whole = text.file(file).whole();
                tokenizer.encode(whole, [&](std::span<const Token> some) {
                    for (const Token token : some) tokens.push_back(static_cast<Short>(token));
                });
            }
            tokens.shrink_to_fit();
        },
        tokens_);
}

std::int64_t EncodedTokens::size() const {
    return std::visit([](const auto& tokens) { return static_cast<std::int64_t>(tokens.size()); }, tokens_);
}

void EncodedTokens::read(std::int64_t first, int count, Token* out) const {
    std::visit(
        [&](const auto& tokens) {
            const auto* from = tokens.data() + first;
            for (int i = 0; i < count; ++i) out[i] = static_cast<Token>(from[i]);
        },
        tokens_);
}

}  // namespace shardscope::trainer::data
