#include "trainer/checkpoint/dcp_read.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "traces/import/pickle/pickle.h"
#include "traces/schema/joined.h"
#include "traces/store/error.h"
#include "trainer/checkpoint/error.h"
#include "trainer/checkpoint/files.h"
#include "trainer/checkpoint/open_files.h"
#include "trainer/checkpoint/torch_read.h"

namespace shardscope::trainer::checkpoint {

namespace fs = std::filesystem;

namespace {

using traces::importer::Value;

// What the pickle may name. Objects are data here (pickle.h); nothing is imported.
constexpr auto kMetadataClasses = std::to_array<std::string_view>({
    "torch.distributed.checkpoint.metadata.Metadata",
    "torch.distributed.checkpoint.metadata.TensorStorageMetadata",
    "torch.distributed.checkpoint.metadata.BytesStorageMetadata",
    "torch.distributed.checkpoint.metadata.TensorProperties",
    "torch.distributed.checkpoint.metadata.ChunkStorageMetadata",
    "torch.distributed.checkpoint.metadata.MetadataIndex",
    "torch.distributed.checkpoint.metadata.StorageMeta",
    "torch.distributed.checkpoint.metadata._MEM_FORMAT_ENCODING",
    "torch.distributed.checkpoint.filesystem._StorageInfo",
    "torch.serialization._get_layout",
    "torch.Size",
    "torch.float32",
    "torch.bfloat16",
    "torch.float16",
    "torch.float64",
    "torch.int64",
    "torch.int32",
    "torch.int16",
    "torch.int8",
    "torch.uint8",
    "torch.bool",
    "collections.OrderedDict",
    "pathlib.PosixPath",
    "pathlib._local.PosixPath",
    "pathlib.Path",
});

constexpr std::int64_t kMostMetadata = std::int64_t{1} << 30;

struct StorageType {
    std::string_view storage, dtype;
    ElementType type;
};
constexpr auto kTypes = std::to_array<StorageType>({{"FloatStorage", "torch.float32", ElementType::fp32},
                                                    {"BFloat16Storage", "torch.bfloat16", ElementType::bf16},
                                                    {"HalfStorage", "torch.float16", ElementType::fp16},
                                                    {"DoubleStorage", "torch.float64", ElementType::fp64}});

// Of a tensor: a pickle may share one long list among all places.
constexpr std::size_t kMostDimensions = 16;

// Where a box is; the name is a view of the pickle's text, which may be that of many places, too.
struct Place {
    std::string_view file;
    std::int64_t offset = 0, length = 0;
};

// [class, arguments, state]: the state's member.
Value member(const Value& object, std::string_view name) {
    return object[2][name];
}

bool is_a(const Value& object, std::string_view name) {
    return object.is_list() && object[std::size_t{0}].text() == name;
}

// A torch.Size: ["torch.Size", [[7, 5]]].
std::optional<std::vector<std::int64_t>> size_of_tensor(const Value& size) {
    if (!is_a(size, "torch.Size")) return std::nullopt;
    const Value items = size[1][std::size_t{0}];
    if (items.size() > kMostDimensions) return std::nullopt;
    std::vector<std::int64_t> sizes;
    for (std::size_t i = 0; i < items.size(); ++i) {
        const std::optional<std::int64_t> number = items[i].integer();
        if (!items.is_list() || number.value_or(-1) < 0) return std::nullopt;
        sizes.push_back(*number);
    }
    return sizes;
}

std::string words(const std::vector<std::int64_t>& sizes) {
    return fmt::format("[{}]", traces::schema::joined(sizes, ", "));
}

class DcpReader {
  public:
    explicit DcpReader(const fs::path& folder) : folder_(folder), index_(folder / kDcpMetadata) {}

    ForeignCheckpoint read() {
        read_metadata();
        result_.index = index_;
        result_.manifest.step = -1;
        read_tensors(false);
        read_tensors(true);
        return std::move(result_);
    }

  private:
    // The parameters, or their optimizer's state: one may come before the other in the file.
    void read_tensors(bool of_optimizer) {
        for (std::size_t i = 0; i < tensors_.size(); ++i) {
            const std::string name(tensors_.key(i).text());
            const Value entry = tensors_.value(i);
            if (!is_a(entry, kMetadataClasses[1])) continue;  // an object
            const DcpName meaning = parse_dcp_name(name, prefix_);
            if (meaning.ignored || is_ignored(name) || meaning.state.empty() == of_optimizer) continue;
            if (meaning.state == "step") {
                read_step(name, entry);
            } else {
                read_tensor(name, meaning, entry);
            }
        }
    }

    [[noreturn]] void fail(const std::string& what) const {
        throw CheckpointError(fmt::format("{}: {}; load another checkpoint", index_.string(), what));
    }
    [[noreturn]] static void fail_to_read(const fs::path& path, const std::system_error& error) {
        throw CheckpointError(fmt::format("{}: cannot be read: {}; load another checkpoint", path.string(),
                                          error.code().message()));
    }

