#include "trainer/checkpoint/save_plan.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/core.h>

#include "trainer/checkpoint/crc32c.h"
#include "trainer/checkpoint/dcp_write.h"
#include "trainer/checkpoint/files.h"
#include "trainer/checkpoint/hugging_face.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/checkpoint/tensor_form.h"
#include "trainer/checkpoint/torch_file.h"

namespace shardscope::trainer::checkpoint {

namespace fs = std::filesystem;

namespace {

static_assert(std::endian::native == std::endian::little, "the files hold little-endian fp32");

constexpr std::int64_t kAlignment = 64;
// The largest piece, 16 MiB: small enough that a checksum locates damage and that readers can take in whole
// pieces.
constexpr std::int64_t kMostElements = 4 << 20;
// The bytes that torch_frame() takes.
constexpr std::int64_t kMostFrameBytes = std::numeric_limits<std::int32_t>::max();

std::int64_t align(std::int64_t offset) {
    return (offset + kAlignment - 1) / kAlignment * kAlignment;
}

std::int64_t bytes_of(const PlannedPiece& piece) {
    return 4 * piece.owned.piece.elements;
}

bool same_state(const OwnedPiece& a, const OwnedPiece& b) {
    return a.piece.parameter == b.piece.parameter && a.piece.state == b.piece.state;
}

std::string part_name(int place) {
    return fmt::format("part-{:05}.tmp", place);
}

TorchFrame frame_of(const PlannedBox& box, std::uint32_t checksum) {
    return torch_frame(box.box.tensor, 4 * box.elements, checksum);
}

// Writes what is before and after the numbers of a box, whose zip_checksum() this is.
void write_frame(const PlannedBox& box, const File& file, std::uint32_t checksum) {
    const TorchFrame frame = frame_of(box, checksum);
    file.write(std::as_bytes(std::span(frame.before)), box.frame);
    file.write(std::as_bytes(std::span(frame.after)), box.offset + 4 * box.elements);
}

class Planner {
  public:
    Planner(const RunLayout& layout, const job::Job& job) : layout_(layout), job_(job) {
        plan_.format = job.checkpoint.format;
        plan_.shapes = layout.parameters;
        plan_.shared_files =
            plan_.format == job::CheckpointFormat::full || plan_.format == job::CheckpointFormat::safetensors;
        if (job.checkpoint.names == job::CheckpointNames::huggingface)
            hugging_face_ = HuggingFace::of(job.model.type);
    }

    SavePlan plan() {
        switch (plan_.format) {
            case job::CheckpointFormat::dcp:
                plan_dcp();
                break;
            case job::CheckpointFormat::safetensors:
                plan_safetensors();
                break;
            case job::CheckpointFormat::full:
                plan_full();
                break;
            case job::CheckpointFormat::sharded:
                for (OwnedPiece& owned : owned_pieces(layout_, kMostElements)) {
                    const std::size_t file = file_of(owned.place);
                    add(std::move(owned), file, align(plan_.files[file].bytes));
                }
                break;
        }
        return std::move(plan_);
    }

  private:
    void plan_full() {
        plan_.files = {{"full.bin", 0}};
        for (OwnedPiece& owned : owned_pieces(layout_, kMostElements)) {
            const std::int64_t end = plan_.files.front().bytes;
            const bool goes_on = !plan_.pieces.empty() && same_state(plan_.pieces.back().owned, owned);
            add(std::move(owned), 0, goes_on ? end : align(end));
        }
    }

