// Compact storage for data of any shape: the content of a pickle or a JSON file before it becomes rows.
//
// A ValueTree owns all values; a Value is a view of one and must not outlive its tree. A value takes 8 bytes
// in each list or dictionary that contains it; a text or container takes 16 more, once. Values may be shared
// and may contain themselves, as pickles allow, so code that walks a tree must limit its depth. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace shardscope::traces::importer {

class ValueTree;

enum class ValueKind : std::uint8_t { none, boolean, integer, real, text, list, dictionary };

// An item of a container; only its tree can interpret it.
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

    // The value if it is of that kind (a boolean is an integer, as in Python) and fits, otherwise empty.
    std::optional<std::int64_t> integer() const;
    std::optional<std::uint64_t> address() const;  // integers from 0 to 2^64 - 1
    std::optional<double> real() const;            // also for integers
    std::string_view text() const;                 // "" if it is not a text

    std::size_t size() const;                  // items of a list, entries of a dictionary, else 0
    Value operator[](std::size_t item) const;  // of a list; none beyond its end
    Value key(std::size_t entry) const;        // of a dictionary
    Value value(std::size_t entry) const;
    // The value of a dictionary's text key (the last one, if the key occurs several times), otherwise
    // none.
    Value operator[](std::string_view key) const;

    // The number of items of all containers of its tree, each counted once: a walk that finds more has
    // visited some containers several times.
    std::size_t items_of_tree() const;
    std::size_t memory_of_tree() const;  // bytes: at least 8 for each item, and those of each text

    ValueRef ref() const { return ref_; }  // the same wherever one value is shared

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
    ValueRef add_huge_integer(double nearly);  // beyond 64 bits: kept as a real number
    ValueRef add_real(double value);
    ValueRef add_text(std::string_view text);  // copied
    // Makes room for a text of `size` bytes, which the caller fills before the text is read.
    ValueRef add_text(std::size_t size, char** bytes);
    ValueRef add_list();
    ValueRef add_dictionary();

    // Appends items to a list, or keys and values in turn to a dictionary (an odd one at the end is dropped).
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
    // Deques, because growing one never copies its content: nothing is in memory twice.
    std::deque<Text> texts_;
    std::deque<Container> containers_;
    std::deque<std::uint64_t> numbers_;  // integers and reals that do not fit a Ref
    std::vector<std::unique_ptr<char[]>> chunks_;
    std::size_t chunk_left_ = 0;
    char* chunk_at_ = nullptr;
    std::size_t memory_ = 0, items_ = 0;
};

}  // namespace shardscope::traces::importer
