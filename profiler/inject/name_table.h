// Strings that a program registers, each once, numbered from 1: domains and registered strings. Grows on the
// heap, never shrinks. The caller holds a lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "profiler/inject/text.h"

namespace shardscope::profiler::inject {

class NameTable {
  public:
    // The number of the text; `added`: whether it is new. 0 if there is no memory.
    std::uint32_t find_or_add(Text text, bool* added) {
        *added = false;
        if ((count_ + 1) * 2 > slots_size_ && !grow()) return 0;
        std::uint32_t slot = hash(text) & (slots_size_ - 1);
        for (; slots_[slot] != 0; slot = (slot + 1) & (slots_size_ - 1)) {
            const char* known = texts_[slots_[slot] - 1];
            if (std::strlen(known) == text.size && std::memcmp(known, text.data, text.size) == 0) {
                return slots_[slot];
            }
        }
        auto* copy = static_cast<char*>(std::malloc(text.size + 1));
        if (copy == nullptr) return 0;
        std::memcpy(copy, text.data, text.size);
        copy[text.size] = '\0';
        texts_[count_++] = copy;
        slots_[slot] = count_;
        *added = true;
        return count_;
    }

    std::uint32_t size() const { return count_; }
    Text text(std::uint32_t number) const { return {texts_[number - 1], std::strlen(texts_[number - 1])}; }

  private:
    // FNV-1a.
    static std::uint32_t hash(Text text) {
        std::uint32_t h = 2166136261u;
        for (std::size_t i = 0; i < text.size; ++i)
            h = (h ^ static_cast<unsigned char>(text.data[i])) * 16777619u;
        return h;
    }

    bool grow() {
        const std::uint32_t size = slots_size_ == 0 ? 256 : slots_size_ * 2;
        auto* slots = static_cast<std::uint32_t*>(std::calloc(size, sizeof(std::uint32_t)));
        auto* texts = static_cast<char**>(std::realloc(texts_, size / 2 * sizeof(char*)));
        if (texts != nullptr) texts_ = texts;
        if (slots == nullptr || texts == nullptr) {
            std::free(slots);
            return false;
        }
        for (std::uint32_t number = 1; number <= count_; ++number) {
            std::uint32_t slot = hash(text(number)) & (size - 1);
            while (slots[slot] != 0) slot = (slot + 1) & (size - 1);
            slots[slot] = number;
        }
        std::free(slots_);
        slots_ = slots;
        slots_size_ = size;
        return true;
    }

    char** texts_ = nullptr;
    std::uint32_t* slots_ = nullptr;  // open addressing; 0: empty
    std::uint32_t count_ = 0, slots_size_ = 0;
};

}  // namespace shardscope::profiler::inject