    // The first file has the parameters, the second one their state.
    void plan_safetensors() {
        std::vector<OwnedPiece> pieces = owned_pieces(layout_, kMostElements);
        std::vector<std::vector<TensorEntry>> tensors(2);
        const OwnedPiece* before = nullptr;
        for (const OwnedPiece& owned : pieces) {
            if (before && same_state(*before, owned)) continue;
            before = &owned;
            const std::string& state = owned.piece.state;
            for (TensorForm& form : forms_of(owned.piece)) {
                tensors[state.empty() ? 0 : 1].push_back(
                    {state.empty() ? form.name : form.name + "." + state, std::move(form.dims)});
            }
        }
        std::int64_t zeros = 0;
        if (hugging_face_) {
            for (TensorForm& form : hugging_face_->extras(layout_.parameters)) {
                zeros += element_count(form.dims);
                tensors.front().push_back({std::move(form.name), std::move(form.dims)});
            }
        }
        for (std::size_t file = 0; file < tensors.size() && !tensors[file].empty(); ++file) {
            plan_.headers.push_back(safetensors_header(tensors[file]));
            plan_.files.push_back({file == 0 ? "model.safetensors" : "optimizer.safetensors",
                                   std::ssize(plan_.headers.back())});
        }
        for (OwnedPiece& owned : pieces) {
            const std::size_t file = owned.piece.state.empty() ? 0 : 1;
            const bool starts = plan_.pieces.empty() || !same_state(plan_.pieces.back().owned, owned);
            const std::vector<Extent> order = order_of(owned.piece);
            const std::int64_t end = plan_.files[file].bytes;
            if (starts && !order.empty()) {
                PlannedBox& box = plan_.boxes.emplace_back();
                box.first_piece = plan_.pieces.size();
                box.file = file;
                box.offset = end;
                box.order = order;
            }
            add(std::move(owned), file, end, !order.empty());
        }
        plan_.ends_with_zeros = zeros > 0;
        plan_.files.front().bytes += 4 * zeros;
    }

    // What others have of the parameter, or of a state, that the piece is of.
    std::vector<TensorForm> forms_of(const sharding::StatePiece& piece) const {
        const ParameterShape& shape = layout_.parameters[static_cast<std::size_t>(piece.parameter)];
        std::vector<TensorForm> forms;
        if (hugging_face_) forms = hugging_face_->forms(shape);
        if (forms.empty()) forms = {module_form(shape)};
        if (piece.one_number) return {plain_form(forms.front().name, {1})};
        return forms;
    }

    // The order in which others have the elements of that tensor; empty: ours.
    std::vector<Extent> order_of(const sharding::StatePiece& piece) const {
        const std::vector<TensorForm> forms = forms_of(piece);
        return forms.size() == 1 ? order_in(forms.front()) : std::vector<Extent>{};
    }

    void plan_dcp() {
        std::vector<OwnedPiece> pieces = owned_pieces(layout_, std::numeric_limits<std::int64_t>::max());
        for (auto first = pieces.begin(); first != pieces.end();) {
            const auto end = std::find_if(
                first, pieces.end(), [&](const OwnedPiece& owned) { return !same_state(*first, owned); });
            const ParameterShape shape = tensor_of(first->piece, layout_.parameters);
            if (shape.pixels > 1 && !order_of(first->piece).empty()) {
                reorder_dcp({first, end}, shape);
            } else {
                std::vector<OwnedPiece> boxes;
                for (; first != end; ++first) {
                    for (OwnedPiece& box : as_boxes(*first, shape, kMostElements))
                        boxes.push_back(std::move(box));
                }
                for (BoxPieces& box : join_rows(std::move(boxes), shape, kMostElements))
                    add_box(std::move(box), shape);
            }
            first = end;
        }
    }

    void add_box(BoxPieces pieces, const ParameterShape& shape) {
        PlannedBox box;
        box.file = file_of(pieces.front().place);
        box.box = box_of(pieces, shape);
        add_dcp(std::move(box), std::move(pieces), false);
    }

    // No strides express PyTorch's order of this tensor: it is one box, which copy_parts() makes.
    void reorder_dcp(std::span<OwnedPiece> pieces, const ParameterShape& shape) {
        if (4 * shape.elements() > kMostFrameBytes) {
            throw job::JobError(fmt::format(
                "{}checkpoint.format: dcp has {} in one archive, as its elements have another order there, "
                "and "
                "its {} bytes are more than the {} of an archive; set checkpoint.format to safetensors or "
                "full",
                where(job_, "checkpoint.format"), shape.path, 4 * shape.elements(), kMostFrameBytes));
        }
        PlannedBox box;
        box.file = named_file(kReorderedFile);
        box.order = order_of(pieces.front().piece);
        box.box = {std::vector<std::int64_t>(shape.dims().size(), 0),
                   {.sizes = shape.dims(), .strides = contiguous_strides(shape.dims())}};
        add_dcp(std::move(box), {pieces.begin(), pieces.end()}, true);
    }

