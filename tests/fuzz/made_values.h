// Files whose structure is valid and whose values are not, for the fuzz targets of whole formats. The
// fuzzer's bytes choose among values, so that most inputs get past the reader of the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include <fuzzer/FuzzedDataProvider.h>
#include <nlohmann/json.hpp>

#include "traces/import/pickle/pickle_text.h"

namespace shardscope::traces {

using MadeJson = nlohmann::ordered_json;

class Maker {
  public:
    Maker(const std::uint8_t* data, std::size_t size) : data_(data, size) {}

    bool any() { return data_.remaining_bytes() > 0; }
    bool flip() { return data_.ConsumeBool(); }
    int upto(int most) { return data_.ConsumeIntegralInRange<int>(0, most); }

    // Mostly small numbers, so that values coincide; sometimes one that could cause an overflow.
    std::int64_t number() {
        constexpr std::int64_t kHard[] = {-1,
                                          std::numeric_limits<std::int64_t>::min(),
                                          std::numeric_limits<std::int64_t>::max(),
                                          std::int64_t{1} << 53,
                                          std::int64_t{1} << 62,
                                          std::int64_t{1} << 44,
                                          std::int64_t{1} << 31,
                                          1'700'000'000'000'000'000};
        const int choice = upto(15);
        if (choice < 8) return data_.ConsumeIntegralInRange<std::int64_t>(0, 40);
        if (choice < 12) return data_.ConsumeIntegral<std::int32_t>();
        if (choice < 15) return data_.PickValueInArray(kHard);
        return data_.ConsumeIntegral<std::int64_t>();
    }
    template <std::size_t N>
    std::string one_of(const char* const (&texts)[N]) {
        const int choice = upto(static_cast<int>(N));
        if (choice < static_cast<int>(N)) return texts[choice];
        return data_.ConsumeRandomLengthString(12);
    }
    // `value`, or sometimes a value of another kind in its place.
    MadeJson odd(MadeJson value) {
        switch (upto(40)) {
            case 0:
                return nullptr;
            case 1:
                return MadeJson::array({value});
            case 2:
                return std::to_string(number());
            case 3:
                return 0.5;
            case 4:
                return MadeJson::object();
            case 5:
                return flip();
            default:
                return value;
        }
    }

  private:
    FuzzedDataProvider data_;
};

inline std::string json_of(const MadeJson& value) {
    return value.dump(-1, ' ', false, MadeJson::error_handler_t::replace);
}

// The same data as Python's pickle would write it.
inline std::string pickle_of(const MadeJson& value) {
    switch (value.type()) {
        case MadeJson::value_t::boolean:
            return pickled::boolean(value.get<bool>());
        case MadeJson::value_t::number_integer:
        case MadeJson::value_t::number_unsigned:
            return pickled::integer(value.get<std::int64_t>());
        case MadeJson::value_t::string:
            return pickled::text(value.get<std::string>());
        case MadeJson::value_t::array: {
            std::vector<std::string> items;
            for (const MadeJson& item : value) items.push_back(pickle_of(item));
            return pickled::list(items);
        }
        case MadeJson::value_t::object: {
            std::string result = "}(";
            for (const auto& [key, item] : value.items()) result += pickled::text(key) + pickle_of(item);
            return result + "u";
        }
        case MadeJson::value_t::number_float:  // no value that the importer reads has this type
        default:
            return pickled::none();
    }
}

}  // namespace shardscope::traces
