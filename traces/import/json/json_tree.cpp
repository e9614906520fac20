#include "traces/import/json/json_tree.h"

#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace shardscope::traces::importer {
namespace {

// The bytes of an Input, one after the other.
class Characters {
  public:
    explicit Characters(Input& input) : input_(input), buffer_(std::size_t{1} << 16) { fill(); }
    bool end() const { return at_ == size_; }
    char current() const { return buffer_[at_]; }
    void next() {
        if (++at_ == size_) fill();
    }

  private:
    void fill() {
        at_ = 0;
        size_ = input_.read({buffer_.data(), buffer_.size()});
    }
    Input& input_;
    std::vector<char> buffer_;
    std::size_t at_ = 0, size_ = 0;
};

// An input iterator over Characters for the parser; a default-constructed one is the end.
class CharacterIterator {
  public:
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = char;

    CharacterIterator() = default;
    explicit CharacterIterator(Characters& characters) : characters_(&characters) {}
    char operator*() const { return characters_->current(); }
    CharacterIterator& operator++() {
        characters_->next();
        return *this;
    }
    bool operator==(const CharacterIterator& other) const { return at_end() == other.at_end(); }
    bool operator!=(const CharacterIterator& other) const { return !(*this == other); }

  private:
    bool at_end() const { return characters_ == nullptr || characters_->end(); }
    Characters* characters_ = nullptr;
};

using Json = nlohmann::json;

constexpr std::size_t kMostDepth = 1000;

// Builds the tree from the parser's events; the tree is valid even when they stop early.
class TreeBuilder {
  public:
    explicit TreeBuilder(ValueTree& tree) : tree_(tree) {}

    bool null() { return put(ValueRef::none); }
    bool boolean(bool value) { return put(tree_.add_boolean(value)); }
    bool number_integer(Json::number_integer_t value) { return put(tree_.add_integer(value)); }
    bool number_unsigned(Json::number_unsigned_t value) { return put(tree_.add_unsigned(value)); }
    bool number_float(Json::number_float_t value, const std::string&) { return put(tree_.add_real(value)); }
    bool string(std::string& value) { return put(tree_.add_text(value)); }
    bool binary(Json::binary_t&) { return put(ValueRef::none); }
    bool start_object(std::size_t) { return open(tree_.add_dictionary(), true); }
    bool end_object() { return close(); }
    bool start_array(std::size_t) { return open(tree_.add_list(), false); }
    bool end_array() { return close(); }
    bool key(std::string& value) {
        open_.back().key = tree_.add_text(value);
        return true;
    }
    bool parse_error(std::size_t at, const std::string&, const nlohmann::detail::exception& error) {
        fault_at_ = at;
        fault_ = error.what();
        return false;
    }

    const std::string& fault() const { return fault_; }
    std::size_t fault_at() const { return fault_at_; }

  private:
    struct Open {
        ValueRef container;
        bool dictionary;
        ValueRef key = ValueRef::none;
    };

    bool put(ValueRef value) {
        if (open_.empty()) {
            tree_.set_root(value);
        } else if (open_.back().dictionary) {
            const ValueRef entry[] = {open_.back().key, value};
            tree_.append(open_.back().container, entry, 2);
        } else {
            tree_.append(open_.back().container, &value, 1);
        }
        return true;
    }
    bool open(ValueRef container, bool dictionary) {
        if (open_.size() == kMostDepth) {
            fault_ = fmt::format("values are nested more than {} levels deep", kMostDepth);
            return false;
        }
        put(container);
        open_.push_back({container, dictionary});
        return true;
    }
    bool close() {
        open_.pop_back();
        return true;
    }

    ValueTree& tree_;
    std::vector<Open> open_;
    std::string fault_;
    std::size_t fault_at_ = 0;
};

}  // namespace

ParsedJson parse_json(Input& input, bool partial) {
    ParsedJson result;
    const std::uint64_t start = input.offset();
    Characters characters(input);
    TreeBuilder builder(result.tree);
    const bool whole = Json::sax_parse(CharacterIterator(characters), CharacterIterator(), &builder);
    if (whole) return result;
    std::string text = builder.fault();
    // Keeps the end of "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error ...".
    if (const std::size_t at = text.find("syntax error"); at != std::string::npos) text = text.substr(at);
    const store::StoreError error = input.error(start + builder.fault_at(), "the JSON is damaged: " + text);
    if (!partial) throw error;
    result.damage = error.what();
    return result;
}

}  // namespace shardscope::traces::importer
