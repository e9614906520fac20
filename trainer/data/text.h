// Text, byte by byte: a sample is a window of context + 1 bytes; its first `context` bytes are the tokens
// (0…255), its last `context` bytes the targets: each token's successor. The whole text is held in memory,
// read once.
#pragma once

#include <cstdint>
#include <string>

#include "trainer/data/dataset.h"

namespace shardscope::trainer {

class TextDataset final : public Dataset {
  public:
    // `path` is a file, or a folder whose files are joined in the order of their names; in a folder, symbolic
    // links (they would repeat a text), hidden files and sub-folders are passed over. Throws DataError: not
    // there, not readable, no text, or fewer than context + 1 bytes of it.
    TextDataset(const std::string& path, std::int64_t seed, int context);

    std::int64_t input_bytes() const override;
    std::int64_t target_bytes() const override;
    void fill(std::int64_t first_sample, int count, void* input, void* target) const override;

    // tokens and targets [count,context].
    void fill(std::int64_t first_sample, int count, std::int32_t* tokens, std::int32_t* targets) const;

    // Where the window of a sample starts in the text.
    std::int64_t position_of(std::int64_t sample) const;

    const std::string& text() const { return text_; }
    int files() const { return files_; }

  private:
    std::uint64_t seed_;
    int context_;
    std::string text_;
    int files_ = 0;
};

}  // namespace shardscope::trainer
