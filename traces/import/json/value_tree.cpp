// See value_tree.h. A Ref is a tag in its low 4 bits and, above it, a small integer or an index.
#include "traces/import/json/value_tree.h"

#include <bit>
#include <cstring>
#include <limits>
#include <stdexcept>

namespace shardscope::traces::importer {
namespace {

enum Tag : std::uint64_t {
    kNone = 0,
    kBoolean = 1,
    kSmall = 2,     // the integer itself, 60 bits with sign
    kSigned = 3,    // index into numbers_
    kUnsigned = 4,  // the same, beyond 2^63 - 1
    kHuge = 5,      // the same, a double
    kReal = 6,
    kText = 7,
    kList = 8,
    kDictionary = 9,
};
constexpr int kTagBits = 4;

constexpr ValueRef make(Tag tag, std::uint64_t payload) {
    return static_cast<ValueRef>(payload << kTagBits | tag);
}
constexpr Tag tag_of(ValueRef ref) {
    return static_cast<Tag>(static_cast<std::uint64_t>(ref) & ((1U << kTagBits) - 1));
}
constexpr std::uint64_t index_of(ValueRef ref) {
    return static_cast<std::uint64_t>(ref) >> kTagBits;
}
constexpr std::int64_t small_of(ValueRef ref) {
    return static_cast<std::int64_t>(ref) >> kTagBits;
}
constexpr std::int64_t kSmallMost = std::numeric_limits<std::int64_t>::max() >> kTagBits;

constexpr std::size_t kTreeChunk = std::size_t{1} << 20;

}  // namespace

// --- a value ---------------------------------------------------------------------------------------------

ValueKind Value::kind() const {
    switch (tag_of(ref_)) {
        case kBoolean:
            return ValueKind::boolean;
        case kSmall:
        case kSigned:
        case kUnsigned:
        case kHuge:
            return ValueKind::integer;
        case kReal:
            return ValueKind::real;
        case kText:
            return ValueKind::text;
        case kList:
            return ValueKind::list;
        case kDictionary:
            return ValueKind::dictionary;
        case kNone:
            break;
    }
    return ValueKind::none;
}

std::optional<std::int64_t> Value::integer() const {
    switch (tag_of(ref_)) {
        case kBoolean:
        case kSmall:
            return small_of(ref_);
        case kSigned:
            return static_cast<std::int64_t>(tree_->numbers_[index_of(ref_)]);
        default:
            return std::nullopt;
    }
}

std::optional<std::uint64_t> Value::address() const {
    if (tag_of(ref_) == kUnsigned) return tree_->numbers_[index_of(ref_)];
    const std::optional<std::int64_t> value = integer();
    if (!value || *value < 0) return std::nullopt;
    return static_cast<std::uint64_t>(*value);
}

std::optional<double> Value::real() const {
    switch (tag_of(ref_)) {
        case kHuge:
        case kReal:
            return std::bit_cast<double>(tree_->numbers_[index_of(ref_)]);
        case kUnsigned:
            return static_cast<double>(tree_->numbers_[index_of(ref_)]);
        default:
            break;
    }
    const std::optional<std::int64_t> value = integer();
    return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
}

std::string_view Value::text() const {
    if (tag_of(ref_) != kText) return {};
    const ValueTree::Text& text = tree_->texts_[index_of(ref_)];
    return {text.bytes, static_cast<std::size_t>(text.size)};
}

std::size_t Value::size() const {
    const Tag tag = tag_of(ref_);
    if (tag != kList && tag != kDictionary) return 0;
    const std::size_t size = tree_->containers_[index_of(ref_)].size;
    return tag == kList ? size : size / 2;
}

Value Value::operator[](std::size_t item) const {
    if (!is_list() || item >= size()) return {};
    return {*tree_, tree_->containers_[index_of(ref_)].values[item]};
}

Value Value::key(std::size_t entry) const {
    if (!is_dictionary() || entry >= size()) return {};
    return {*tree_, tree_->containers_[index_of(ref_)].values[2 * entry]};
}

Value Value::value(std::size_t entry) const {
    if (!is_dictionary() || entry >= size()) return {};
    return {*tree_, tree_->containers_[index_of(ref_)].values[2 * entry + 1]};
}

Value Value::operator[](std::string_view wanted) const {
    for (std::size_t entry = is_dictionary() ? size() : 0; entry-- > 0;) {
        const Value name = key(entry);
        if (name.is_text() && name.text() == wanted) return value(entry);
    }
    return {};
}

// --- the tree --------------------------------------------------------------------------------------------

ValueTree::ValueTree() = default;

ValueRef ValueTree::add_boolean(bool value) {
    return make(kBoolean, value ? 1 : 0);
}

ValueRef ValueTree::add_integer(std::int64_t value) {
    if (value >= -kSmallMost && value <= kSmallMost) return make(kSmall, static_cast<std::uint64_t>(value));
    numbers_.push_back(static_cast<std::uint64_t>(value));
    account(sizeof(std::uint64_t));
    return make(kSigned, numbers_.size() - 1);
}

ValueRef ValueTree::add_unsigned(std::uint64_t value) {
    if (value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        return add_integer(static_cast<std::int64_t>(value));
    }
    numbers_.push_back(value);
    account(sizeof(std::uint64_t));
    return make(kUnsigned, numbers_.size() - 1);
}

ValueRef ValueTree::add_huge_integer(double nearly) {
    numbers_.push_back(std::bit_cast<std::uint64_t>(nearly));
    account(sizeof(std::uint64_t));
    return make(kHuge, numbers_.size() - 1);
}

ValueRef ValueTree::add_real(double value) {
    numbers_.push_back(std::bit_cast<std::uint64_t>(value));
    account(sizeof(std::uint64_t));
    return make(kReal, numbers_.size() - 1);
}

ValueRef ValueTree::add_text(std::string_view text) {
    char* bytes = nullptr;
    const ValueRef ref = add_text(text.size(), &bytes);
    if (!text.empty()) std::memcpy(bytes, text.data(), text.size());
    return ref;
}

ValueRef ValueTree::add_text(std::size_t size, char** bytes) {
    *bytes = static_cast<char*>(allocate(size, 1));
    texts_.push_back({*bytes, size});
    account(sizeof(Text));
    return make(kText, texts_.size() - 1);
}

ValueRef ValueTree::add_list() {
    containers_.emplace_back();
    account(sizeof(Container));
    return make(kList, containers_.size() - 1);
}

ValueRef ValueTree::add_dictionary() {
    containers_.emplace_back();
    account(sizeof(Container));
    return make(kDictionary, containers_.size() - 1);
}

std::size_t Value::items_of_tree() const {
    return tree_ == nullptr ? 0 : tree_->items_;
}

std::size_t Value::memory_of_tree() const {
    return tree_ == nullptr ? 0 : tree_->memory_;
}

void ValueTree::append(ValueRef ref, const ValueRef* values, std::size_t count) {
    if (tag_of(ref) == kDictionary) count -= count % 2;
    if (count == 0) return;
    Container& container = containers_[index_of(ref)];
    const std::size_t size = container.size + count;
    constexpr std::size_t kMost = std::numeric_limits<std::uint32_t>::max();
    if (size > kMost) throw std::length_error("a list of more than 4294967295 items");
    if (size > container.capacity) {
        // Most containers are filled by one call and get the exact size; those that grow double.
        const std::size_t capacity =
            container.size == 0 ? count
                                : std::min(kMost, std::max(size, std::size_t{2} * container.capacity));
        auto* grown = static_cast<ValueRef*>(allocate(capacity * sizeof(ValueRef), alignof(ValueRef)));
        if (container.size > 0) std::memcpy(grown, container.values, container.size * sizeof(ValueRef));
        container.values = grown;
        container.capacity = static_cast<std::uint32_t>(capacity);
    }
    std::memcpy(container.values + container.size, values, count * sizeof(ValueRef));
    container.size = static_cast<std::uint32_t>(size);
    items_ += count;
}

void* ValueTree::allocate(std::size_t bytes, std::size_t alignment) {
    const std::size_t skip =
        (alignment - reinterpret_cast<std::uintptr_t>(chunk_at_) % alignment) % alignment;
    if (bytes + skip <= chunk_left_) {
        char* at = chunk_at_ + skip;
        chunk_at_ += skip + bytes;
        chunk_left_ -= skip + bytes;
        return at;
    }
    if (bytes >= kTreeChunk / 4) {  // gets a chunk of its own; the current one stays in use
        chunks_.push_back(std::make_unique_for_overwrite<char[]>(bytes));
        account(bytes);
        return chunks_.back().get();
    }
    chunks_.push_back(std::make_unique_for_overwrite<char[]>(kTreeChunk));
    account(kTreeChunk);
    chunk_at_ = chunks_.back().get() + bytes;
    chunk_left_ = kTreeChunk - bytes;
    return chunks_.back().get();
}

}  // namespace shardscope::traces::importer
