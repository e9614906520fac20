#include "traces/import/kineto/trace_head.h"

#include <algorithm>
#include <cctype>
#include <vector>

namespace shardscope::traces::importer {

namespace {

constexpr std::size_t kEnough = 20'000;                         // times
constexpr std::int64_t kFar = 3'600'000'000'000;                // ns before the median
constexpr std::int64_t kFromEpoch = 1'000'000'000'000'000'000;  // ns: later ones count from 1970

// The texts of all numbers with that key.
std::vector<std::string_view> times_in(std::string_view head) {
    constexpr std::string_view kKey = "\"ts\"";
    std::vector<std::string_view> found;
    for (auto at = head.find(kKey); at != head.npos && found.size() < kEnough; at = head.find(kKey, at)) {
        at += kKey.size();
        const auto skip = [&](auto accept) {
            while (at < head.size() && accept(head[at])) ++at;
        };
        skip([](char c) { return c == ' ' || c == ':' || c == '\t' || c == '\n' || c == '"'; });
        const std::size_t from = at;
        skip([](char c) {
            return (std::isdigit(static_cast<unsigned char>(c)) != 0) || c == '.' || c == '-' || c == '+' ||
                   c == 'e' || c == 'E';
        });
        if (at > from && at < head.size()) found.push_back(head.substr(from, at - from));
    }
    return found;
}

// libkineto of 18 March to 3 April 2024 wrote times since 1970, with the nanoseconds after the point but
// without their leading zeros. In all other traces the fraction has three digits, and one in ten begins with
// a zero; or it is a multiple of 1/4, which is what a double of that size can represent.
Fraction fraction_of(const std::vector<std::string_view>& times, bool since_epoch) {
    if (!since_epoch) return Fraction::decimal;
    bool is_short = false, exact = false;
    for (const std::string_view time : times) {
        const auto point = time.find('.');
        if (point == std::string_view::npos) continue;
        const std::string_view digits = time.substr(point + 1);
        if (digits.empty() || digits.size() > 3 || (digits.size() > 1 && digits.front() == '0'))
            return Fraction::decimal;
        is_short = is_short || digits.size() < 3;
        exact = exact || (digits != "0" && digits != "5" && digits != "25" && digits != "75");
    }
    return is_short && exact ? Fraction::nanoseconds : Fraction::decimal;
}

}  // namespace

TraceHead read_trace_head(std::string_view head) {
    const std::vector<std::string_view> texts = times_in(head);
    std::vector<std::int64_t> times;
    for (const std::string_view text : texts) {
        if (const auto time = parse_us(text, Fraction::decimal)) times.push_back(*time);
    }
    if (times.empty()) return {};
    std::sort(times.begin(), times.end());
    const std::int64_t middle = times[times.size() / 2];
    TraceHead result;
    result.first_ns = *std::find_if(times.begin(), times.end(),
                                    [&](std::int64_t t) { return t >= middle || middle - t < kFar; });
    result.fraction = fraction_of(texts, middle > kFromEpoch);
    return result;
}

}  // namespace shardscope::traces::importer