    void read_metadata() {
        try {
            if (File::open_to_read(index_).bytes() > kMostMetadata) fail("is too large");
            text_ = read_file(index_);
            auto input = traces::importer::Input::of_memory(index_.string(), text_);
            parsed_ = traces::importer::parse_pickle(input, {.classes = kMetadataClasses});
        } catch (const std::system_error& error) {
            fail_to_read(index_, error);
        } catch (const traces::store::StoreError& error) {
            throw CheckpointError(error.what());
        }
        const Value root = parsed_.tree.root();
        tensors_ = member(root, "state_dict_metadata");
        const Value places = member(root, "storage_data");
        if (!is_a(root, kMetadataClasses[0]) || !tensors_.is_dictionary() || !places.is_dictionary())
            fail("is not the metadata of torch.distributed.checkpoint's file system writer");
        for (std::size_t i = 0; i < tensors_.size(); ++i) {
            const std::string_view name = tensors_.key(i).text();
            for (const std::string_view prefix : {"model.", "app.model."}) {
                if (name.starts_with(prefix) && prefix.size() > prefix_.size()) prefix_ = prefix;
            }
        }
        for (std::size_t i = 0; i < places.size(); ++i) read_place(places.key(i), places.value(i));
    }

    void read_place(const Value& key, const Value& info) {
        const std::string_view name = member(key, "fqn").text();
        const auto offsets = size_of_tensor(member(key, "offset"));
        if (!offsets) return;  // an object
        Place place{member(info, "relative_path").text(), member(info, "offset").integer().value_or(-1),
                    member(info, "length").integer().value_or(-1)};
        if (!is_plain_name(place.file) || place.offset < 0 || place.length < 0)
            fail(fmt::format("the place where {} is stored is not in a file of its folder", name));
        if (member(info, "transform_descriptors").size() > 0)
            fail(fmt::format("{} is compressed ({}), which cannot be read", name,
                             member(info, "transform_descriptors")[std::size_t{0}].text()));
        if (!places_.emplace(std::pair(name, *offsets), place).second)
            fail(fmt::format("names the box of {} at {} twice", name, words(*offsets)));
    }

    // The index of the file in the manifest.
    std::size_t file_of(std::string_view name) {
        const auto [entry, is_new] = files_.try_emplace(name, result_.manifest.files.size());
        if (is_new) {
            try {
                result_.manifest.files.push_back({std::string(name), opened_.add(folder_ / name)});
            } catch (const std::system_error& error) {
                fail_to_read(folder_ / name, error);
            }
        }
        return entry->second;
    }

    // The numbers of one box, which has these sizes.
    StoredBox read_box(const std::string& name, const std::vector<std::int64_t>& offsets,
                       const std::vector<std::int64_t>& sizes, std::string_view dtype) {
        const auto found = places_.find(std::pair(std::string_view(name), offsets));
        if (found == places_.end())
            fail(fmt::format("does not say where the box of {} at {} is stored", name, words(offsets)));
        const Place& place = found->second;
        const std::size_t file = file_of(place.file);
        const fs::path path = folder_ / place.file;
        const std::int64_t bytes = result_.manifest.files[file].bytes;
        const auto wrong = [&](const std::string& what) {
            throw CheckpointError(fmt::format("{}: {}; load another checkpoint", path.string(), what));
        };
        if (place.offset > bytes || place.length > bytes - place.offset) {
            wrong(
                fmt::format("has {} bytes, and {} should be in bytes {} to {}: it is cut off or was changed",
                            bytes, name, place.offset, place.offset + place.length));
        }
        StoredTensor stored;
        try {
            stored = read_torch_tensor(*opened_.file(file), place.offset, place.length,
                                       fmt::format("{}: {} at byte {}", path.string(), name, place.offset));
        } catch (const std::system_error& error) {
            fail_to_read(path, error);
        }
        const auto type = std::find_if(kTypes.begin(), kTypes.end(), [&](const StorageType& each) {
            return each.storage == stored.tensor.storage;
        });
        if (type == kTypes.end() || type->dtype != dtype || stored.tensor.sizes != sizes) {
            wrong(fmt::format("{} is a {} of {} there, and {} says {} of {}", name, stored.tensor.storage,
                              words(stored.tensor.sizes), kDcpMetadata, dtype, words(sizes)));
        }
        StoredBox box{offsets, sizes, stored.tensor.strides, type->type, file, 0};
        if (element_count(sizes) == 0) return box;
        // The last element: every stride is within the numbers, so nothing overflows.
        const std::int64_t most = stored.bytes / checkpoint::size_of(type->type);
        std::int64_t last = stored.tensor.offset;
        bool inside = last < most && element_count(sizes) <= most;
        for (std::size_t d = 0; inside && d < sizes.size(); ++d) {
            if (sizes[d] < 2) continue;
            inside = box.strides[d] > 0 && box.strides[d] <= most;
            if (inside) last += (sizes[d] - 1) * box.strides[d];
            inside = inside && last < most;
        }
        if (!inside)
            wrong(fmt::format("{} has more elements than the {} bytes that are stored", name, stored.bytes));
        box.offset = stored.numbers + stored.tensor.offset * checkpoint::size_of(type->type);
        return box;
    }

