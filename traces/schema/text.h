// Texts: compared without regard to case (of ASCII only), as keys, fields of CSV and numbers, and their hash.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace shardscope::traces::schema {

constexpr char lower_case(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
inline std::string lower_case(std::string_view text) {
    std::string result(text);
    for (char& c : result) c = lower_case(c);
    return result;
}

constexpr bool same_letter(char a, char b) {
    return lower_case(a) == lower_case(b);
}
constexpr bool same_but_for_case(std::string_view a, std::string_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_letter);
}
constexpr bool contains_but_for_case(std::string_view text, std::string_view part) {
    return part.empty() ||
           std::search(text.begin(), text.end(), part.begin(), part.end(), same_letter) != text.end();
}

// Without blanks, tabs and ends of lines at its ends.
constexpr std::string_view trimmed(std::string_view text) {
    constexpr std::string_view kBlank = " \t\r\n";
    const std::size_t from = text.find_first_not_of(kBlank);
    if (from == std::string_view::npos) return {};
    return text.substr(from, text.find_last_not_of(kBlank) - from + 1);
}

// "CPU Exec" -> "cpu_exec".
inline std::string snake_case(std::string_view label) {
    std::string key = lower_case(label);
    std::replace(key.begin(), key.end(), ' ', '_');
    return key;
}

// A field of CSV: in quotes if it must be (RFC 4180).
inline void append_csv(std::string& to, std::string_view text) {
    if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
        to += text;
        return;
    }
    to += '"';
    for (const char c : text) {
        if (c == '"') to += c;
        to += c;
    }
    to += '"';
}
inline std::string csv_field(std::string_view text) {
    std::string field;
    append_csv(field, text);
    return field;
}

// The number that the whole text is; nothing if it is anything else or does not fit.
template <typename Number>
std::optional<Number> number_of(std::string_view text) {
    Number number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return number;
}

// FNV-1a, 64 bits (Fowler, Noll, Vo).
constexpr std::uint64_t hash_of(std::string_view text) {
    std::uint64_t hash = 0xCBF29CE484222325;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
    return hash;
}

}  // namespace shardscope::traces::schema
