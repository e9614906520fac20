#include "trainer/checkpoint/tensor_form.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace shardscope::trainer::checkpoint {

namespace {

std::vector<std::int64_t> in_our_order(const std::vector<std::int64_t>& values, const TensorForm& form) {
    std::vector<std::int64_t> ordered;
    ordered.reserve(values.size());
    for (const std::size_t d : form.ours) ordered.push_back(values[d]);
    return ordered;
}

// The boxes in the form's view: of the last dimension, which is divided in two there, a part of one row of
// the two, then whole ones, then a part.
std::vector<StoredBox> in_view(const StoredBox& box, const TensorForm& form) {
    if (form.view.size() == box.sizes.size()) return {box};
    const std::int64_t inner = form.view.back(), stride = box.strides.back();
    std::vector<StoredBox> boxes;
    std::int64_t at = box.offsets.back();
    const std::int64_t begin = at, end = at + box.sizes.back();
    while (at < end) {
        const std::int64_t inside = at % inner;
        const bool whole = inside == 0 && end - at >= inner;
        const std::int64_t outer = whole ? (end - at) / inner : 1;
        const std::int64_t count = whole ? inner : std::min(inner - inside, end - at);
        StoredBox& part = boxes.emplace_back(box);
        part.offset += (at - begin) * stride * size_of(box.type);
        part.offsets.back() = at / inner;
        part.offsets.push_back(inside);
        part.sizes.back() = outer;
        part.sizes.push_back(count);
        part.strides.back() = inner * stride;
        part.strides.push_back(stride);
        at += outer * count;
    }
    return boxes;
}

void append_viewed(ManifestParameter& parameter, const std::string& state, const StoredBox& box,
                   const TensorForm& form) {
    const std::vector<std::int64_t> sizes = in_our_order(box.sizes, form),
                                    offsets = in_our_order(box.offsets, form),
                                    strides = in_our_order(box.strides, form),
                                    places = contiguous_strides(in_our_order(form.view, form));
    // The dimensions from `outer` on form one piece: their elements are neighbours in our order.
    std::int64_t elements = 1;
    std::size_t outer = sizes.size();
    for (; outer > 0; --outer) {
        if (sizes[outer - 1] == 1) continue;
        if (places[outer - 1] != elements) break;
        elements *= sizes[outer - 1];
    }
    std::vector<Extent> inside;
    for (std::size_t d = outer; d < sizes.size(); ++d) inside.push_back({sizes[d], strides[d]});
    inside = simplified(inside);
    std::vector<std::int64_t> at(outer, 0);
    for (;;) {
        ManifestPiece piece;
        piece.state = state;
        piece.first = form.first;
        piece.elements = elements;
        piece.file = box.file;
        piece.offset = box.offset;
        piece.crc32c.reset();
        piece.type = box.type;
        piece.order = inside;
        for (std::size_t d = 0; d < sizes.size(); ++d) {
            const std::int64_t index = d < outer ? at[d] : 0;
            piece.first += (offsets[d] + index) * places[d];
            piece.offset += index * strides[d] * size_of(box.type);
        }
        parameter.pieces.push_back(std::move(piece));
        std::size_t d = outer;
        while (d > 0 && ++at[d - 1] == sizes[d - 1]) at[--d] = 0;
        if (d == 0) return;
    }
}

}  // namespace

std::int64_t element_count(const std::vector<std::int64_t>& dims) {
    constexpr std::int64_t kMost = std::int64_t{1} << 48;
    std::int64_t elements = 1;
    for (const std::int64_t size : dims) {
        if (size < 0 || size > kMost || (size > 0 && elements > kMost / size)) return -1;
        elements *= size;
    }
    return elements;
}

std::vector<std::int64_t> contiguous_strides(const std::vector<std::int64_t>& dims) {
    std::vector<std::int64_t> strides(dims.size(), 1);
    if (element_count(dims) <= 0) return strides;  // there is no element that they separate
    for (std::size_t d = dims.size(); d-- > 1;) strides[d - 1] = strides[d] * dims[d];
    return strides;
}

TensorForm plain_form(std::string name, std::vector<std::int64_t> dims, std::int64_t first) {
    TensorForm form{std::move(name), dims, first, std::move(dims), {}};
    form.ours.resize(form.view.size());
    std::iota(form.ours.begin(), form.ours.end(), std::size_t{0});
    return form;
}

TensorForm transposed_form(std::string name, std::vector<std::int64_t> dims) {
    TensorForm form = plain_form(std::move(name), std::move(dims));
    std::reverse(form.ours.begin(), form.ours.end());
    return form;
}

TensorForm module_form(const ParameterShape& shape) {
    TensorForm form = plain_form(shape.path, shape.dims());
    if (shape.window > 0) form.ours = {0, 2, 3, 1};
    if (shape.pixels > 1) {
        form.view = {shape.rows, shape.width / shape.pixels, shape.pixels};
        form.ours = {0, 2, 1};
    }
    return form;
}

std::vector<Extent> order_in(const TensorForm& form) {
    const std::vector<std::int64_t> strides = contiguous_strides(form.view);
    std::vector<Extent> extents;
    extents.reserve(form.ours.size());
    for (const std::size_t d : form.ours) extents.push_back({form.view[d], strides[d]});
    return simplified(extents);
}

void append_pieces(ManifestParameter& parameter, const std::string& state, const StoredBox& box,
                   const TensorForm& form) {
    if (element_count(box.sizes) <= 0) return;
    for (const StoredBox& part : in_view(box, form)) append_viewed(parameter, state, part, form);
}

}  // namespace shardscope::trainer::checkpoint
