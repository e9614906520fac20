// See pickle.h.
#include "traces/import/pickle.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace shardscope::traces {
namespace {

// --- bytes -----------------------------------------------------------------------------------------------

// Bytes of an Input through a buffer, with the offset of each.
class Bytes {
  public:
    explicit Bytes(Input& input) : input_(input), start_(input.offset()), buffer_(std::size_t{1} << 18) {}

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

    void read(char* to, std::size_t size) {
        while (size > 0) {
            if (at_ == size_ && !fill()) throw cut();
            const std::size_t some = std::min(size, size_ - at_);
            std::memcpy(to, buffer_.data() + at_, some);
            to += some;
            at_ += some;
            size -= some;
        }
    }

    // What a length promises is taken only as it arrives.
    std::string text(std::uint64_t size) {
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

    // Up to a newline, which is not part of it.
    std::string line() {
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

    StoreError cut() const {
        return input_.error(offset(), "the pickle ends here, before its end mark; it was cut off");
    }
    StoreError error(std::uint64_t at, const std::string& sentence) const {
        return input_.error(at, sentence);
    }

  private:
    bool fill() {
        start_ += size_;
        at_ = 0;
        size_ = input_.read({buffer_.data(), buffer_.size()});
        return size_ > 0;
    }

    Input& input_;
    std::uint64_t start_;  // offset of the buffer's first byte
    std::vector<char> buffer_;
    std::size_t at_ = 0, size_ = 0;
};

// --- texts of protocol 0 -----------------------------------------------------------------------------------

void append_utf8(std::string& text, std::uint32_t c) {
    if (c < 0x80) {
        text += static_cast<char>(c);
    } else if (c < 0x800) {
        text += static_cast<char>(0xC0 | c >> 6);
        text += static_cast<char>(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
        text += static_cast<char>(0xE0 | c >> 12);
        text += static_cast<char>(0x80 | (c >> 6 & 0x3F));
        text += static_cast<char>(0x80 | (c & 0x3F));
    } else {
        text += static_cast<char>(0xF0 | (c >> 18 & 0x07));
        text += static_cast<char>(0x80 | (c >> 12 & 0x3F));
        text += static_cast<char>(0x80 | (c >> 6 & 0x3F));
        text += static_cast<char>(0x80 | (c & 0x3F));
    }
}

// `digits` hexadecimal digits at `at`, none where there are not as many.
std::optional<std::uint32_t> hexadecimal(std::string_view text, std::size_t at, std::size_t digits) {
    if (at + digits > text.size()) return std::nullopt;
    std::uint32_t value = 0;
    const char* end = text.data() + at + digits;
    const auto [stop, fault] = std::from_chars(text.data() + at, end, value, 16);
    return fault == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

// A line of UNICODE: Latin-1 with \uXXXX and \UXXXXXXXX.
std::string raw_unicode(std::string_view line) {
    std::string text;
    for (std::size_t i = 0; i < line.size(); ++i) {
        if (line[i] == '\\' && i + 1 < line.size() && (line[i + 1] == 'u' || line[i + 1] == 'U')) {
            const std::size_t digits = line[i + 1] == 'u' ? 4 : 8;
            if (const auto c = hexadecimal(line, i + 2, digits)) {
                append_utf8(text, *c);
                i += 1 + digits;
                continue;
            }
        }
        append_utf8(text, static_cast<unsigned char>(line[i]));
    }
    return text;
}

// A line of STRING: a quoted text with Python's escapes. None where it is not quoted.
std::optional<std::string> quoted(std::string_view line) {
    if (line.size() < 2 || (line.front() != '\'' && line.front() != '"') || line.back() != line.front()) {
        return std::nullopt;
    }
    line = line.substr(1, line.size() - 2);
    constexpr std::string_view kEscapes = "abtnvfr\\'\"", kMeanings = "\a\b\t\n\v\f\r\\'\"";
    std::string text;
    for (std::size_t i = 0; i < line.size(); ++i) {
        if (line[i] != '\\' || i + 1 == line.size()) {
            text += line[i];
            continue;
        }
        ++i;
        if (const std::size_t which = kEscapes.find(line[i]); which != std::string_view::npos) {
            text += kMeanings[which];
        } else if (const auto c = line[i] == 'x' ? hexadecimal(line, i + 1, 2) : std::nullopt) {
            text += static_cast<char>(*c);
            i += 2;
        } else {
            text += '\\';
            text += line[i];
        }
    }
    return text;
}

// --- opcodes that are refused ----------------------------------------------------------------------------

// What does more than hold data, and how pickletools calls it; null for all others.
const char* refused_name(unsigned char opcode) {
    switch (opcode) {
        case 'c':
            return "GLOBAL";
        case 'R':
            return "REDUCE";
        case 'b':
            return "BUILD";
        case 'i':
            return "INST";
        case 'o':
            return "OBJ";
        case 'P':
            return "PERSID";
        case 'Q':
            return "BINPERSID";
        case 0x81:
            return "NEWOBJ";
        case 0x82:
            return "EXT1";
        case 0x83:
            return "EXT2";
        case 0x84:
            return "EXT4";
        case 0x92:
            return "NEWOBJ_EX";
        case 0x93:
            return "STACK_GLOBAL";
        case 0x97:
            return "NEXT_BUFFER";
        case 0x98:
            return "READONLY_BUFFER";
        default:
            return nullptr;
    }
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
        } catch (const StoreError& fault) {
            if (!options_.partial || refused_) throw;
            result.damage = fault.what();
            tree_.set_root(what_there_is());
        }
        result.tree = std::move(tree_);
        return result;
    }

  private:
    // One opcode; false at the end mark.
    bool step() {
        opcode_at_ = bytes_.offset();
        const unsigned char opcode = bytes_.byte();
        switch (opcode) {
            case '.':
                return false;
            // Where a pickle of one protocol begins, and frames of it: nothing that changes what is read.
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
                push(long_integer(bytes_.byte()));
                break;
            case 0x8b:
                push(long_integer(length<std::uint32_t>(0x7FFFFFFF)));
                break;
            case 'I':
            case 'L':
                push(integer_line());
                break;
            case 'F':
                push(real_line());
                break;
            case 'G':
                push(tree_.add_real(big_endian_real()));
                break;
            // Texts; bytes are taken for texts.
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
                push(tree_.add_text(raw_unicode(bytes_.line())));
                break;
            case 'S': {
                const std::optional<std::string> value = quoted(bytes_.line());
                if (!value) throw fault("the text of a STRING has no quotes");
                push(tree_.add_text(*value));
                break;
            }
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
                put(index_line());
                break;
            case 'h':
                push(get(bytes_.byte()));
                break;
            case 'j':
                push(get(bytes_.number<std::uint32_t>()));
                break;
            case 'g':
                push(get(index_line()));
                break;
            default:
                throw refusal(opcode);
        }
        return true;
    }

    StoreError fault(const std::string& sentence) const { return bytes_.error(opcode_at_, sentence); }

    StoreError refusal(unsigned char opcode) {
        const char* name = refused_name(opcode);
        if (name == nullptr) {
            return fault(
                fmt::format("0x{:02x} is no opcode of a pickle; the file is damaged or no pickle", opcode));
        }
        refused_ = true;
        std::string import;
        if (opcode == 'c' || opcode == 'i') {
            import = bytes_.line();
            import += '.';
            import += bytes_.line();
        } else if (opcode == 0x93 && stack_.size() >= 2) {
            import = Value(tree_, stack_[stack_.size() - 2]).text();
            import += '.';
            import += Value(tree_, stack_.back()).text();
        }
        constexpr std::size_t kShown = 120;
        if (import.size() > kShown) import = import.substr(0, kShown) + "...";
        for (char& c : import) {
            if (c < ' ' || c > '~') c = '?';
        }
        return fault(fmt::format(
            "the opcode {} would {}, and only pickles of plain data are read; a memory snapshot or a flight "
            "recorder's dump of PyTorch has no such opcode",
            name, import.empty() ? "call or import Python code" : fmt::format("import {}", import)));
    }

    // --- stack -------------------------------------------------------------------------------------------

    // Where the items above the last mark begin.
    std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }

    void push(ValueRef ref) { stack_.push_back(ref); }
    ValueRef top() const {
        if (stack_.size() <= floor()) throw fault("the pickle uses a value that is not there; it is damaged");
        return stack_.back();
    }
    ValueRef pop() {
        const ValueRef ref = top();
        stack_.pop_back();
        return ref;
    }
    // The number of items above the last mark, which is taken away.
    std::size_t since_mark() {
        if (marks_.empty()) throw fault("the pickle closes what it has not opened; it is damaged");
        const std::size_t count = stack_.size() - marks_.back();
        marks_.pop_back();
        return count;
    }

    // The last `count` items go into the container below them.
    void append(std::size_t count, ValueKind kind) {
        if (stack_.size() - floor() < count + 1) {
            throw fault("the pickle adds items to nothing; it is damaged");
        }
        const ValueRef container = stack_[stack_.size() - count - 1];
        if (Value(tree_, container).kind() != kind) {
            throw fault("the pickle adds items to what is no list or dictionary; it is damaged");
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

    // Picklers number what they remember from 0 (or 1) on: a number far beyond is a damaged or hostile file.
    void put(std::uint64_t index) {
        constexpr std::uint64_t kGap = 1024;
        if (index > memo_.size() + kGap) {
            throw fault(
                fmt::format("the pickle remembers a value as number {}, after {} others; it is damaged",
                            index, memo_.size()));
        }
        const ValueRef value = top();
        if (index >= memo_.size()) memo_.resize(static_cast<std::size_t>(index) + 1);
        memo_[static_cast<std::size_t>(index)] = value;
    }
    ValueRef get(std::uint64_t index) const {
        if (index >= memo_.size()) {
            throw fault(fmt::format("the pickle recalls value {}, which it has not remembered; it is damaged",
                                    index));
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

    // Two's complement, little-endian, of any length.
    ValueRef long_integer(std::uint64_t size) {
        const std::string digits = bytes_.text(size);
        if (digits.empty()) return tree_.add_integer(0);
        const bool negative = (digits.back() & 0x80) != 0;
        const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(digits[i]); };
        std::size_t used = digits.size();
        while (used > 1 && byte(used - 1) == (negative ? 0xFF : 0x00)) --used;
        std::uint64_t low = negative ? ~std::uint64_t{0} : 0;
        for (std::size_t i = std::min<std::size_t>(used, 8); i-- > 0;) low = low << 8 | byte(i);
        const bool sign = (low >> 63) != 0;
        if (used <= 8 && sign == negative) return tree_.add_integer(static_cast<std::int64_t>(low));
        if (used <= 8 && !negative) return tree_.add_unsigned(low);
        double value = 0;
        for (std::size_t i = used; i-- > 0;) value = value * 256.0 + byte(i);
        if (negative) value -= std::pow(256.0, static_cast<double>(used));
        return tree_.add_huge_integer(value);
    }

    ValueRef integer_line() {
        std::string line = bytes_.line();
        if (!line.empty() && line.back() == 'L') line.pop_back();
        if (line == "00") return tree_.add_boolean(false);
        if (line == "01") return tree_.add_boolean(true);
        const char* end = line.data() + line.size();
        std::int64_t value = 0;
        auto [stop, wrong] = std::from_chars(line.data(), end, value);
        if (wrong == std::errc() && stop == end && !line.empty()) return tree_.add_integer(value);
        std::uint64_t large = 0;
        std::tie(stop, wrong) = as_pair(std::from_chars(line.data(), end, large));
        if (wrong == std::errc() && stop == end && !line.empty()) return tree_.add_unsigned(large);
        double nearly = 0;
        std::tie(stop, wrong) = as_pair(std::from_chars(line.data(), end, nearly, std::chars_format::fixed));
        if (stop != end || line.empty()) throw fault("a line that should be a whole number is none");
        return tree_.add_huge_integer(nearly);
    }

    ValueRef real_line() {
        const std::string line = bytes_.line();
        double value = 0;
        const char* end = line.data() + line.size();
        const auto [stop, wrong] = std::from_chars(line.data(), end, value);
        if (wrong == std::errc::invalid_argument || stop != end) {
            throw fault("a line that should be a number is none");
        }
        return tree_.add_real(value);
    }

    static std::pair<const char*, std::errc> as_pair(std::from_chars_result result) {
        return {result.ptr, result.ec};
    }

    double big_endian_real() {
        std::uint64_t bits = 0;
        for (int i = 0; i < 8; ++i) bits = bits << 8 | bytes_.byte();
        return std::bit_cast<double>(bits);
    }

    std::uint64_t index_line() {
        const std::string line = bytes_.line();
        std::uint64_t index = 0;
        const char* end = line.data() + line.size();
        const auto [stop, wrong] = std::from_chars(line.data(), end, index);
        if (wrong != std::errc() || stop != end) throw fault("a number of the memo is none");
        return index;
    }

    // Of a damaged pickle: what was open is closed as it stands, from the inside out.
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
        // Keys and values that were to be added singly: { key [ ...
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

    Bytes bytes_;
    PickleOptions options_;
    ValueTree tree_;
    std::vector<ValueRef> stack_, memo_;
    std::vector<std::size_t> marks_;  // where in the stack
    std::uint64_t opcode_at_ = 0;
    bool refused_ = false;  // also where what can be kept is wanted
};

}  // namespace

ParsedPickle parse_pickle(Input& input, const PickleOptions& options) {
    return Machine(input, options).run();
}

}  // namespace shardscope::traces
