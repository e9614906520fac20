// Modules: the tree of a model, written like the corresponding PyTorch program. forward() runs at planning
// time: it writes operations and records a tape node for its backward; no arithmetic happens here.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/plan/builder.h"
#include "trainer/plan/tape.h"

namespace shardscope::trainer::model {

enum class InitKind : std::uint8_t { constant, uniform, normal };

// The initial values of a parameter; a = value | low | mean, b = unused | high | standard deviation.
struct Init {
    InitKind kind = InitKind::constant;
    float a = 0, b = 0;
};

// The part of a parameter that a rank of a tensor group holds: equal parts of its rows (the last ones
// padded), of each section alone (queries, keys, values), or of its columns. An expert group divides the rows
// of experts.
enum class Cut : std::uint8_t { none, rows, columns };
struct TensorCut {
    Cut cut = Cut::none;
    int ranks = 1;                       // of the group
    std::vector<std::int64_t> sections;  // rows of each on all ranks together; empty: one section
    plan::Group group = plan::Group::tensor;
};

struct Parameter {
    std::string name;        // "weight"
    std::int64_t rows = 0;   // its first dimension, on one rank of the group that cuts it
    std::int64_t width = 1;  // elements of a row; 1: a vector (a bias, the weight of a norm)
    Init init;
    TensorCut cut;
    bool trained = true;              // false: frozen; takes no gradient and no update (requires_grad)
    bool partial_gradient = false;    // the ranks of a tensor group compute parts of its sum
    std::int64_t whole_elements = 0;  // on all ranks of the group that cuts it, without padding
    // int8: with an fp32 scale for each row (kernels/int8_linear.h).
    plan::DType stored = plan::DType::fp32;
    // How PyTorch orders its elements otherwise: filters are [rows, window, window, channels] here, and the
    // rows of a Linear that reads images [pixels, channels]; there channels come first.
    int window = 0;
    std::int64_t pixels = 1;

    std::int64_t elements() const { return rows * width; }  // on one of them
    bool is_vector() const { return width == 1; }
    // Whether the ranks of a tensor group, or of an expert group, have different elements.
    bool is_cut(plan::Group group) const { return cut.cut != Cut::none && cut.group == group; }

    // Filled in by number_modules:
    int id = -1;       // index into ModuleTree::parameters
    int users = 1;     // modules that read it; shared if more than one
    std::string path;  // "net.0.weight", regardless of the wrap policy
};

// Numbers of a module that are not parameters: they have no gradient and no update, and every rank has all of
// them (register_buffer in PyTorch). Checkpoints keep them.
struct ModuleBuffer {
    std::string name;  // "running_mean"
    std::int64_t elements = 0;
    float value = 0;  // of each element at the start

