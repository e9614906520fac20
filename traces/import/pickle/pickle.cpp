// See pickle.h.
#include "traces/import/pickle/pickle.h"

#include <algorithm>
#include <array>
#include <bit>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "traces/import/pickle/pickle_bytes.h"
#include "traces/import/pickle/pickle_values.h"
#include "traces/schema/text.h"

namespace shardscope::traces::importer {
namespace {

// --- opcodes that are refused ----------------------------------------------------------------------------

// Opcodes that do more than hold data, with pickletools' names.
constexpr auto kRefused = std::to_array<std::pair<unsigned char, const char*>>({{'c', "GLOBAL"},
                                                                                {'R', "REDUCE"},
                                                                                {'b', "BUILD"},
                                                                                {'i', "INST"},
                                                                                {'o', "OBJ"},
                                                                                {'P', "PERSID"},
                                                                                {'Q', "BINPERSID"},
                                                                                {0x81, "NEWOBJ"},
                                                                                {0x82, "EXT1"},
                                                                                {0x83, "EXT2"},
                                                                                {0x84, "EXT4"},
                                                                                {0x92, "NEWOBJ_EX"},
                                                                                {0x93, "STACK_GLOBAL"},
                                                                                {0x97, "NEXT_BUFFER"},
                                                                                {0x98, "READONLY_BUFFER"}});

const char* refused_name(unsigned char opcode) {  // null for all others
    for (const auto& [refused, name] : kRefused) {
        if (refused == opcode) return name;
    }
    return nullptr;
}

// --- the machine -----------------------------------------------------------------------------------------

class Machine {
  public:
    Machine(Input& input, const PickleOptions& options) : bytes_(input), options_(options) {}

    ParsedPickle run() {
        ParsedPickle result;
        try {
            if (bytes_.end()) throw bytes_.cut();
            while (step()) {
            }
            tree_.set_root(pop());
        } catch (const store::StoreError& fault) {
            if (!options_.partial || refused_) throw;
            result.damage = fault.what();
            tree_.set_root(what_there_is());
        }
        result.tree = std::move(tree_);
        return result;
    }

  private:
    // Executes one opcode; false at the end mark.
    bool step() {
        opcode_at_ = bytes_.offset();
        const unsigned char opcode = bytes_.byte();
        switch (opcode) {
            case '.':
                return false;
            // The protocol's header and frames, which do not change what is read.
            case 0x80:
                if (const unsigned char protocol = bytes_.byte(); protocol > 5) {
                    throw fault(fmt::format("the pickle is of protocol {}, and 0 to 5 are known", protocol));
                }
                break;
            case 0x95:
                bytes_.number<std::uint64_t>();
                break;
            // Numbers.
            case 'N':
                push(ValueRef::none);
                break;
            case 0x88:
                push(tree_.add_boolean(true));
                break;
            case 0x89:
                push(tree_.add_boolean(false));
                break;
            case 'K':
                push(tree_.add_integer(bytes_.byte()));
                break;
            case 'M':
                push(tree_.add_integer(bytes_.number<std::uint16_t>()));
                break;
            case 'J':
                push(tree_.add_integer(bytes_.number<std::int32_t>()));
                break;
            case 0x8a:
                push(add_long_integer(tree_, bytes_.text(bytes_.byte())));
                break;
            case 0x8b:
                push(add_long_integer(tree_, bytes_.text(length<std::uint32_t>(0x7FFFFFFF))));
                break;
            case 'I':
            case 'L':
                push(known(add_integer_line(tree_, bytes_.line()),
                           "a line that should be a whole number is not one"));
                break;
            case 'F':
                push(tree_.add_real(
                    known(real_line(bytes_.line()), "a line that should be a number is not one")));
                break;
            case 'G':
                push(tree_.add_real(big_endian_real()));
                break;
            // Texts; bytes are read as texts.
            case 0x8c:
            case 'U':
            case 'C':
                text(bytes_.byte());
                break;
            case 'X':
            case 'B':
                text(bytes_.number<std::uint32_t>());
                break;
            case 'T':
                text(length<std::uint32_t>(0x7FFFFFFF));
                break;
            case 0x8d:
            case 0x8e:
            case 0x96:
                text(bytes_.number<std::uint64_t>());
                break;
            case 'V':
                push(tree_.add_text(unicode_line(bytes_.line())));
                break;
            case 'S':
                push(tree_.add_text(known(string_line(bytes_.line()), "the text of a STRING has no quotes")));
                break;
            // Containers.
            case ']':
            case 0x8f:
                push(tree_.add_list());
                break;
            case '}':
                push(tree_.add_dictionary());
                break;
            case ')':
                push(tree_.add_list());
                break;
            case 0x85:
            case 0x86:
            case 0x87:
                tuple(opcode - 0x84U);
                break;
            case '(':
                if (marks_.size() >= options_.most_marks) {
                    throw fault(fmt::format("the pickle nests deeper than {} levels", options_.most_marks));
                }
                marks_.push_back(stack_.size());
                break;
            case 't':
            case 'l':
            case 0x91:
                close(tree_.add_list());
                break;
            case 'd':
                close(tree_.add_dictionary());
                break;
            case 'a':
                append(1, ValueKind::list);
                break;
            case 's':
                append(2, ValueKind::dictionary);
                break;
            case 'e':
            case 0x90:
                append(since_mark(), ValueKind::list);
                break;
            case 'u':
                append(since_mark(), ValueKind::dictionary);
                break;
            // Stack and memo.
            case '0':
                if (stack_.size() == floor() && !marks_.empty()) {
                    marks_.pop_back();
                } else {
                    pop();
                }
                break;
            case '1':
                stack_.resize(stack_.size() - since_mark());
                break;
            case '2':
                push(top());
                break;
            case 0x94:
                memo_.push_back(top());
                break;
            case 'q':
                put(bytes_.byte());
                break;
            case 'r':
                put(bytes_.number<std::uint32_t>());
                break;
            case 'p':
                put(memo_line());
                break;
            case 'h':
                push(get(bytes_.byte()));
                break;
            case 'j':
                push(get(bytes_.number<std::uint32_t>()));
                break;
            case 'g':
                push(get(memo_line()));
                break;
            default:
                if (options_.classes.empty() || !make(opcode)) throw refusal(opcode);
        }
        return true;
    }

