// Numbers and texts as bytes, for what the processes of one job send each other. Numbers have their lowest
// byte first.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace shardscope::trainer::world {

static_assert(std::endian::native == std::endian::little);

// Builds a text; MessageReader takes it apart.
class MessageWriter {
  public:
    template <class Number>
    requires std::is_arithmetic_v<Number> MessageWriter& add(Number number) {
        char bytes[sizeof number];
        std::memcpy(bytes, &number, sizeof number);
        text_.append(bytes, sizeof number);
        return *this;
    }
    // With its length before it.
    MessageWriter& add(std::string_view text) {
        add(std::uint64_t{text.size()});
        return rest(text);
    }
    template <class Numbers>
    MessageWriter& add_all(const Numbers& numbers) {
        add(std::uint64_t{std::size(numbers)});
        for (const auto& number : numbers) add(number);
        return *this;
    }
    MessageWriter& rest(std::string_view text) {
        text_.append(text);
        return *this;
    }
    void reserve(std::size_t bytes) { text_.reserve(bytes); }
    const std::string& text() const { return text_; }
    std::string take() { return std::move(text_); }

  private:
    std::string text_;
};

// A text that ends before what is read from it.
class MessageError : public std::runtime_error {
  public:
    MessageError() : std::runtime_error("a message between processes is cut off") {}
};

// Reads a text, into which it points. Its members throw MessageError.
class MessageReader {
  public:
    explicit MessageReader(std::string_view text) : rest_(text) {}

    template <class Number>
    requires std::is_arithmetic_v<Number> Number number() {
        Number number;
        std::memcpy(&number, bytes(sizeof number).data(), sizeof number);
        return number;
    }
    std::string_view text() { return bytes(number<std::uint64_t>()); }
    template <class Number>
    std::vector<Number> numbers() {
        const auto count = number<std::uint64_t>();
        if (count > rest_.size() / sizeof(Number)) throw MessageError();
        std::vector<Number> all(count);
        for (Number& each : all) each = number<Number>();
        return all;
    }
    std::string_view rest() const { return rest_; }

  private:
    std::string_view bytes(std::uint64_t count) {
        if (count > rest_.size()) throw MessageError();
        const std::string_view taken = rest_.substr(0, count);
        rest_.remove_prefix(count);
        return taken;
    }
    std::string_view rest_;
};

}  // namespace shardscope::trainer::world