    // Filled in by number_modules:
    int id = -1;       // index into ModuleTree::buffers
    int module = -1;   // its owner's id
    std::string path;  // "bn1.running_mean"
};

// Where parameters live and what happens to their gradients, which is the part that depends on parallelism.
// Implemented by trainer/sharding.
class ParameterStore {
  public:
    virtual ~ParameterStore() = default;
    // The parameter's values, for a kernel that is enqueued now.
    virtual plan::Arg parameter(const Parameter& parameter) = 0;
    // The scales of a parameter that is stored in int8; no buffer: it is not.
    virtual plan::Arg scales(const Parameter&) const { return {}; }
    virtual plan::Arg buffer(const ModuleBuffer& buffer) = 0;
    // Memory for a gradient of the parameter, of the element type that the store keeps it in, allocated now.
    virtual plan::Tensor new_gradient(const Parameter& parameter) = 0;
    // Called when that gradient has just been enqueued on the compute stream: twice in a backward pass for a
    // parameter that two modules share; the store adds the two.
    virtual void gradient_ready(const Parameter& parameter, plan::Tensor gradient) = 0;
};

class ActivationOffload;

// An activation that the matmul before it computed along with the sum (model.fused_activation): `output` is
// what the activation's module returns when called with the buffer `of`.
struct Activated {
    plan::BufferId of = -1;
    plan::Tensor output;
};

// Rows that exist in a buffer that has room for more, in groups (kernels/experts.h). `counts`: int32, on the
// device; empty: every row exists. `expected`: how many there are if all experts get as many.
struct Routed {
    plan::Tensor counts;
    std::int64_t rows = 0, expected = 0;  // `rows`: of the buffer
    std::int64_t groups() const { return counts.elements(); }
};

// Some of the children of the module whose children form a pipeline's stages: [first, end).
struct ChildRange {
    std::size_t first = 0, end = SIZE_MAX;
};

// What a recomputation has in common with the forward that it repeats. `dtype`: the element type of
// activations, of the parameters that kernels read and of their gradients. `training`: dropout is active.
struct GraphSettings {
    plan::DType dtype = plan::DType::fp32;
    plan::DType buffer_dtype = plan::DType::fp32;  // of tables that a model computes once (rotary)
    bool training = true;
    // Between the pairs of matmuls that a tensor group divides, each rank has other rows (sequence
    // parallelism).
    bool sequence = false;
    int tensor = 1;  // ranks of the tensor group
    int data = 1;    // ranks that read different samples
    // The group of all that have other tokens: data x context.
    plan::Group all_data = plan::Group::world;
    int samples = 1;    // of a micro-batch
    int context = 1;    // ranks of the context group, which divide the tokens of each sample
    bool ring = false;  // they pass on keys and values
    ChildRange stage;   // the part of the model that this forward calls
};

// A forward of a few tokens of each sequence, which attend to what those before them left in a key/value
// cache (kernels/cached_attention.h).
struct Cached {
    std::int64_t tokens = 1;      // of each sequence, in this forward
    bool prefill = false;         // nothing is in the cache yet: the tokens are the first ones
    plan::Arg positions;          // of the tokens in their sequences, int32 [samples, tokens]
    plan::Arg last;               // the row of each sequence whose logits are wanted, int32 [samples]
    std::vector<plan::Arg> keys;  // by module id: where an attention's keys and values are
};

// The context of a forward(). Gradients are wanted while the tape records.
struct Graph : GraphSettings {
    plan::PlanBuilder& builder;
    plan::Tape& tape;
    ParameterStore& store;
    // int32 of the step (see KernelOp::checks_output); buffer < 0: outputs are not checked.
    plan::Arg finite_flag = {};
    Activated activated = {};  // empty once the activation's module has taken it
    // What modules read besides their own input, and checkpointed ones keep: an input of all modules (the
    // rotary table), and the rows of what the experts compute.
    plan::Tensor shared = {};
    Routed routed = {};
    ActivationOffload* offload = nullptr;  // null: what is saved stays on the device
    const Cached* cached = nullptr;        // null: every token of each sequence is in this forward

    plan::Tensor activation(std::string name, std::int64_t elements) const {
        return activation(std::move(name), elements, dtype);
    }
    plan::Tensor activation(std::string name, std::int64_t elements, plan::DType type) const {
        return builder.new_tensor(std::move(name), plan::MemoryCategory::activations, elements, type);
    }
    // A kernel on the compute stream with T = dtype.
    plan::Op& kernel(plan::Kernel kernel, std::string_view name, std::vector<plan::Arg> args,
                     std::array<std::int64_t, 6> dims, std::int64_t flops = 0) const {
        plan::Op& op = builder.kernel(kernel, name, std::move(args), dims, flops);
        op.kernel().dtype = dtype;
        return op;
    }
    plan::Tensor gradient(const Parameter& parameter) const { return store.new_gradient(parameter); }
};

class Module {
  public:
    Module(std::string class_name, std::string attribute)
        : class_name_(std::move(class_name)), attribute_(std::move(attribute)) {}
    virtual ~Module() = default;
    Module(const Module&) = delete;
    Module& operator=(const Module&) = delete;

    virtual plan::Tensor forward(Graph& graph, const plan::Tensor& input) = 0;

