#include "trainer/model/vit.h"

#include <string>
#include <utility>

#include "trainer/kernels/cost.h"
#include "trainer/model/gpt.h"
#include "trainer/model/images.h"
#include "trainer/model/layer_tools.h"
#include "trainer/model/layers.h"

namespace shardscope::trainer::model {

namespace {

constexpr float kHeadStd = 0.02F;

// Puts a learned token before those of each sample: [batch, tokens, width] to [batch, 1 + tokens, width].
class ClassToken final : public Module {
  public:
    ClassToken(std::string attribute, int tokens, int width)
        : Module("ClassToken", std::move(attribute)), tokens_(tokens), width_(width) {
        add_parameter("weight", 1, width, {});
    }

    plan::Tensor forward(Graph& graph, const plan::Tensor& x) override {
        const Parameter& token = parameters()[kWeight];
        const std::int64_t from_row = tokens_ * width_, to_row = from_row + width_;
        const std::int64_t batch = x.elements() / from_row;
        plan::Tensor y = output_of(graph, path + ".output", batch * to_row, wants(graph, x, token));
        {
            const plan::PlanBuilder::Range range(graph.builder, "aten::cat");
            copy_columns(graph, y, graph.store.parameter(token), batch, width_, to_row, 0, graph.dtype);
            copy_columns(graph, from_column(y, width_), x, batch, from_row, to_row, from_row, graph.dtype);
        }
        if (y.value < 0) return y;
        graph.tape.node("CatBackward0", [this, &graph, &token, batch, from_row, to_row, from = x.value,
                                         value = y.value] {
            plan::Tensor dy = graph.tape.take_gradient(value);
            plan::Tensor dx, dtoken;
            if (from >= 0) {
                dx = graph.activation(path + ".input.grad", batch * from_row);
                copy_columns(graph, dx, from_column(dy, width_), batch, from_row, from_row, to_row,
                             graph.dtype);
            }
            if (token.trained) {
                const plan::Tensor of_samples = graph.activation(path + ".of samples.grad", batch * width_);
                copy_columns(graph, of_samples, dy, batch, width_, width_, to_row, graph.dtype);
                dtoken = graph.gradient(token);
                graph.kernel(plan::Kernel::linear_backward_bias, "column_sum", {dtoken, of_samples},
                             {batch, width_}, kernels::linear_backward_bias_cost(batch, width_).flops);
            }
            dy = {};
            if (dx) graph.tape.accumulate(from, std::move(dx));
            if (dtoken) graph.store.gradient_ready(token, std::move(dtoken));
        });
        return y;
    }

  private:
    std::int64_t tokens_, width_;
};

// The first token of each sample: [batch, tokens, width] to [batch, width].
plan::Tensor first_token(Graph& graph, const plan::Tensor& x, std::int64_t tokens, std::int64_t width) {
    const std::int64_t row = tokens * width, batch = x.elements() / row;
    plan::Tensor y = output_of(graph, "first token", batch * width, wants(graph, x));
    {
        const plan::PlanBuilder::Range range(graph.builder, "aten::select");
        copy_columns(graph, y, x, batch, width, width, row, graph.dtype);
    }
    if (y.value < 0) return y;
    graph.tape.node("SelectBackward0",
                    [&graph, batch, width, row, n = x.elements(), from = x.value, value = y.value] {
                        const plan::Tensor dy = graph.tape.take_gradient(value);
                        plan::Tensor dx = graph.activation("tokens.grad", n);
                        graph.builder.memset(dx);
                        copy_columns(graph, dx, dy, batch, width, row, width, graph.dtype);
                        graph.tape.accumulate(from, std::move(dx));
                    });
    return y;
}

}  // namespace

Vit::Vit(const VitShape& shape) : Module("VisionTransformer", "") {
    const kernels::Window patch{shape.patch, shape.patch, 0};
    const int patches = patch.places(shape.image) * patch.places(shape.image);
    context_ = patches + 1;
    width_ = shape.width;
    add_child(std::make_unique<Conv2d>("conv_proj", shape.image, shape.channels, shape.width, patch, true));
    add_child(std::make_unique<ClassToken>("class_token", patches, shape.width));
    add_child(std::make_unique<PositionEmbedding>("position_embedding", context_, shape.width));
    if (shape.dropout > 0) add_child(std::make_unique<Dropout>("dropout", shape.dropout));
    const GptShape blocks{.layers = shape.layers,
                          .heads = shape.heads,
                          .width = shape.width,
                          .context = context_,
                          .dropout = shape.dropout,
                          .fused_attention = shape.fused_attention,
                          .causal = false,
                          .activation = shape.activation,
                          .fused_activation = shape.fused_activation};
    for (int i = 0; i < shape.layers; ++i)
        add_layer(std::make_unique<GptBlock>("blocks." + std::to_string(i), blocks));
    add_child(std::make_unique<LayerNorm>("norm", shape.width));
    add_child(std::make_unique<Linear>("head", shape.width, shape.classes, true, kHeadStd));
}

plan::Tensor Vit::forward(Graph& graph, const plan::Tensor& images) {
    plan::Tensor x = images;
    const std::size_t head = children().size() - 1;
    for (std::size_t i = 0; i < head; ++i) x = call(graph, child(i), x);
    return call(graph, child(head), first_token(graph, x, context_, width_));
}

}  // namespace shardscope::trainer::model
