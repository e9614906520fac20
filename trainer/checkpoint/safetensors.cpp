#include "trainer/checkpoint/safetensors.h"

#include <bit>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <system_error>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/schema/json_text.h"
#include "trainer/checkpoint/error.h"
#include "trainer/checkpoint/files.h"

namespace shardscope::trainer::checkpoint {

namespace fs = std::filesystem;

namespace {

using KeyedJson = nlohmann::json;  // not ordered_json, which searches all keys for each

constexpr std::string_view kSafetensors = ".safetensors";
constexpr const char* kOneFile = "model.safetensors";
constexpr const char* kList = "model.safetensors.index.json";
constexpr std::int64_t kLengthBytes = 8;
constexpr std::int64_t kMostHeader = 100'000'000;  // the format's own limit

[[noreturn]] void bad_file(const fs::path& file, const std::string& what) {
    throw CheckpointError(
        fmt::format("{}: {}; get the file again, or choose another one", file.string(), what));
}

std::optional<ElementType> type_of_dtype(const std::string& dtype) {
    if (dtype == "F32") return ElementType::fp32;
    if (dtype == "BF16") return ElementType::bf16;
    if (dtype == "F16") return ElementType::fp16;
    if (dtype == "F64") return ElementType::fp64;
    return std::nullopt;
}

// The names at the top level of the header, to find one that occurs twice: a parsed object keeps only one.
class TopNames final : public nlohmann::json_sax<nlohmann::json> {
  public:
    std::string twice;

    bool key(string_t& name) override {
        if (depth_ == 1 && !names_.insert(name).second && twice.empty()) twice = name;
        return true;
    }
    bool start_object(std::size_t /*size*/) override { return ++depth_ < kDeepest; }
    bool end_object() override { return --depth_ >= 0; }
    bool start_array(std::size_t /*size*/) override { return ++depth_ < kDeepest; }
    bool end_array() override { return --depth_ >= 0; }
    bool null() override { return true; }
    bool boolean(bool /*value*/) override { return true; }
    bool number_integer(number_integer_t /*value*/) override { return true; }
    bool number_unsigned(number_unsigned_t /*value*/) override { return true; }
    bool number_float(number_float_t /*value*/, const string_t& /*text*/) override { return true; }
    bool string(string_t& /*value*/) override { return true; }
    bool binary(binary_t& /*value*/) override { return true; }
    bool parse_error(std::size_t /*at*/, const std::string& /*token*/,
                     const nlohmann::json::exception& /*error*/) override {
        return false;
    }

  private:
    static constexpr int kDeepest = 8;
    int depth_ = 0;
    std::set<std::string> names_;
};

// A list of whole numbers from 0 on.
std::optional<std::vector<std::int64_t>> counts(const KeyedJson& tensor, const char* key) {
    if (!tensor.is_object() || !tensor.contains(key) || !tensor[key].is_array()) return std::nullopt;
    std::vector<std::int64_t> numbers;
    for (const KeyedJson& each : tensor[key]) {
        if (!each.is_number_unsigned() || each.get<std::uint64_t>() > std::uint64_t{INT64_MAX})
            return std::nullopt;
        numbers.push_back(each.get<std::int64_t>());
    }
    return numbers;
}

// Reads the files of one checkpoint.
class SafetensorsReader {
  public:
    explicit SafetensorsReader(fs::path index) : index_(std::move(index)) {}

    ForeignCheckpoint read() {
        result_.index = index_;
        result_.manifest.step = -1;
        if (index_.filename() == kList) {
            read_list();
        } else {
            read_tensors(index_.filename().string());
        }
        return std::move(result_);
    }

  private:
    void read_list() {
        const KeyedJson list = traces::schema::parse_json(text_of(index_));
        if (!list.is_object() || !list.contains("weight_map") || !list["weight_map"].is_object())
            bad_file(index_, "is not a list of safetensors files: it has no \"weight_map\"");
        std::set<std::string> files;
        for (const auto& [name, file] : list["weight_map"].items()) {
            if (!file.is_string() || !is_plain_name(file.get<std::string>()))
                bad_file(index_, fmt::format("the file of {} is not one in its folder", name));
            files.insert(file.get<std::string>());
        }
        for (const std::string& file : files) read_tensors(file);
        for (const auto& [name, file] : list["weight_map"].items()) {
            if (names_.contains(name)) continue;
            bad_file(index_, fmt::format("{} should be in {}, which does not contain it", name,
                                         file.get<std::string>()));
        }
    }