    std::vector<std::int64_t> dims_of(const std::string& name, const Value& entry) const {
        const auto dims = size_of_tensor(member(entry, "size"));
        if (!dims || element_count(*dims) < 0) fail(fmt::format("{} has an impossible size", name));
        return *dims;
    }

    std::string_view dtype_of(const Value& entry) const {
        return member(entry, "properties")[2][std::size_t{0}].text();
    }

    void read_tensor(const std::string& name, const DcpName& meaning, const Value& entry) {
        const std::vector<std::int64_t> dims = dims_of(name, entry);
        const std::string_view dtype = dtype_of(entry);
        if (std::none_of(kTypes.begin(), kTypes.end(),
                         [&](const StorageType& t) { return t.dtype == dtype; })) {
            fail(fmt::format("{} has dtype {}; only float32, bfloat16, float16 and float64 can be read", name,
                             dtype));
        }
        if (meaning.state.empty()) {
            paths_.insert(meaning.path);
        } else if (!paths_.contains(meaning.path)) {
            fail(fmt::format("has the optimizer's state of {}, but not its values", meaning.path));
        }
        ForeignTensor tensor{meaning.path, meaning.state, dims, {}};
        const Value chunks = member(entry, "chunks");
        for (std::size_t i = 0; i < chunks.size(); ++i) {
            const auto offsets = size_of_tensor(member(chunks[i], "offsets")),
                       sizes = size_of_tensor(member(chunks[i], "sizes"));
            bool inside = offsets && sizes && offsets->size() == dims.size() && sizes->size() == dims.size();
            for (std::size_t d = 0; inside && d < dims.size(); ++d)
                inside = (*sizes)[d] <= dims[d] && (*offsets)[d] <= dims[d] - (*sizes)[d];
            if (!inside) fail(fmt::format("a box of {} exceeds its size {}", name, words(dims)));
            tensor.boxes.push_back(read_box(name, *offsets, *sizes, dtype));
        }
        result_.tensors.push_back(std::move(tensor));
    }

    // All parameters have taken the same steps here.
    void read_step(const std::string& name, const Value& entry) {
        const std::vector<std::int64_t> dims = dims_of(name, entry);
        if (element_count(dims) != 1) fail(fmt::format("{} is {}, not a number of steps", name, words(dims)));
        const StoredBox box =
            read_box(name, std::vector<std::int64_t>(dims.size(), 0), dims, dtype_of(entry));
        float steps = -1;
        std::vector<std::byte> bytes(static_cast<std::size_t>(checkpoint::size_of(box.type)));
        try {
            opened_.file(box.file)->read(bytes, box.offset);
        } catch (const std::system_error& error) {
            fail_to_read(folder_ / result_.manifest.files[box.file].name, error);
        }
        to_fp32(bytes, box.type, 1, std::as_writable_bytes(std::span(&steps, 1)));
        constexpr float kMost = 1 << 24;  // up to which fp32 counts
        if (!(steps >= 0 && steps <= kMost) || steps != static_cast<float>(static_cast<std::int64_t>(steps)))
            fail(fmt::format("{} is {}, not a number of steps", name, steps));
        std::int64_t& all = result_.manifest.step;
        if (all >= 0 && all != static_cast<std::int64_t>(steps)) {
            fail(fmt::format(
                "{} is {} and other parameters have taken {} steps, which one run cannot continue "
                "from",
                name, steps, all));
        }
        all = static_cast<std::int64_t>(steps);
    }

    const fs::path folder_, index_;
    std::string text_;
    traces::importer::ParsedPickle parsed_;
    Value tensors_;
    std::string prefix_;
    std::map<std::pair<std::string_view, std::vector<std::int64_t>>, Place> places_;
    std::map<std::string_view, std::size_t> files_;
    OpenFiles opened_;
    std::set<std::string> paths_;  // of the parameters
    ForeignCheckpoint result_;
};

}  // namespace

DcpName parse_dcp_name(std::string_view name, std::string_view model_prefix) {
    constexpr std::string_view kState = "state.";
    for (const std::string_view optimizer : {"", "optim.", "optimizer.", "app.optim.", "app.optimizer."}) {
        if (!name.starts_with(optimizer) || !name.substr(optimizer.size()).starts_with(kState)) continue;
        const std::string_view rest = name.substr(optimizer.size() + kState.size());
        const std::size_t dot = rest.rfind('.');
        if (dot == std::string_view::npos) return {"", "", true};
        return {std::string(rest.substr(0, dot)), std::string(rest.substr(dot + 1))};
    }
    if (!name.starts_with(model_prefix)) return {"", "", true};
    return {std::string(name.substr(model_prefix.size())), ""};
}

ForeignCheckpoint read_dcp(const fs::path& folder) {
    return DcpReader(folder).read();
}

}  // namespace shardscope::trainer::checkpoint