    void add_dcp(PlannedBox box, BoxPieces pieces, bool reordered) {
        for (const OwnedPiece& owned : pieces) box.elements += owned.piece.elements;
        const TorchFrame frame = frame_of(box, 0);
        box.frame = align(plan_.files[box.file].bytes);
        box.offset = box.frame + std::ssize(frame.before);
        box.frame_bytes = std::ssize(frame.before) + 4 * box.elements + std::ssize(frame.after);
        box.first_piece = plan_.pieces.size();
        std::int64_t at = box.offset;
        for (OwnedPiece& owned : pieces) {
            const std::int64_t bytes = 4 * owned.piece.elements;
            add(std::move(owned), box.file, at, reordered);
            at += bytes;
        }
        box.end_piece = plan_.pieces.size();
        plan_.files[box.file].bytes = box.frame + box.frame_bytes;
        plan_.boxes.push_back(std::move(box));
    }

    // `reordered`: it is of the box that was added last, or will be next.
    void add(OwnedPiece owned, std::size_t file, std::int64_t offset, bool reordered = false) {
        const std::int64_t bytes = 4 * owned.piece.elements;
        plan_.writers.insert(owned.place);
        plan_.reorders = plan_.reorders || reordered;
        std::int64_t& part_end = part_ends_[owned.place];
        if (reordered && plan_.format == job::CheckpointFormat::safetensors) {
            plan_.boxes.back().elements += owned.piece.elements;
            plan_.boxes.back().end_piece = plan_.pieces.size() + 1;
        }
        plan_.pieces.push_back({std::move(owned), file, offset, part_end, reordered});
        plan_.files[file].bytes = offset + bytes;
        part_end += bytes;
    }

    std::size_t file_of(int place) {
        return named_file(plan_.format == job::CheckpointFormat::dcp ? dcp_file_name(place)
                                                                     : fmt::format("rank-{:05}.bin", place));
    }
    std::size_t named_file(const std::string& name) {
        const auto [file, is_new] = files_.try_emplace(name, plan_.files.size());
        if (is_new) plan_.files.push_back({name, 0});
        return file->second;
    }