    // --- objects of the classes that may occur -----------------------------------------------------------

    // Executes an opcode that names or makes one; false for all others.
    bool make(unsigned char opcode) {
        switch (opcode) {
            case 'c': {
                const std::string module = bytes_.line();
                name(opcode, module + '.' + bytes_.line());
                return true;
            }
            case 0x93: {
                const std::string last(text_on_top()), module(text_on_top());
                name(opcode, module + '.' + last);
                return true;
            }
            case 'R':
            case 0x81: {
                const ValueRef arguments = pop(), callee = pop();
                push(list_of({callee, arguments}));
                return true;
            }
            case 'b': {
                const ValueRef state = pop(), object = top();
                if (Value(tree_, object).size() != 2 || !Value(tree_, object).is_list())
                    throw fault("the pickle gives a state to what is not an object; it is damaged");
                tree_.append(object, &state, 1);
                return true;
            }
            case 'Q':
                if (persistent_ == ValueRef::none) persistent_ = tree_.add_text("persistent");
                push(list_of({persistent_, pop()}));
                return true;
            default:
                return false;
        }
    }

    void name(unsigned char opcode, const std::string& full) {
        const auto& known = options_.classes;
        if (std::find(known.begin(), known.end(), full) == known.end()) throw refusal(opcode, full);
        push(tree_.add_text(full));
    }
    std::string_view text_on_top() { return Value(tree_, pop()).text(); }
    ValueRef list_of(std::initializer_list<ValueRef> items) {
        const ValueRef list = tree_.add_list();
        tree_.append(list, items.begin(), items.size());
        return list;
    }

    store::StoreError fault(const std::string& sentence) const { return bytes_.error(opcode_at_, sentence); }

    store::StoreError refusal(unsigned char opcode, std::string import = "") {
        const char* name = refused_name(opcode);
        if (name == nullptr) {
            return fault(fmt::format(
                "0x{:02x} is not an opcode of a pickle; the file is damaged or not a pickle", opcode));
        }
        refused_ = true;
        if (import.empty() && (opcode == 'c' || opcode == 'i')) {
            import = bytes_.line();
            import += '.';
            import += bytes_.line();
        } else if (import.empty() && opcode == 0x93 && stack_.size() >= 2) {
            import = Value(tree_, stack_[stack_.size() - 2]).text();
            import += '.';
            import += Value(tree_, stack_.back()).text();
        }
        constexpr std::size_t kShown = 120;
        if (import.size() > kShown) import = import.substr(0, kShown) + "...";
        for (char& c : import) {
            if (c < ' ' || c > '~') c = '?';
        }
        return fault(fmt::format("the opcode {} would {}, and {}", name,
                                 import.empty() ? "call or import Python code" : "import " + import,
                                 options_.classes.empty()
                                     ? "only pickles of plain data are read; a memory snapshot or a flight "
                                       "recorder's dump of PyTorch has no such opcode"
                                     : "a file of this format names other classes only"));
    }

    // --- stack -------------------------------------------------------------------------------------------

    // The index of the first item above the last mark.
    std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }

    void push(ValueRef ref) { stack_.push_back(ref); }
    ValueRef top() const {
        if (stack_.size() <= floor())
            throw fault("an opcode needs a value, but the pickle's stack is empty; it is damaged");
        return stack_.back();
    }
    ValueRef pop() {
        const ValueRef ref = top();
        stack_.pop_back();
        return ref;
    }
    // Removes the last mark and returns the number of items above it.
    std::size_t since_mark() {
        if (marks_.empty()) throw fault("the pickle closes what it has not opened; it is damaged");
        const std::size_t count = stack_.size() - marks_.back();
        marks_.pop_back();
        return count;
    }

