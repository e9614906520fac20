#include "trainer/checkpoint/dcp_write.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "traces/import/pickle/pickle_text.h"
#include "trainer/checkpoint/files.h"
#include "trainer/checkpoint/foreign.h"
#include "trainer/checkpoint/tensor_form.h"

namespace shardscope::trainer::checkpoint {

namespace fs = std::filesystem;
namespace pickled = traces::pickled;

namespace {

using pickled::text;

constexpr const char* kSmallThings = "__0_1.distcp";
constexpr const char* kModule = "torch.distributed.checkpoint.metadata";

// Dimensions in the order of our elements: filters are channels last.
std::vector<std::int64_t> ordered_dims(const ParameterShape& shape) {
    std::vector<std::int64_t> dims = shape.dims();
    if (shape.window > 0) std::rotate(dims.begin() + 1, dims.begin() + 2, dims.end());
    return dims;
}
// And back.
void to_torch_order(std::vector<std::int64_t>& values, const ParameterShape& shape) {
    if (shape.window > 0) std::rotate(values.begin() + 1, values.begin() + 3, values.end());
}

std::string bytes_of_number(const auto& number) {
    std::string bytes(sizeof number, '\0');
    std::memcpy(bytes.data(), &number, sizeof number);
    return bytes;
}

// --- names ---------------------------------------------------------------------------------------------

// A name in the state dict, and the keys of the nested dictionaries that it joins.
struct Name {
    std::string joined;
    std::vector<std::string> keys;  // pickled
};

Name name_of_tensor(const std::string& path, const std::string& state) {
    if (state.empty()) return {"model." + path, {text("model"), text(path)}};
    return {fmt::format("optim.state.{}.{}", path, state),
            {text("optim"), text("state"), text(path), text(state)}};
}

Name name_of_setting(const std::string& key) {
    return {"optim.param_groups.0." + key,
            {text("optim"), text("param_groups"), pickled::integer(0), text(key)}};
}

// --- .metadata -----------------------------------------------------------------------------------------

std::string metadata_class(const char* name) {
    return pickled::global(kModule, name);
}

std::string size_object(const std::vector<std::int64_t>& sizes) {
    return pickled::call(pickled::global("torch", "Size"), {pickled::integers(sizes)});
}

// Of the five values that every version of PyTorch reads.
std::string properties(const char* dtype) {
    return pickled::object(
        metadata_class("TensorProperties"),
        pickled::tuple(
            {pickled::global("torch", dtype),
             pickled::call(pickled::global("torch.serialization", "_get_layout"), {text("torch.strided")}),
             pickled::boolean(false),
             pickled::call(metadata_class("_MEM_FORMAT_ENCODING"), {pickled::integer(0)}),
             pickled::boolean(false)}));
}

class Index {
  public:
    void add_box(const Name& name, const char* dtype, const std::vector<std::int64_t>& dims,
                 const TensorBox& box, const std::string& file, std::int64_t offset, std::int64_t length) {
        if (names_.empty() || names_.back().joined != name.joined) {
            close();
            names_.push_back(name);
            dtype_ = dtype;
            dims_ = dims;
        }
        const std::string offsets = size_object(box.offsets);
        place(name, offsets, pickled::integer(std::ssize(chunks_)), file, offset, length);
        chunks_.push_back(pickled::object(
            metadata_class("ChunkStorageMetadata"),
            pickled::members({{"offsets", offsets}, {"sizes", size_object(box.tensor.sizes)}})));
    }

    void add_object(const Name& name, const std::string& file, std::int64_t offset, std::int64_t length) {
        close();
        names_.push_back(name);
        entries_.emplace_back(text(name.joined), metadata_class("BytesStorageMetadata") + ")\x81");
        place(name, pickled::none(), pickled::none(), file, offset, length);
    }

    std::string take() {
        close();
        pickled::Entries keys;
        for (const Name& name : names_) keys.emplace_back(text(name.joined), pickled::tuple(name.keys));
        return pickled::whole(
            pickled::object(metadata_class("Metadata"),
                            pickled::members({{"state_dict_metadata", pickled::dictionary(entries_)},
                                              {"planner_data", pickled::dictionary(keys)},
                                              {"storage_data", pickled::dictionary(places_)},
                                              {"storage_meta", pickled::none()},
                                              {"version", text("1.0.0")}})));
    }

