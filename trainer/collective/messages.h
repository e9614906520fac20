// Numbers and texts as bytes, for messages between the processes of one job, which all run the same program.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace shardscope::trainer {

class MessageWriter {
  public:
    template <class Number>
    requires std::is_arithmetic_v<Number> MessageWriter& add(Number number) {
        char bytes[sizeof number];
        std::memcpy(bytes, &number, sizeof number);
        text_.append(bytes, sizeof number);
        return *this;
    }
    MessageWriter& add(std::string_view text) {
        add(std::uint64_t{text.size()});
        text_.append(text);
        return *this;
    }
    template <class Numbers>
    MessageWriter& add_all(const Numbers& numbers) {
        add(std::uint64_t{std::size(numbers)});
        for (const auto& number : numbers) add(number);
        return *this;
    }
    const std::string& text() const { return text_; }

  private:
    std::string text_;
};

// Throws std::runtime_error if a read goes beyond the end of the message.
class MessageReader {
  public:
    explicit MessageReader(std::string_view text) : rest_(text) {}

    template <class Number>
    requires std::is_arithmetic_v<Number> Number number() {
        Number number;
        std::memcpy(&number, take(sizeof number).data(), sizeof number);
        return number;
    }
    std::string text() { return std::string(take(number<std::uint64_t>())); }
    template <class Number>
    std::vector<Number> numbers() {
        const auto count = number<std::uint64_t>();
        if (count > rest_.size() / sizeof(Number))
            throw std::runtime_error("a message between processes is cut off");
        std::vector<Number> all(count);
        for (Number& each : all) each = number<Number>();
        return all;
    }

  private:
    std::string_view take(std::uint64_t bytes) {
        if (bytes > rest_.size()) throw std::runtime_error("a message between processes is cut off");
        const std::string_view taken = rest_.substr(0, bytes);
        rest_.remove_prefix(bytes);
        return taken;
    }
    std::string_view rest_;
};

}  // namespace shardscope::trainer