    void read_tensors(const std::string& name) {
        const fs::path path = index_.parent_path() / name;
        std::int64_t bytes = 0;
        std::string header;
        try {
            const File file = File::open_to_read(path);
            bytes = file.bytes();
            std::uint64_t length = 0;
            if (bytes < kLengthBytes) bad_file(path, fmt::format("has {} bytes and is cut off", bytes));
            file.read(std::as_writable_bytes(std::span(&length, 1)), 0);
            if (length > static_cast<std::uint64_t>(std::min(bytes - kLengthBytes, kMostHeader))) {
                bad_file(
                    path,
                    fmt::format("its header should have {} bytes, but only {} follow: it is cut off or not "
                                "a safetensors file",
                                length, bytes - kLengthBytes));
            }
            header.resize(length);
            file.read(std::as_writable_bytes(std::span(header)), kLengthBytes);
        } catch (const std::system_error& error) {
            bad_file(path, "cannot be read: " + error.code().message());
        }
        TopNames names;
        const bool valid = nlohmann::json::sax_parse(header, &names);
        const KeyedJson json = valid ? traces::schema::parse_json(header) : KeyedJson();
        if (!json.is_object()) bad_file(path, "its header is not a JSON object");
        if (!names.twice.empty()) bad_file(path, fmt::format("its header names {} twice", names.twice));
        result_.manifest.files.push_back({name, bytes});
        const std::int64_t start = kLengthBytes + std::ssize(header);
        std::map<std::int64_t, std::pair<std::int64_t, std::string>> ranges;  // by begin: end and tensor
        for (const auto& [tensor, entry] : json.items()) {
            if (tensor != "__metadata__") add(path, tensor, entry, start, bytes - start, ranges);
        }
        std::int64_t end = 0;
        for (const auto& [begin, last] : ranges) {
            if (begin < end) bad_file(path, fmt::format("{} overlaps another tensor", last.second));
            end = last.first;
        }
    }

    void add(const fs::path& path, const std::string& name, const KeyedJson& entry, std::int64_t start,
             std::int64_t room, std::map<std::int64_t, std::pair<std::int64_t, std::string>>& ranges) {
        std::optional<std::vector<std::int64_t>> dims = counts(entry, "shape");
        const std::optional<std::vector<std::int64_t>> range = counts(entry, "data_offsets");
        if (!dims || !range || range->size() != 2 || !entry.contains("dtype") || !entry["dtype"].is_string())
            bad_file(path, fmt::format("{} has no dtype, shape and data_offsets", name));
        const std::int64_t begin = range->front(), end = range->back();
        if (begin > end || end > room) {
            bad_file(path,
                     fmt::format("{} is in bytes {} to {} after the header, of which there are {}: the file "
                                 "is cut off or was changed",
                                 name, begin, end, room));
        }
        if (!names_.insert(name).second)
            bad_file(path, fmt::format("{} is also in another file of the checkpoint", name));
        if (is_ignored(name)) return;
        const std::optional<ElementType> type = type_of_dtype(entry["dtype"].get<std::string>());
        if (!type) {
            throw CheckpointError(
                fmt::format("{}: {} has dtype {}; only F32, BF16, F16 and F64 can be read; convert it",
                            path.string(), name, entry["dtype"].get<std::string>()));
        }
        const std::int64_t elements = element_count(*dims);
        if (elements < 0 || elements != (end - begin) / size_of(*type) ||
            (end - begin) % size_of(*type) != 0) {
            bad_file(path, fmt::format("{} has {} bytes, which do not fit its shape", name, end - begin));
        }
        if (begin < end && !ranges.try_emplace(begin, end, name).second)
            bad_file(path, fmt::format("{} overlaps another tensor", name));
        StoredBox box{.offsets = std::vector<std::int64_t>(dims->size(), 0),
                      .sizes = *dims,
                      .strides = contiguous_strides(*dims),
                      .type = *type,
                      .file = result_.manifest.files.size() - 1,
                      .offset = start + begin};
        result_.tensors.push_back({name, "", std::move(*dims), {std::move(box)}});
    }

    static std::string text_of(const fs::path& path) {
        try {
            return read_file(path);
        } catch (const std::system_error& error) {
            bad_file(path, "cannot be read: " + error.code().message());
        }
    }

    const fs::path index_;
    ForeignCheckpoint result_;
    std::set<std::string> names_;
};

}  // namespace

std::string safetensors_header(const std::vector<TensorEntry>& tensors) {
    static_assert(std::endian::native == std::endian::little);
    nlohmann::ordered_json json;
    json["__metadata__"] = {{"format", "pt"}};
    std::int64_t end = 0;
    for (const TensorEntry& tensor : tensors) {
        const std::int64_t begin = end;
        end += 4 * element_count(tensor.dims);
        json[tensor.name] = {{"dtype", "F32"}, {"shape", tensor.dims}, {"data_offsets", {begin, end}}};
    }
    std::string text = traces::schema::dump_json(json);
    constexpr std::size_t kAlignment = 64;
    text.append((kAlignment - (text.size() + kLengthBytes) % kAlignment) % kAlignment, ' ');
    const std::uint64_t length = text.size();
    std::string header(kLengthBytes, '\0');
    std::memcpy(header.data(), &length, sizeof length);
    return header + text;
}

fs::path safetensors_index(const fs::path& path) {
    std::error_code ignored;
    if (fs::is_regular_file(path, ignored)) return path.extension() == kSafetensors ? path : fs::path();
    for (const char* name : {kOneFile, kList}) {
        if (fs::is_regular_file(path / name, ignored)) return path / name;
    }
    return {};
}

ForeignCheckpoint read_safetensors(const fs::path& index) {
    return SafetensorsReader(index).read();
}

}  // namespace shardscope::trainer::checkpoint