  private:
    void place(const Name& name, const std::string& offsets, const std::string& index,
               const std::string& file, std::int64_t offset, std::int64_t length) {
        places_.emplace_back(
            pickled::object(
                metadata_class("MetadataIndex"),
                pickled::members({{"fqn", text(name.joined)}, {"offset", offsets}, {"index", index}})),
            pickled::object(pickled::global("torch.distributed.checkpoint.filesystem", "_StorageInfo"),
                            pickled::members({{"relative_path", text(file)},
                                              {"offset", pickled::integer(offset)},
                                              {"length", pickled::integer(length)}})));
    }

    // Writes the entry of the tensor whose boxes have been added.
    void close() {
        if (chunks_.empty()) return;
        entries_.emplace_back(text(names_.back().joined),
                              pickled::object(metadata_class("TensorStorageMetadata"),
                                              pickled::members({{"properties", properties(dtype_)},
                                                                {"size", size_object(dims_)},
                                                                {"chunks", pickled::list(chunks_)}})));
        chunks_.clear();
    }

    std::vector<Name> names_;
    const char* dtype_ = "";
    std::vector<std::int64_t> dims_;
    std::vector<std::string> chunks_;
    pickled::Entries entries_, places_;
};

// --- what belongs to no rank ---------------------------------------------------------------------------

class SmallThings {
  public:
    explicit SmallThings(Index& index) : index_(index) {}

    void scalar(const Name& name, const char* dtype, const char* storage, const std::string& number) {
        const TensorBox box{{}, {.storage = storage, .sizes = {}, .strides = {}}};
        const std::string file = torch_tensor(box.tensor, number);
        index_.add_box(name, dtype, {}, box, kSmallThings, std::ssize(text_), std::ssize(file));
        text_ += file;
    }
    void setting(const std::string& key, const std::string& value) {
        const std::string file = torch_object(value);
        index_.add_object(name_of_setting(key), kSmallThings, std::ssize(text_), std::ssize(file));
        text_ += file;
    }
    const std::string& bytes() const { return text_; }

