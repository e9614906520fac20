// A mixture of experts in the place of a block's feed-forward part (Shazeer et al.: arXiv 1701.06538; Fedus
// et al., "Switch Transformers": arXiv 2101.03961; Jiang et al., "Mixtral of Experts": arXiv 2401.04088): E
// feed-forward parts without biases, of which each token uses k.
//
//     p = softmax(router(x))                       fp32, over the E experts
//     y = sum over the k largest p_e of  w_e * expert_e(x),   w_e = p_e / (sum of the k), or p_e if k is 1
//
// The rows are copied into an order by expert, so that an expert's matmul is one product of its rows, and the
// results are added up in the tokens' order. With T tokens each expert takes at most C = ceil(factor k T / E)
// of them, in the order of the tokens; the others get no result of it. Factor 0: every choice has a row
// (dropless). Computing takes 2 k/E of what all experts would.
//
// The balance loss is Switch's (equation 4), over the tokens of all ranks: coefficient * E * sum over the
// experts of f_e * P_e, where f_e is an expert's share of the choices and P_e the mean of its p. As f has no
// gradient, that of p is coefficient * E * f_e / T for every token, which is added to p's gradient in the
// backward; the loss that a run reports is without it, as in Megatron.
#pragma once

#include "trainer/kernels/activation_kinds.h"
#include "trainer/model/module.h"

namespace shardscope::trainer::model {

struct ExpertsShape {
    int experts = 0;  // 0: a feed-forward part without a router
    int per_token = 1;
    double capacity_factor = 0;  // 0: dropless
    double balance_loss = 0;
    int ranks = 1;  // of an expert group, which divides the experts (expert_parallel.h)
};

struct MixtureShape {
    ExpertsShape experts;
    int width = 0, hidden = 0;
    bool gated = false;  // w2(silu(w1(x)) * w3(x)), else projection(activation(expand(x)))
    kernels::ActivationKind activation = kernels::ActivationKind::gelu;
    float std = 0, projection_std = 0;
    double dropout = 0;
};

// A weight [out, in] for each expert of a rank, one after the other in one parameter. The input has
// Graph::routed rows.
class GroupedLinear final : public Module {
  public:
    GroupedLinear(std::string attribute, const ExpertsShape& experts, int in, int out, float std);
    plan::Tensor forward(Graph& graph, const plan::Tensor& input) override;

  private:
    std::int64_t experts_, in_, out_;
};

// All experts of a rank, on rows in the order of Graph::routed.
class Experts final : public Module {
  public:
    Experts(std::string attribute, const MixtureShape& shape);
    plan::Tensor forward(Graph& graph, const plan::Tensor& input) override;
    bool are_divided() const { return divided_; }  // among the ranks of an expert group

  private:
    bool gated_, divided_;
};

class MixtureOfExperts final : public Module {
  public:
    MixtureOfExperts(std::string attribute, const MixtureShape& shape);
    plan::Tensor forward(Graph& graph, const plan::Tensor& input) override;

  private:
    // What a token's choices are; weights has their gradient.
    struct Choices {
        plan::Tensor weights, places;
        Routed routed;  // the rows that the places are in
        std::int64_t tokens = 0;
    };
    Choices choose(Graph& graph, const plan::Tensor& logits, std::int64_t tokens) const;
    plan::Tensor compute(Graph& graph, const plan::Tensor& rows, const Choices& choices);
    std::int64_t capacity(std::int64_t choices) const;
    plan::Tensor dispatch(Graph& graph, const plan::Tensor& input, const Choices& choices) const;
    plan::Tensor combine(Graph& graph, const plan::Tensor& rows, const Choices& choices) const;

    MixtureShape shape_;
};

}  // namespace shardscope::trainer::model
