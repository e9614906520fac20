// The bytes of a pickle, with the offset of each. Internal to the library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "traces/import/input/input.h"

namespace shardscope::traces::importer {

// A buffered reader of an Input.
class PickleBytes {
  public:
    explicit PickleBytes(Input& input)
        : input_(input), start_(input.offset()), buffer_(std::size_t{1} << 18) {}

    std::uint64_t offset() const { return start_ + at_; }
    bool end() { return at_ == size_ && !fill(); }

    unsigned char byte() {
        if (at_ == size_ && !fill()) throw cut();
        return static_cast<unsigned char>(buffer_[at_++]);
    }

    template <typename Number>  // little-endian
    Number number() {
        unsigned char bytes[sizeof(Number)];
        read(reinterpret_cast<char*>(bytes), sizeof bytes);
        std::uint64_t value = 0;
        for (std::size_t i = sizeof bytes; i-- > 0;) value = value << 8 | bytes[i];
        return static_cast<Number>(value);
    }

    void read(char* to, std::size_t size);
    // Memory is allocated only as the bytes arrive, whatever `size` promises.
    std::string text(std::uint64_t size);
    // The bytes up to a newline, without it.
    std::string line();

    store::StoreError cut() const;  // the file ends too early
    store::StoreError error(std::uint64_t at, const std::string& sentence) const;

  private:
    bool fill();

    Input& input_;
    std::uint64_t start_;  // offset of the buffer's first byte
    std::vector<char> buffer_;
    std::size_t at_ = 0, size_ = 0;
};

}  // namespace shardscope::traces::importer
