// Convolutions by oneDNN; see onednn.h. Images and filters stay as window.h has them: channels are
// neighbours, for which the library has code of its own. It wants the filters in blocks of its registers'
// width, so that they are copied before or after each call (measured: a hundredth of the time of a
// ResNet-50's convolutions).
#include "trainer/kernels/onednn.h"
#include "trainer/kernels/onednn_library.h"

#ifdef SHARDSCOPE_ONEDNN_2

#include <map>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <utility>

#include "trainer/kernels/workspace.h"

namespace shardscope::trainer::kernels {

namespace {

using namespace onednn;

enum class Direction { forward, backward_input, backward_weight };

struct Key {
    Direction direction;
    bool bias;
    ConvolutionShape shape;
    // An order, for use as a map key.
    friend bool operator<(const Key& x, const Key& y) {
        const auto all = [](const Key& k) {
            const ImageShape& image = k.shape.image;
            return std::tuple(k.direction, k.bias, image.batch, image.height, image.width, image.channels,
                              k.shape.out, k.shape.window.packed());
        };
        return all(x) < all(y);
    }
};

struct Convolution {
    std::optional<Primitive> run;   // none: the library has no code of its own for it
    std::optional<Primitive> copy;  // of the filters, to its order or back
    std::size_t filter_bytes = 0;   // in its order
};

dnnl_memory_desc_t tensor(const OneDnn::Library& library, std::initializer_list<dnnl_dim_t> sizes,
                          dnnl_format_tag_t order) {
    dnnl_memory_desc_t description;
    check(library.memory_desc_init_by_tag(&description, static_cast<int>(sizes.size()), sizes.begin(),
                                          dnnl_f32, order),
          "describe a tensor");
    return description;
}

// Whether what was planned is compiled for this processor, rather than general code or a matmul of patches,
// which we have.
bool is_compiled(const OneDnn::Library& library, const_dnnl_primitive_desc_t plan) {
    const char* name = "";
    check(library.primitive_desc_query(plan, dnnl_query_impl_info_str, 0, static_cast<void*>(&name)),
          "name its code");
    const std::string_view code = name;
    return code.starts_with("jit") || code.starts_with("brgconv");
}

Convolution compile(const OfThread& thread, const Key& key) {
    const OneDnn::Library& library = thread.library;
    const ImageShape &image = key.shape.image, result = key.shape.result();
    const Window& window = key.shape.window;
    const auto of_image = [&](const ImageShape& i) {
        return tensor(library, {i.batch, i.channels, i.height, i.width}, dnnl_nhwc);
    };
    const auto filters = [&](dnnl_format_tag_t order) {
        return tensor(library, {key.shape.out, image.channels, window.size, window.size}, order);
    };
    const dnnl_memory_desc_t x = of_image(image), y = of_image(result), w = filters(dnnl_format_tag_any);
    const dnnl_memory_desc_t ours = filters(dnnl_ohwi), bias = tensor(library, {key.shape.out}, dnnl_a);
    const dnnl_dims_t strides = {window.stride, window.stride}, padding = {window.padding, window.padding};
    dnnl_convolution_desc_t forward;
    check(
        library.convolution_forward_desc_init(&forward, dnnl_forward_training, dnnl_convolution_direct, &x,
                                              &w, key.bias ? &bias : nullptr, &y, strides, padding, padding),
        "describe a convolution");
    auto plan = planned(thread, &forward);
    if (key.direction != Direction::forward && plan) {
        dnnl_convolution_desc_t backward;
        check(key.direction == Direction::backward_input
                  ? library.convolution_backward_data_desc_init(&backward, dnnl_convolution_direct, &x, &w,
                                                                &y, strides, padding, padding)
                  : library.convolution_backward_weights_desc_init(&backward, dnnl_convolution_direct, &x, &w,
                                                                   nullptr, &y, strides, padding, padding),
              "describe a convolution's gradient");
        plan = planned(thread, &backward, plan.get());
    }
    if (!plan || !is_compiled(library, plan.get())) return {};
    const bool makes_filters = key.direction == Direction::backward_weight;
    const dnnl_memory_desc_t theirs = *library.primitive_desc_query_md(
        plan.get(), makes_filters ? dnnl_query_diff_weights_md : dnnl_query_weights_md, 0);
    Convolution made;
    switch (key.direction) {
        case Direction::forward:
            made.run.emplace(thread, plan.get(),
                             std::initializer_list<Primitive::Operand>{{DNNL_ARG_SRC, &x},
                                                                       {DNNL_ARG_WEIGHTS, &theirs},
                                                                       {DNNL_ARG_DST, &y},
                                                                       {DNNL_ARG_BIAS, &bias}});
            break;
        case Direction::backward_input:
            made.run.emplace(
                thread, plan.get(),
                std::initializer_list<Primitive::Operand>{
                    {DNNL_ARG_DIFF_DST, &y}, {DNNL_ARG_WEIGHTS, &theirs}, {DNNL_ARG_DIFF_SRC, &x}});
            break;
        case Direction::backward_weight:
            made.run.emplace(
                thread, plan.get(),
                std::initializer_list<Primitive::Operand>{
                    {DNNL_ARG_DIFF_DST, &y}, {DNNL_ARG_SRC, &x}, {DNNL_ARG_DIFF_WEIGHTS, &theirs}});
            break;
    }
    if (library.memory_desc_equal(&theirs, &ours)) return made;
    made.filter_bytes = library.memory_desc_get_size(&theirs);
    const dnnl_memory_desc_t &from = makes_filters ? theirs : ours, &to = makes_filters ? ours : theirs;
    const auto copy = make<dnnl_primitive_desc_t>(
        "plan a copy", library.primitive_desc_destroy, library.reorder_primitive_desc_create, &from,
        library.engine, &to, library.engine, thread.attributes.get());
    made.copy.emplace(thread, copy.get(),
                      std::initializer_list<Primitive::Operand>{{DNNL_ARG_FROM, &from}, {DNNL_ARG_TO, &to}});
    return made;
}

// None where the library fails to: machine code cannot be made where the kernel refuses memory that is both
// written and executed (systemd's MemoryDenyWriteExecute=).
Convolution compiled_or_none(const OfThread& thread, const Key& key) {
    try {
        return compile(thread, key);
    } catch (const std::runtime_error&) {
        return {};
    }
}

// The calling thread's, compiled on first use; null if there is none.
const Convolution* convolution_of(const OneDnn::Library* library, const Key& key) {
    if (!library || key.shape.image.elements() == 0 || key.shape.result().elements() == 0) return nullptr;
    const OfThread& thread = OfThread::get(*library);  // before the convolutions, which end before it does
    thread_local std::map<Key, Convolution> convolutions;
    auto found = convolutions.find(key);
    if (found == convolutions.end()) found = convolutions.emplace(key, compiled_or_none(thread, key)).first;
    return found->second.run ? &found->second : nullptr;
}

// The filters in the order of the convolution.
const void* ordered(const Convolution& convolution, const float* w) {
    if (!convolution.copy) return w;
    void* to = workspace(Purpose::operand_b, convolution.filter_bytes);
    convolution.copy->run({w, to});
    return to;
}

}  // namespace

bool OneDnn::convolve(const float* x, const float* w, const float* bias, float* y,
                      const ConvolutionShape& shape) const {
    const Convolution* convolution =
        convolution_of(library_.get(), {Direction::forward, bias != nullptr, shape});
    if (!convolution) return false;
    const void* filters = ordered(*convolution, w);
    if (bias) return convolution->run->run({x, filters, y, bias}), true;
    return convolution->run->run({x, filters, y}), true;
}

bool OneDnn::convolve_backward_input(const float* dy, const float* w, float* dx,
                                     const ConvolutionShape& shape) const {
    const Convolution* convolution =
        convolution_of(library_.get(), {Direction::backward_input, false, shape});
    if (convolution) convolution->run->run({dy, ordered(*convolution, w), dx});
    return convolution != nullptr;
}

bool OneDnn::convolve_backward_weight(const float* dy, const float* x, float* dw,
                                      const ConvolutionShape& shape) const {
    const Convolution* convolution =
        convolution_of(library_.get(), {Direction::backward_weight, false, shape});
    if (!convolution) return false;
    if (!convolution->copy) return convolution->run->run({dy, x, dw}), true;
    const void* made = workspace(Purpose::operand_b, convolution->filter_bytes);
    convolution->run->run({dy, x, made});
    return convolution->copy->run({made, dw}), true;
}

}  // namespace shardscope::trainer::kernels

#else

namespace shardscope::trainer::kernels {

bool OneDnn::convolve(const float*, const float*, const float*, float*, const ConvolutionShape&) const {
    return false;
}
bool OneDnn::convolve_backward_input(const float*, const float*, float*, const ConvolutionShape&) const {
    return false;
}
bool OneDnn::convolve_backward_weight(const float*, const float*, float*, const ConvolutionShape&) const {
    return false;
}

}  // namespace shardscope::trainer::kernels

#endif
