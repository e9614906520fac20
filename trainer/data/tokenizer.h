// Converts text to numbers and back. A token is a number in [0, vocabulary()) that stands for one or more
// bytes; tokens 0 … 255 are the bytes themselves in every tokenizer here, so that any text can be encoded and
// decode(encode(text)) == text for any bytes, valid UTF-8 or not.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope::trainer::data {

using Token = std::int32_t;

inline constexpr int kByteTokens = 256;

class Tokenizer {
  public:
    using Sink = std::function<void(std::span<const Token>)>;

    virtual ~Tokenizer() = default;

    virtual std::string name() const = 0;  // "bytes" or "bpe"
    virtual int vocabulary() const = 0;    // tokens are 0 … vocabulary() - 1

    // Passes the text's tokens to `sink` in order, a few at a time, so that a large text is not copied.
    virtual void encode(std::string_view text, const Sink& sink) const = 0;
    std::vector<Token> encode(std::string_view text) const;

    // The bytes of one token. Throws std::out_of_range if there is no such token.
    virtual std::string_view entry(Token token) const = 0;

    // The bytes of all, joined. A token may end within a UTF-8 character that the next one completes.
    std::string decode(std::span<const Token> tokens) const;
};

// Every byte is a token.
class ByteTokenizer final : public Tokenizer {
  public:
    ByteTokenizer();

    std::string name() const override { return "bytes"; }
    int vocabulary() const override { return kByteTokens; }
    using Tokenizer::encode;
    void encode(std::string_view text, const Sink& sink) const override;
    std::string_view entry(Token token) const override;

  private:
    std::string bytes_;  // byte i at i
};

}  // namespace shardscope::trainer::data