    // Moves the last `count` items into the container below them.
    void append(std::size_t count, ValueKind kind) {
        if (stack_.size() - floor() < count + 1) {
            throw fault("the pickle adds items to nothing; it is damaged");
        }
        const ValueRef container = stack_[stack_.size() - count - 1];
        if (Value(tree_, container).kind() != kind) {
            throw fault("the pickle adds items to what is not a list or dictionary; it is damaged");
        }
        if (kind == ValueKind::dictionary && count % 2 != 0) {
            throw fault("the pickle has a key without a value; it is damaged");
        }
        tree_.append(container, stack_.data() + stack_.size() - count, count);
        stack_.resize(stack_.size() - count);
    }

    void tuple(std::size_t count) {
        if (stack_.size() - floor() < count) throw fault("the pickle has too few items for a tuple");
        const ValueRef list = tree_.add_list();
        tree_.append(list, stack_.data() + stack_.size() - count, count);
        stack_.resize(stack_.size() - count);
        push(list);
    }

    void close(ValueRef container) {
        const std::size_t count = since_mark();
        tree_.append(container, stack_.data() + stack_.size() - count, count);
        stack_.resize(stack_.size() - count);
        push(container);
    }

    // --- memo --------------------------------------------------------------------------------------------

    // Picklers number memo entries from 0 (or 1) on: a much larger number means a damaged or hostile file.
    void put(std::uint64_t index) {
        constexpr std::uint64_t kGap = 1024;
        if (index > memo_.size() + kGap) {
            throw fault(
                fmt::format("the pickle's memo index {} is out of order, after {} entries; it is damaged",
                            index, memo_.size()));
        }
        const ValueRef value = top();
        if (index >= memo_.size()) memo_.resize(static_cast<std::size_t>(index) + 1);
        memo_[static_cast<std::size_t>(index)] = value;
    }
    ValueRef get(std::uint64_t index) const {
        if (index >= memo_.size()) {
            throw fault(
                fmt::format("the pickle recalls value {}, which it never stored; it is damaged", index));
        }
        return memo_[static_cast<std::size_t>(index)];
    }

    // --- values ------------------------------------------------------------------------------------------

    template <typename Number>
    Number length(std::uint64_t most) {
        const auto value = bytes_.number<Number>();
        if (value > most) throw fault("a length is negative; the pickle is damaged");
        return value;
    }

    void text(std::uint64_t size) {
        constexpr std::uint64_t kDirect = std::uint64_t{1} << 16;
        if (size > kDirect) {
            push(tree_.add_text(bytes_.text(size)));
            return;
        }
        char* to = nullptr;
        const ValueRef ref = tree_.add_text(static_cast<std::size_t>(size), &to);
        bytes_.read(to, static_cast<std::size_t>(size));
        push(ref);
    }

    double big_endian_real() {
        std::uint64_t bits = 0;
        for (int i = 0; i < 8; ++i) bits = bits << 8 | bytes_.byte();
        return std::bit_cast<double>(bits);
    }

    template <typename Value>
    Value known(std::optional<Value> value, const char* sentence) const {
        if (!value) throw fault(sentence);
        return *value;
    }
    std::uint64_t memo_line() {
        return known(schema::number_of<std::uint64_t>(bytes_.line()), "an index of the memo is not a number");
    }

    // The values of a damaged pickle: closes all open containers, from the inside out.
    ValueRef what_there_is() {
        while (!marks_.empty()) {
            std::size_t count = since_mark();
            if (stack_.size() > count) {
                const ValueRef below = stack_[stack_.size() - count - 1];
                const ValueKind kind = Value(tree_, below).kind();
                if (kind == ValueKind::list || kind == ValueKind::dictionary) {
                    tree_.append(below, stack_.data() + stack_.size() - count, count);
                }
            }
            stack_.resize(stack_.size() - count);
        }
        // Adds keys and values that would have been added one by one: { key [ ...
        while (stack_.size() > 1) {
            const ValueRef value = stack_.back();
            stack_.pop_back();
            const Value below(tree_, stack_.back());
            if (below.is_list()) {
                tree_.append(below.ref(), &value, 1);
            } else if (below.is_text() && stack_.size() > 1 &&
                       Value(tree_, stack_[stack_.size() - 2]).is_dictionary()) {
                const ValueRef entry[] = {below.ref(), value};
                stack_.pop_back();
                tree_.append(stack_.back(), entry, 2);
            }
        }
        return stack_.empty() ? ValueRef::none : stack_.back();
    }

    PickleBytes bytes_;
    PickleOptions options_;
    ValueTree tree_;
    std::vector<ValueRef> stack_, memo_;
    ValueRef persistent_ = ValueRef::none;  // the text that all persistent identifiers share
    std::vector<std::size_t> marks_;        // indexes in the stack
    std::uint64_t opcode_at_ = 0;
    bool refused_ = false;  // then nothing is kept, even with `partial`
};

}  // namespace

ParsedPickle parse_pickle(Input& input, const PickleOptions& options) {
    return Machine(input, options).run();
}

}  // namespace shardscope::traces::importer