    const std::string& class_name() const { return class_name_; }
    const std::string& attribute() const { return attribute_; }  // its name in the parent: "net", "0"
    std::vector<std::unique_ptr<Module>>& children() { return children_; }
    const std::vector<std::unique_ptr<Module>>& children() const { return children_; }
    std::vector<Parameter>& parameters() { return parameters_; }
    const std::vector<Parameter>& parameters() const { return parameters_; }

    std::vector<ModuleBuffer>& buffers() { return buffers_; }
    const std::vector<ModuleBuffer>& buffers() const { return buffers_; }

    // Parameters that forward() reads and another module owns (a tied head). The owner outlives this module.
    virtual std::vector<const Parameter*> shared_parameters() const { return {}; }

    // One of the equal parts of a model that a pipeline's stages are made of.
    bool is_layer = false;

    // Activations inside are not kept but recomputed in the backward (torch.utils.checkpoint).
    bool checkpointed = false;

    // Wrappers (FullyShardedDataParallel, DistributedDataParallel) do not appear in parameter paths.
    virtual bool is_wrapper() const { return false; }

    int id = -1;       // position in ModuleTree::modules; set by number_modules
    std::string name;  // "Linear_0"; set by number_modules
    std::string path;  // "net.0"; set by number_modules

  protected:
    // Children are reached by position, never by a kept reference: wrapping replaces the child by the
    // wrapper.
    Module& child(std::size_t position) { return *children_[position]; }
    void add_child(std::unique_ptr<Module> child) { children_.push_back(std::move(child)); }
    void add_layer(std::unique_ptr<Module> layer) {
        layer->is_layer = true;
        add_child(std::move(layer));
    }
    // `rows` and `width` of the whole parameter, which is cut.
    Parameter& add_parameter(std::string name_of, std::int64_t rows, std::int64_t width, Init init,
                             const TensorCut& cut = {}) {
        const std::int64_t whole = rows * width;
        if (cut.cut == Cut::rows) rows = (rows + cut.ranks - 1) / cut.ranks;
        if (cut.cut == Cut::columns) width /= cut.ranks;
        Parameter& added = parameters_.emplace_back(Parameter{std::move(name_of), rows, width, init, cut});
        added.whole_elements = whole;
        return added;
    }

    void add_buffer(std::string name_of, std::int64_t elements, float value) {
        buffers_.push_back({.name = std::move(name_of), .elements = elements, .value = value, .path = {}});
    }

  private:
    std::string class_name_, attribute_;
    std::vector<std::unique_ptr<Module>> children_;
    std::vector<Parameter> parameters_;  // complete when the constructor ends: others may point into it
    std::vector<ModuleBuffer> buffers_;
};

// Whether a parameter that the module or one inside it reads is trained.
bool trains(const Module& module);

// The module itself, or the one that a wrapper contains.
const Module& unwrapped(const Module& module);

// Calls a module as nn.Module.__call__ does, inside its range. For a checkpointed module only the input is
// kept; its backward first recomputes its forward, in the phase `recompute`.
plan::Tensor call(Graph& graph, Module& module, const plan::Tensor& input);

// The numbered tree: modules in the order of their first call, classes counted from 0 as PyTorch's profiler
// counts them, parameters in the same order.
struct ModuleTree {
    std::unique_ptr<Module> root;
    std::vector<Module*> modules;
    std::vector<int> parents;  // of `modules`, by position; -1 for the root
    std::vector<Parameter*> parameters;
    std::vector<ModuleBuffer*> buffers;
    std::vector<const Parameter*>
        held;  // those of `parameters` that a rank holds: with a pipeline, its stages'
    // The stage that reads each of them, by parameter; -1: none that the rank holds. Empty without a
    // pipeline.
    std::vector<int> stages;
    std::vector<int> owners;  // the module id of each parameter
    // The ids of the modules that read each parameter, its owner first; shared if more than one.
    std::vector<std::vector<int>> users;
};

ModuleTree number_modules(std::unique_ptr<Module> root);

}  // namespace shardscope::trainer::model
