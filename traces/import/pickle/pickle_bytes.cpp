// See pickle_bytes.h.
#include "traces/import/pickle/pickle_bytes.h"

#include <algorithm>
#include <cstring>

namespace shardscope::traces::importer {

void PickleBytes::read(char* to, std::size_t size) {
    while (size > 0) {
        if (at_ == size_ && !fill()) throw cut();
        const std::size_t some = std::min(size, size_ - at_);
        std::memcpy(to, buffer_.data() + at_, some);
        to += some;
        at_ += some;
        size -= some;
    }
}

std::string PickleBytes::text(std::uint64_t size) {
    std::string text;
    while (size > 0) {
        const auto some = static_cast<std::size_t>(std::min<std::uint64_t>(size, 1 << 20));
        const std::size_t had = text.size();
        text.resize(had + some);
        read(text.data() + had, some);
        size -= some;
    }
    return text;
}

std::string PickleBytes::line() {
    std::string line;
    for (;;) {
        if (at_ == size_ && !fill()) throw cut();
        const char* from = buffer_.data() + at_;
        const auto* end = static_cast<const char*>(std::memchr(from, '\n', size_ - at_));
        const auto some = end != nullptr ? static_cast<std::size_t>(end - from) : size_ - at_;
        line.append(from, some);
        at_ += some;
        if (end == nullptr) continue;
        ++at_;
        return line;
    }
}

store::StoreError PickleBytes::cut() const {
    return input_.error(offset(), "the pickle ends here, before its end mark; it was cut off");
}

store::StoreError PickleBytes::error(std::uint64_t at, const std::string& sentence) const {
    return input_.error(at, sentence);
}

bool PickleBytes::fill() {
    start_ += size_;
    at_ = 0;
    size_ = input_.read({buffer_.data(), buffer_.size()});
    return size_ > 0;
}

}  // namespace shardscope::traces::importer