    const RunLayout& layout_;
    const job::Job& job_;
    std::optional<HuggingFace> hugging_face_;
    SavePlan plan_;
    std::map<std::string, std::size_t> files_;
    std::map<int, std::int64_t> part_ends_;
};

// A tensor's bytes in its own order, from those in ours.
std::vector<std::byte> in_order(std::span<const std::byte> ours, const PlannedBox& box) {
    ManifestPiece piece;
    piece.elements = box.elements;
    piece.order = box.order;
    std::vector<std::byte> theirs(ours.size());
    for (const EvenRun& run : runs_of(piece, 0, box.elements)) {
        for (std::int64_t i = 0; i < run.elements; ++i)
            std::memcpy(theirs.data() + 4 * (run.offset + i * run.stride), ours.data() + 4 * (run.first + i),
                        4);
    }
    return theirs;
}

}  // namespace

SavePlan plan_save(const RunLayout& layout, const job::Job& job) {
    return Planner(layout, job).plan();
}

std::vector<ManifestFile> part_files(const SavePlan& plan, PartPlace where, int place) {
    std::map<std::string, std::int64_t> files;
    for (const PlannedPiece& piece : plan.pieces) {
        if (piece.owned.place != place) continue;
        const bool own = where == PartPlace::own;
        std::int64_t& bytes = files[own ? part_name(place) : plan.files[piece.file].name];
        bytes = std::max(bytes, (own ? piece.part_offset : piece.offset) + bytes_of(piece));
    }
    std::vector<ManifestFile> parts;
    parts.reserve(files.size());
    for (const auto& [name, bytes] : files) parts.push_back({name, bytes});
    return parts;
}

std::int64_t write_part(const SavePlan& plan, PartPlace where, int place, const fs::path& folder,
                        const RankMemory& memory, std::span<std::uint32_t> checksums) {
    const bool own = where == PartPlace::own;
    std::map<std::string, File> files;
    for (const ManifestFile& part : part_files(plan, where, place)) {
        const fs::path path = folder / part.name;
        files.emplace(part.name, plan.shared_files && !own ? File::open_to_write(path) : File::create(path));
    }
    std::int64_t bytes = 0;
    auto box = plan.boxes.begin();
    std::uint32_t zip = 0;
    for (std::size_t index = 0; index < plan.pieces.size(); ++index) {
        const PlannedPiece& piece = plan.pieces[index];
        if (piece.owned.place != place) continue;
        const plan::HostView view = memory(piece.owned.piece.where);
        const std::span<const std::byte> data = view.bytes();
        if (std::ssize(data) != bytes_of(piece)) {
            throw std::logic_error(
                fmt::format("elements from {} on of parameter {}, state \"{}\": not in memory",
                            piece.owned.piece.first, piece.owned.piece.parameter, piece.owned.piece.state));
        }
        checksums[index] = crc32c(data);
        const File& file = files.at(own ? part_name(place) : plan.files[piece.file].name);
        file.write(data, own ? piece.part_offset : piece.offset);
        bytes += std::ssize(data);
        if (box == plan.boxes.end() || own) continue;
        for (; index >= box->end_piece; ++box) zip = 0;
        zip = zip_checksum(data, zip);
        if (index + 1 == box->end_piece) write_frame(*box, file, zip);
    }
    for (const auto& [name, file] : files) file.sync();
    return bytes;
}

std::vector<std::uint32_t> copy_parts(const SavePlan& plan, const fs::path& folder,
                                      std::span<const std::uint32_t> checksums) {
    std::map<int, File> parts;
    for (const int place : plan.writers) {
        parts.emplace(place, File::open_to_read(folder / part_name(place)));
    }
    std::vector<File> files;
    for (const ManifestFile& file : plan.files) files.push_back(File::create(folder / file.name));
    const auto read = [&](std::size_t index, std::span<std::byte> to) {
        const PlannedPiece& piece = plan.pieces[index];
        parts.at(piece.owned.place).read(to, piece.part_offset);
        if (crc32c(to) != checksums[index]) {
            throw std::runtime_error(
                fmt::format("{}: bytes {} to {} are not those that were written; check its file system",
                            (folder / part_name(piece.owned.place)).string(), piece.part_offset,
                            piece.part_offset + bytes_of(piece)));
        }
    };
    std::vector<std::byte> block;
    for (std::size_t index = 0; index < plan.pieces.size(); ++index) {
        const PlannedPiece& piece = plan.pieces[index];
        if (piece.reordered) continue;
        block.resize(static_cast<std::size_t>(bytes_of(piece)));
        read(index, block);
        files[piece.file].write(block, piece.offset);
    }
    std::vector<std::uint32_t> of_boxes;
    for (const PlannedBox& box : plan.boxes) {
        std::uint32_t zip = 0;
        if (box.order.empty()) {
            for (std::size_t index = box.first_piece; index < box.end_piece; ++index) {
                block.resize(static_cast<std::size_t>(bytes_of(plan.pieces[index])));
                read(index, block);
                zip = zip_checksum(block, zip);
            }
            of_boxes.push_back(0);
        } else {
            block.resize(static_cast<std::size_t>(4 * box.elements));
            for (std::size_t index = box.first_piece; index < box.end_piece; ++index) {
                const PlannedPiece& piece = plan.pieces[index];
                read(index, std::span(block).subspan(static_cast<std::size_t>(4 * piece.owned.piece.first),
                                                     static_cast<std::size_t>(bytes_of(piece))));
            }
            const std::vector<std::byte> there = in_order(block, box);
            files[box.file].write(there, box.offset);
            zip = zip_checksum(there);
            of_boxes.push_back(crc32c(there));
        }
        if (box.frame_bytes > 0) write_frame(box, files[box.file], zip);
    }
    for (const File& file : files) file.sync();
    parts.clear();
    for (const int place : plan.writers) fs::remove(folder / part_name(place));
    return of_boxes;
}

void write_headers(const SavePlan& plan, const fs::path& folder) {
    for (std::size_t file = 0; file < plan.headers.size(); ++file) {
        const File opened = File::open_to_write(folder / plan.files[file].name);
        opened.write(std::as_bytes(std::span(plan.headers[file])), 0);
        constexpr std::byte kZero[1] = {};
        if (file == 0 && plan.ends_with_zeros) opened.write(kZero, plan.files[file].bytes - 1);
        opened.sync();
    }
}

}  // namespace shardscope::trainer::checkpoint