  private:
    Index& index_;
    std::string text_;
};

// The parameter group, with the keys that torch.optim's Adam, AdamW and SGD have.
void add_settings(SmallThings& things, const SavePlan& plan, const job::OptimizerSection& optimizer,
                  bool has_moments) {
    const std::string off = pickled::boolean(false);
    std::vector<std::string> paths;
    for (const ParameterShape& shape : plan.shapes) {
        if (shape.trained) paths.push_back(text(shape.path));
    }
    things.setting("params", pickled::list(paths));
    things.setting("lr", pickled::real(optimizer.lr));
    things.setting("weight_decay", pickled::real(optimizer.weight_decay));
    if (has_moments) {
        things.setting(
            "betas", pickled::tuple({pickled::real(optimizer.betas[0]), pickled::real(optimizer.betas[1])}));
        things.setting("eps", pickled::real(optimizer.eps));
        things.setting("amsgrad", off);
        things.setting("capturable", off);
        things.setting("decoupled_weight_decay",
                       pickled::boolean(warm_up_of(optimizer.type) != job::OptimizerType::adam));
    } else {
        things.setting("momentum", pickled::real(optimizer.momentum));
        things.setting("dampening", pickled::real(0));
        things.setting("nesterov", pickled::boolean(optimizer.nesterov));
    }
    things.setting("maximize", off);
    things.setting("foreach", pickled::none());
    things.setting("differentiable", off);
    things.setting("fused", pickled::none());
}

}  // namespace

std::vector<OwnedPiece> as_boxes(const OwnedPiece& piece, const ParameterShape& shape, std::int64_t most) {
    const std::vector<std::int64_t> dims = ordered_dims(shape), sizes = contiguous_strides(dims);
    std::vector<OwnedPiece> boxes;
    const std::int64_t end = piece.piece.first + piece.piece.elements;
    for (std::int64_t at = piece.piece.first; at < end;) {
        // The largest part that begins here: some of dimension d, and all of those after it.
        std::size_t d = 0;
        while (at % sizes[d] != 0 || end - at < sizes[d] || sizes[d] > most) ++d;
        const std::int64_t left = dims[d] - at / sizes[d] % dims[d];
        const std::int64_t count = std::min({(end - at) / sizes[d], left, most / sizes[d]});
        OwnedPiece& box = boxes.emplace_back(piece);
        box.piece.first = at;
        box.piece.elements = count * sizes[d];
        box.piece.where = elements_of(piece.piece.where, at - piece.piece.first, box.piece.elements);
        at += box.piece.elements;
    }
    return boxes;
}

TensorBox box_of(const sharding::StatePiece& piece, const ParameterShape& shape) {
    const std::vector<std::int64_t> dims = ordered_dims(shape), places = contiguous_strides(dims);
    TensorBox box;
    std::int64_t left = piece.elements;
    for (std::size_t d = 0; d < dims.size(); ++d) {
        box.offsets.push_back(piece.first / places[d] % dims[d]);
        box.tensor.sizes.push_back(std::max<std::int64_t>(1, left / places[d]));
        left = std::min(left, places[d]);
    }
    box.tensor.strides = contiguous_strides(box.tensor.sizes);
    to_torch_order(box.offsets, shape);
    to_torch_order(box.tensor.sizes, shape);
    to_torch_order(box.tensor.strides, shape);
    return box;
}

std::vector<BoxPieces> join_rows(std::vector<OwnedPiece> boxes, const ParameterShape& shape,
                                 std::int64_t most) {
    std::vector<BoxPieces> joined;
    std::map<std::tuple<int, std::int64_t, std::int64_t>, std::size_t> open;  // by place and columns
    for (OwnedPiece& box : boxes) {
        const sharding::StatePiece& piece = box.piece;
        const bool of_row = shape.window == 0 && piece.elements < shape.width;
        const auto [found, is_new] =
            open.try_emplace({box.place, piece.first % shape.width, piece.elements}, joined.size());
        if (of_row && !is_new) {
            BoxPieces& rows = joined[found->second];
            const sharding::StatePiece& last = rows.back().piece;
            const auto count = std::ssize(rows);
            if (piece.first == last.first + shape.width && piece.where.buffer == last.where.buffer &&
                piece.where.offset == last.where.offset + last.where.bytes &&
                (count + 1) * piece.elements <= most) {
                rows.push_back(std::move(box));
                continue;
            }
        }
        found->second = joined.size();
        joined.push_back({std::move(box)});
    }
    return joined;
}

TensorBox box_of(const BoxPieces& pieces, const ParameterShape& shape) {
    TensorBox box = box_of(pieces.front().piece, shape);
    if (pieces.size() == 1) return box;
    box.tensor.sizes.front() = std::ssize(pieces);
    box.tensor.strides = contiguous_strides(box.tensor.sizes);
    return box;
}

std::string dcp_file_name(int place) {
    return fmt::format("__{}_0.distcp", place);
}

void write_dcp_index(const SavePlan& plan, const job::OptimizerSection& optimizer, const fs::path& folder,
                     const DcpCounts& counts) {
    Index index;
    SmallThings things(index);
    bool has_moments = false;
    for (const PlannedBox& box : plan.boxes) {
        const sharding::StatePiece& state = plan.pieces[box.first_piece].owned.piece;
        const ParameterShape shape = tensor_of(state, plan.shapes);
        index.add_box(name_of_tensor(shape.path, state.state), "float32", shape.dims(), box.box,
                      plan.files[box.file].name, box.frame, box.frame_bytes);
        has_moments = has_moments || state.state == "exp_avg";
    }
    for (const ParameterShape& shape : plan.shapes) {
        if (has_moments && shape.trained) {
            things.scalar(name_of_tensor(shape.path, "step"), "float32", "FloatStorage",
                          bytes_of_number(static_cast<float>(counts.updates)));
        }
        constexpr std::string_view kStatistic = "running_mean";
        if (!shape.path.ends_with(kStatistic)) continue;
        const std::string module = shape.path.substr(0, shape.path.size() - kStatistic.size());
        things.scalar(name_of_tensor(module + "num_batches_tracked", ""), "int64", "LongStorage",
                      bytes_of_number(counts.steps * counts.micro_steps));
    }
    add_settings(things, plan, optimizer, has_moments);
    write_file(folder / kSmallThings, things.bytes());
    write_file(folder / kDcpMetadata, index.take());
}

}  // namespace shardscope::trainer::checkpoint
