// A text as a row of tokens. Immutable, so any number of threads may read it.
#pragma once

#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "trainer/data/text_files.h"
#include "trainer/data/tokenizer.h"

namespace shardscope::trainer::data {

class TokenSequence {
  public:
    virtual ~TokenSequence() = default;

    virtual std::int64_t size() const = 0;

    // Reads tokens first … first + count - 1, which must all be within [0, size()).
    virtual void read(std::int64_t first, int count, Token* out) const = 0;
};

// The bytes of the files, read on request.
class ByteTokens final : public TokenSequence {
  public:
    explicit ByteTokens(std::shared_ptr<const TextFiles> text) : text_(std::move(text)) {}

    std::int64_t size() const override { return text_->bytes(); }
    void read(std::int64_t first, int count, Token* out) const override;

  private:
    std::shared_ptr<const TextFiles> text_;
};

// The files, encoded once with a tokenizer; each is in memory as a whole while it is encoded. 2 bytes per
// token up to a vocabulary of 65,536, else 4.
class EncodedTokens final : public TokenSequence {
  public:
    EncodedTokens(const TextFiles& text, const Tokenizer& tokenizer);

    std::int64_t size() const override;
    void read(std::int64_t first, int count, Token* out) const override;

  private:
    std::variant<std::vector<std::uint16_t>, std::vector<std::uint32_t>> tokens_;
};

}  // namespace shardscope::trainer::data
