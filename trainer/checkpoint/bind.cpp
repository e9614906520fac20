// The tensors of another library's checkpoint as the parameters of a run.
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "traces/schema/joined.h"
#include "trainer/checkpoint/error.h"
#include "trainer/checkpoint/foreign.h"
#include "trainer/checkpoint/hugging_face.h"

namespace shardscope::trainer::checkpoint {

namespace {

std::string shape_text(const std::vector<std::int64_t>& dims) {
    return fmt::format("[{}]", traces::schema::joined(dims, ", "));
}

// A vector may have a second dimension, and a tensor of one element none.
std::vector<std::int64_t> tidy(std::vector<std::int64_t> dims) {
    if (dims.empty()) return {1};
    if (dims.size() == 2 && dims.back() == 1) dims.pop_back();
    return dims;
}

class Binder {
  public:
    Binder(const ForeignCheckpoint& checkpoint, const RunLayout& layout, job::ModelType type)
        : checkpoint_(checkpoint), layout_(layout) {
        std::set<std::string_view> names;
        for (const ForeignTensor& tensor : checkpoint.tensors) names.insert(tensor.name);
        hugging_face_ = HuggingFace::in_file(type, names);
        for (const ForeignTensor& tensor : checkpoint.tensors)
            tensors_[hugging_face_ ? modern_name(tensor.name) : tensor.name].push_back(&tensor);
    }

    Bound bind() {
        Bound bound;
        for (const ParameterShape& shape : layout_.parameters) {
            ManifestParameter& parameter = bound.parameters.emplace_back();
            parameter.path = shape.path;
            parameter.rows = shape.rows;
            parameter.width = shape.width;
            for (const TensorForm& form : forms_of(shape)) take(parameter, form);
            if (const std::optional<std::int64_t> twice = sort_pieces(parameter.pieces))
                refuse(fmt::format("element {} of {} is stored twice; load another checkpoint", *twice,
                                   shape.path));
        }
        for (const auto& [name, tensors] : tensors_) {
            if (is_language_head(name)) {
                refuse(
                    fmt::format("it has {}, which the job's model does not have, as its head is tied to its "
                                "embedding; set model.tied_embeddings = false",
                                name));
            }
            if (!hugging_face_ || !hugging_face_->is_extra(name))
                mismatch(fmt::format("it has {}, which the job's model does not have", name));
            bound.unused.push_back(name);
        }
        return bound;
    }

  private:
    // The weight that a head tied to the embedding does not have, under our name or transformers'.
    bool is_language_head(std::string_view name) const {
        return name == (hugging_face_ ? hugging_face_->head() : "head.weight") &&
               !layout_.parameters.empty() && layout_.parameters.front().path == "token_embedding.weight";
    }

    std::vector<TensorForm> forms_of(const ParameterShape& shape) const {
        if (!hugging_face_) return {module_form(shape)};
        std::vector<TensorForm> forms = hugging_face_->forms(shape);
        if (forms.empty())
            mismatch(fmt::format("{} of the job's model has no counterpart in it", shape.path));
        return forms;
    }

    // Appends the pieces of a tensor and of its states.
    void take(ManifestParameter& parameter, const TensorForm& form) {
        const auto found = tensors_.find(form.name);
        if (found == tensors_.end()) lacks(form.name);
        for (const ForeignTensor* tensor : found->second) {
            // A state may be one number of the whole parameter (NovoGrad).
            const bool one_number = !tensor->state.empty() && element_count(tensor->dims) == 1;
            const TensorForm& there = one_number ? plain_form(form.name, tensor->dims) : form;
            if (tidy(tensor->dims) != tidy(there.dims)) {
                mismatch(fmt::format("{} is {} there and {} in the job's model", form.name,
                                     shape_text(tensor->dims), shape_text(form.dims)));
            }
            for (StoredBox box : tensor->boxes) {
                if (element_count(box.sizes) <= 0) continue;
                fit(box.offsets, there.dims.size(), 0);
                fit(box.sizes, there.dims.size(), 1);
                fit(box.strides, there.dims.size(), 1);
                append_pieces(parameter, tensor->state, box, there);
            }
        }
        tensors_.erase(found);
    }

    [[noreturn]] void lacks(const std::string& name) const {
        const std::string what = fmt::format("{} of the job's model is not in it", name);
        if (is_language_head(name) && !hugging_face_) {
            refuse(what +
                   "; if its head is tied to its embedding, set model.tied_embeddings = true, else set "
                   "the model's keys as in the run that saved it");
        }
        if (is_language_head(name) && hugging_face_->is_tied_without_head())
            refuse(what + ", as its head is tied to its embedding; set model.tied_embeddings = true");
        if (hugging_face_ && hugging_face_->is_of_head(name)) {
            refuse(fmt::format("{}, as it is of a class without that head, such as {}; load a file of {}",
                               what, hugging_face_->bare_class_name(), hugging_face_->class_name()));
        }
        mismatch(what);
    }

    // For tensors that are equal only after tidy().
    static void fit(std::vector<std::int64_t>& values, std::size_t dims, std::int64_t value) {
        values.resize(dims, value);
    }

    [[noreturn]] void mismatch(const std::string& what) const {
        refuse(what + "; set the model's keys as in the run that saved it");
    }
    [[noreturn]] void refuse(const std::string& what) const {
        throw CheckpointError(fmt::format("{}: {}", checkpoint_.index.string(), what));
    }

    const ForeignCheckpoint& checkpoint_;
    const RunLayout& layout_;
    std::optional<HuggingFace> hugging_face_;
    std::map<std::string, std::vector<const ForeignTensor*>> tensors_;  // a tensor and its states
};

}  // namespace

Bound bind(const ForeignCheckpoint& checkpoint, const RunLayout& layout, job::ModelType type) {
    return Binder(checkpoint, layout, type).bind();
}

}  // namespace shardscope::trainer::checkpoint
