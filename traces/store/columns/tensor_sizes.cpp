#include "traces/store/columns/tensor_sizes.h"

#include <algorithm>
#include <array>
#include <utility>

#include "traces/schema/text.h"

namespace shardscope::traces::store {

namespace {

constexpr std::int64_t kElementsAtMost = std::int64_t{1} << 50;  // more is damage

// Bytes per element, by the C++ type as PyTorch's profiler writes it; 0: not a tensor's type.
std::int64_t bytes_of_type(std::string_view type) {
    constexpr std::array<std::pair<std::string_view, std::int64_t>, 18> kTypes = {{
        {"float", 4},
        {"c10::BFloat16", 2},
        {"c10::Half", 2},
        {"double", 8},
        {"long int", 8},
        {"long", 8},
        {"int", 4},
        {"short int", 2},
        {"short", 2},
        {"signed char", 1},
        {"unsigned char", 1},
        {"char", 1},
        {"bool", 1},
        {"unsigned short", 2},
        {"unsigned int", 4},
        {"unsigned long", 8},
        {"c10::complex<float>", 8},
        {"c10::complex<double>", 16},
    }};
    for (const auto& [name, bytes] : kTypes) {
        if (type == name) return bytes;
    }
    return type.starts_with("c10::Float8") ? 1 : 0;
}

// Walks the values of a JSON list, which may be of any kind.
class ListItems {
  public:
    // `text` begins with the list's bracket.
    explicit ListItems(std::string_view text) : text_(text) {}

    // The text of the next value; none after the last.
    std::optional<std::string_view> next() {
        while (at_ < text_.size() && (text_[at_] == ',' || text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
        if (at_ >= text_.size() || text_[at_] == ']') return std::nullopt;
        const std::size_t from = at_;
        bool quoted = false;
        for (int depth = 0; at_ < text_.size(); ++at_) {
            const char c = text_[at_];
            if (c == '"') quoted = !quoted;
            if (quoted) continue;
            if (c == '[') ++depth;
            if (depth == 0 && (c == ',' || c == ']')) break;
            if (c == ']') --depth;
        }
        return text_.substr(from, at_ - from);
    }

  private:
    std::string_view text_;
    std::size_t at_ = 1;
};

std::string_view list_behind(std::string_view detail, std::string_view key) {
    const auto at = detail.find(key);
    if (at == std::string_view::npos) return {};
    const auto begin = detail.find_first_not_of(" :\n", at + key.size());
    return begin != std::string_view::npos && detail[begin] == '[' ? detail.substr(begin)
                                                                   : std::string_view();
}

// The dimensions of a tensor of size "[2,3]". None: not a list of sizes.
std::optional<std::vector<std::int64_t>> shape_of(std::string_view dims) {
    if (!dims.starts_with('[')) return std::nullopt;
    std::vector<std::int64_t> shape;
    ListItems sizes(dims);
    while (const auto item = sizes.next()) {
        const auto size = schema::number_of<std::int64_t>(*item);
        if (!size || *size < 0) return std::nullopt;
        shape.push_back(*size);
    }
    return shape;
}

// 1 without dimensions. None: more than kElementsAtMost.
std::optional<std::int64_t> elements_of(const std::vector<std::int64_t>& shape) {
    std::int64_t elements = 1;
    for (const std::int64_t size : shape) {
        if (size > 0 && elements > kElementsAtMost / size) return std::nullopt;
        elements *= size;
    }
    return elements;
}

}  // namespace

std::optional<TensorSizes> input_tensors(std::string_view detail) {
    const std::string_view dims = list_behind(detail, "\"Input Dims\""),
                           types = list_behind(detail, "\"Input type\"");
    if (dims.empty() || types.empty()) return std::nullopt;
    TensorSizes sizes;
    ListItems dim(dims), type(types);
    for (auto name = type.next(); name; name = type.next()) {
        const auto shape = dim.next();
        if (!shape || name->size() < 2) return std::nullopt;
        const std::string_view plain = name->substr(1, name->size() - 2);
        if (plain == "TensorList") return std::nullopt;
        const std::int64_t bytes = bytes_of_type(plain);
        if (bytes == 0) continue;
        const auto dimensions = shape_of(*shape);
        const auto elements = dimensions ? elements_of(*dimensions) : std::nullopt;
        if (!elements) return std::nullopt;
        ++sizes.tensors;
        sizes.largest = std::max(sizes.largest, *elements * bytes);
        if (__builtin_add_overflow(sizes.sum, *elements * bytes, &sizes.sum)) return std::nullopt;
    }
    return sizes.tensors > 0 ? std::optional(sizes) : std::nullopt;
}

std::vector<std::vector<std::int64_t>> input_dimensions(std::string_view detail) {
    std::vector<std::vector<std::int64_t>> shapes;
    const std::string_view dims = list_behind(detail, "\"Input Dims\"");
    if (dims.empty()) return shapes;
    ListItems items(dims);
    while (const auto item = items.next())
        shapes.push_back(shape_of(*item).value_or(std::vector<std::int64_t>()));
    return shapes;
}

}  // namespace shardscope::traces::store
