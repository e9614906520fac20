// Data of any shape in little memory: what a pickle or a JSON file holds, before it becomes rows.
//
// A ValueTree owns all values; a Value is a view of one and must not outlive its tree. A value takes 8 bytes
// where it stands (in a list or dictionary), texts and containers 16 more, once. Values may be shared and may
// contain themselves, as pickles allow: whoever walks a tree goes to a fixed depth. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace shardscope::traces {

class ValueTree;

enum class ValueKind : std::uint8_t { none, boolean, integer, real, text, list, dictionary };

// What a container holds is a Ref; only its tree can say what it means.
enum class ValueRef : std::uint64_t { none = 0 };

class Value {
  public:
    Value() = default;
    Value(const ValueTree& tree, ValueRef ref) : tree_(&tree), ref_(ref) {}

    ValueKind kind() const;
    bool is_none() const { return kind() == ValueKind::none; }
    bool is_list() const { return kind() == ValueKind::list; }  // also tuples and sets
    bool is_dictionary() const { return kind() == ValueKind::dictionary; }
    bool is_text() const { return kind() == ValueKind::text; }

    // The value where it is of that kind (a boolean is an integer, as in Python) and fits; else none.
    std::optional<std::int64_t> integer() const;
    std::optional<std::uint64_t> address() const;  // integers from 0 to 2^64 - 1
    std::optional<double> real() const;            // also of integers
    std::string_view text() const;                 // "" where it is none

    std::size_t size() const;                  // of a list: its items; of a dictionary: its entries; else 0
    Value operator[](std::size_t item) const;  // of a list; a none beyond its end
    Value key(std::size_t entry) const;        // of a dictionary
    Value value(std::size_t entry) const;
    // Of a dictionary: the value of a text key (the last one, where it stands several times); else a none.
    Value operator[](std::string_view key) const;

    // The items of all containers of its tree, each counted once: who finds more, walking, has come to some
    // containers several times.
    std::size_t items_of_tree() const;
    std::size_t memory_of_tree() const;  // bytes: at least 8 for each item, and those of each text

    ValueRef ref() const { return ref_; }  // equal for one value that stands in several places

  private:
    const ValueTree* tree_ = nullptr;
    ValueRef ref_ = ValueRef::none;
};

class ValueTree {
  public:
    ValueTree();
    ValueTree(ValueTree&&) = default;
    ValueTree& operator=(ValueTree&&) = default;
    ValueTree(const ValueTree&) = delete;
    ValueTree& operator=(const ValueTree&) = delete;

    Value root() const { return {*this, root_}; }
    void set_root(ValueRef ref) { root_ = ref; }

    ValueRef add_boolean(bool value);
    ValueRef add_integer(std::int64_t value);
    ValueRef add_unsigned(std::uint64_t value);
    ValueRef add_huge_integer(double nearly);  // beyond 64 bits: known as a real number only
    ValueRef add_real(double value);
    ValueRef add_text(std::string_view text);  // copied
    // Room for a text of `size` bytes, which the caller fills before anybody looks.
    ValueRef add_text(std::size_t size, char** bytes);
    ValueRef add_list();
    ValueRef add_dictionary();

    // To a list items; to a dictionary keys and values in turn (an odd one at the end is left out).
    void append(ValueRef container, const ValueRef* values, std::size_t count);

    std::size_t memory() const { return memory_; }  // bytes that the tree takes

  private:
    friend class Value;
    struct Text {
        const char* bytes;
        std::uint64_t size;
    };
    struct Container {
        ValueRef* values = nullptr;
        std::uint32_t size = 0, capacity = 0;
    };

    void* allocate(std::size_t bytes, std::size_t alignment);
    void account(std::size_t bytes) { memory_ += bytes; }

    ValueRef root_ = ValueRef::none;
    // Deques: growing never copies what is there, so that nothing is ever held twice.
    std::deque<Text> texts_;
    std::deque<Container> containers_;
    std::deque<std::uint64_t> numbers_;  // integers and reals that do not fit a Ref
    std::vector<std::unique_ptr<char[]>> chunks_;
    std::size_t chunk_left_ = 0;
    char* chunk_at_ = nullptr;
    std::size_t memory_ = 0, items_ = 0;
};

}  // namespace shardscope::traces
