#include "trainer/checkpoint/manifest.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/schema/json_text.h"
#include "traces/schema/sort_rows.h"
#include "trainer/checkpoint/crc32c.h"
#include "trainer/checkpoint/error.h"

namespace shardscope::trainer::checkpoint {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormatName = "shardscope-checkpoint";
// Upper bound of any count: no sum and no product with 4 overflows.
constexpr std::int64_t kMost = std::int64_t{1} << 60;

std::string dump(const Json& json) {
    return traces::schema::dump_json(json);
}

std::string check_of(std::string_view before) {
    return fmt::format("\"check\": \"{:08x}\"}}\n", crc32c(std::as_bytes(std::span(before))));
}

int version_of(const Manifest& manifest) {
    const auto has_order = [](const ManifestParameter& parameter) {
        return std::any_of(parameter.pieces.begin(), parameter.pieces.end(),
                           [](const ManifestPiece& piece) { return !piece.order.empty(); });
    };
    return std::any_of(manifest.parameters.begin(), manifest.parameters.end(), has_order) ? kVersionWithOrder
                                                                                          : kFirstVersion;
}

Json header_json(const Manifest& manifest) {
    Json job = Json::object();
    for (const auto& [key, value] : manifest.job) job[key] = value;
    Json json;
    json["format"] = kFormatName;
    json["version"] = version_of(manifest);
    json["step"] = manifest.step;
    json["samples"] = manifest.samples;
    json["seed"] = manifest.seed;
    json["optimizer"] = {{"type", manifest.optimizer}, {"steps", manifest.step}};
    json["ranks"] = manifest.ranks;
    if (const auto& loss = manifest.loss_scale) {
        json["loss_scale"] = {{"scale", loss->scale},
                              {"clean", loss->clean},
                              {"skipped", loss->skipped},
                              {"hysteresis", loss->hysteresis}};
    }
    json["job"] = job;
    if (!manifest.tokenizer.empty()) {
        json["tokenizer"] = {{"file", manifest.tokenizer},
                             {"bytes", manifest.tokenizer_bytes},
                             {"crc32c", manifest.tokenizer_crc32c}};
    }
    return json;
}

Json parameter_json(const Manifest& manifest, const ManifestParameter& parameter) {
    Json pieces = Json::array();
    for (const ManifestPiece& piece : parameter.pieces) {
        Json json = {{"state", piece.state},       {"first", piece.first},
                     {"elements", piece.elements}, {"file", manifest.files[piece.file].name},
                     {"offset", piece.offset},     {"crc32c", piece.crc32c.value_or(0)}};
        if (!piece.order.empty()) {
            Json& order = json["order"] = Json::array();
            for (const Extent& extent : piece.order) order.push_back({extent.size, extent.stride});
        }
        pieces.push_back(std::move(json));
    }
    return {{"path", parameter.path},
            {"rows", parameter.rows},
            {"width", parameter.width},
            {"dtype", "float32"},
            {"pieces", pieces}};
}

template <class Items, class ToJson>
std::string lines(const char* key, const Items& items, const ToJson& to_json) {
    std::string text = fmt::format("\"{}\": [", key);
    bool first = true;
    for (const auto& item : items) {
        text += (first ? "\n" : ",\n") + dump(to_json(item));
        first = false;
    }
    return text + "\n],\n";
}

// Extracts values from the JSON and reports what is wrong with it.
class Reader {
  public:
    Reader(std::string_view text, const std::string& name) : text_(text), name_(name) {}

    Manifest read() {
        const Json json = traces::schema::parse_ordered_json(text_);
        if (json.is_discarded()) fail("is damaged or cut off: it is not JSON");
        if (!json.is_object() || !json.contains("format") || json["format"] != kFormatName) {
            throw CheckpointError(
                fmt::format("{}: is JSON, but not a checkpoint's manifest; set checkpoint.load to "
                            "a folder that checkpoint.save filled",
                            name_));
        }
        const std::int64_t version = integer(json, "version", 1);
        if (version > kVersionWithOrder) {
            throw CheckpointError(
                fmt::format("{}: has version {}, but this tool reads versions {} and {}; use a newer "
                            "shardscope-train",
                            name_, version, kFirstVersion, kVersionWithOrder));
        }
        verify_check(json);
        Manifest manifest;
        header(json, manifest);
        for (const Json& file : list(json, "files")) files(file, manifest);
        for (const Json& parameter : list(json, "parameters")) parameters(parameter, manifest);
        return manifest;
    }

  private:
    [[noreturn]] void fail(const std::string& what) const {
        throw CheckpointError(fmt::format("{}: {}; load another checkpoint", name_, what));
    }

    void verify_check(const Json& json) const {
        const std::size_t length = check_of("").size();
        if (!json.contains("check") || text_.size() < length) fail("has no checksum at its end");
        const std::string_view before = text_.substr(0, text_.size() - length);
        if (text_.substr(before.size()) != check_of(before)) {
            fail("is damaged: its checksum does not match");
        }
    }

    void header(const Json& json, Manifest& manifest) {
        manifest.step = integer(json, "step", 0);
        manifest.samples = integer(json, "samples", 0);
        manifest.seed = integer(json, "seed", -std::numeric_limits<std::int64_t>::max(),
                                std::numeric_limits<std::int64_t>::max());
        const Json& optimizer = object(json, "optimizer");
        manifest.optimizer = text(optimizer, "type");
        if (integer(optimizer, "steps", 0) != manifest.step)
            fail("its optimizer has taken another number of steps than the run");
        manifest.ranks = static_cast<int>(integer(json, "ranks", 1, std::numeric_limits<int>::max()));
        if (json.contains("loss_scale"))
            manifest.loss_scale = loss_scale(object(json, "loss_scale"), manifest);
        for (const auto& [key, value] : object(json, "job").items()) {
            if (!value.is_string()) fail(fmt::format("job: \"{}\" is not text", key));
            manifest.job.emplace_back(key, value.get<std::string>());
        }
        if (!json.contains("tokenizer")) return;
        const Json& tokenizer = object(json, "tokenizer");
        manifest.tokenizer = file_name(tokenizer);
        manifest.tokenizer_bytes = integer(tokenizer, "bytes", 0);
        manifest.tokenizer_crc32c = checksum(tokenizer);
    }

    ManifestLossScale loss_scale(const Json& json, const Manifest& manifest) const {
        const Json& scale = member(json, "scale");
        if (!scale.is_number() || !(scale.get<double>() > 0) || !std::isfinite(scale.get<double>()))
            fail("the \"scale\" of its loss is not a number above 0");
        return {scale.get<double>(), integer(json, "clean", 0, manifest.step),
                integer(json, "skipped", 0, manifest.step),
                static_cast<int>(integer(json, "hysteresis", 1, 1000))};
    }

    void files(const Json& json, Manifest& manifest) {
        ManifestFile file{file_name(json, "name"), integer(json, "bytes", 0)};
        if (!by_name_.try_emplace(file.name, manifest.files.size()).second) {
            fail(fmt::format("names the file {} twice", file.name));
        }
        manifest.files.push_back(std::move(file));
    }

    void parameters(const Json& json, Manifest& manifest) {
        ManifestParameter parameter;
        parameter.path = text(json, "path");
        if (!paths_.insert(parameter.path).second) fail(fmt::format("names {} twice", parameter.path));
        parameter.rows = integer(json, "rows", 0);
        parameter.width = integer(json, "width", 1);
        if (parameter.rows > kMost / parameter.width) fail(fmt::format("{}: is too large", parameter.path));
        if (text(json, "dtype") != "float32") {
            fail(fmt::format("{}: its dtype is {}, and only float32 can be read", parameter.path,
                             text(json, "dtype")));
        }
        for (const Json& each : list(json, "pieces")) {
            parameter.pieces.push_back(piece(each, parameter, manifest));
        }
        refuse_overlaps(parameter);
        manifest.parameters.push_back(std::move(parameter));
    }

    ManifestPiece piece(const Json& json, const ManifestParameter& parameter,
                        const Manifest& manifest) const {
        ManifestPiece piece;
        piece.state = text(json, "state");
        piece.first = integer(json, "first", 0);
        piece.elements = integer(json, "elements", 1);
        const std::string name = file_name(json);
        const auto file = by_name_.find(name);
        if (file == by_name_.end())
            fail(fmt::format("{}: a piece is in {}, which is not one of its files", parameter.path, name));
        piece.file = file->second;
        piece.offset = integer(json, "offset", 0);
        piece.crc32c = checksum(json);
        if (json.contains("order")) piece.order = order(list(json, "order"), parameter, piece);
        if (piece.first + piece.elements > parameter.elements()) {
            fail(fmt::format("{}: a piece ends after the parameter's {} elements", parameter.path,
                             parameter.elements()));
        }
        const std::int64_t bytes = manifest.files[piece.file].bytes;
        if (piece.offset + 4 * piece.elements > bytes) {
            fail(fmt::format("{}: a piece ends after the {} bytes of {}", parameter.path, bytes, name));
        }
        return piece;
    }

    // The loops go through each of the piece's elements once: their strides are those of some order of
    // contiguous dimensions.
    std::vector<Extent> order(const Json& json, const ManifestParameter& parameter,
                              const ManifestPiece& piece) const {
        std::vector<Extent> extents;
        for (const Json& pair : json) {
            if (!pair.is_array() || pair.size() != 2 || !is_count(pair[0]) || !is_count(pair[1]))
                fail(
                    fmt::format("{}: \"order\" is not a list of pairs of sizes and strides", parameter.path));
            extents.push_back({pair[0].get<std::int64_t>(), pair[1].get<std::int64_t>()});
        }
        std::vector<Extent> by_stride = extents;
        traces::schema::sort_rows(by_stride, [](const Extent& a, const Extent& b) {
            return std::tie(a.stride, a.size) < std::tie(b.stride, b.size);
        });
        std::int64_t elements = 1;
        for (const Extent& extent : by_stride) {
            if (extent.stride != elements || extent.size > piece.elements / elements) {
                elements = 0;
                break;
            }
            elements *= extent.size;
        }
        if (elements != piece.elements) {
            fail(fmt::format("{}: the \"order\" of a piece does not name each of its {} elements once",
                             parameter.path, piece.elements));
        }
        return extents;
    }
    static bool is_count(const Json& value) {
        return value.is_number_unsigned() && value.get<std::uint64_t>() > 0 &&
               value.get<std::uint64_t>() <= std::uint64_t{kMost};
    }

    void refuse_overlaps(ManifestParameter& parameter) const {
        if (const std::optional<std::int64_t> twice = sort_pieces(parameter.pieces)) {
            fail(fmt::format("{}: two pieces contain element {}", parameter.path, *twice));
        }
    }

    const Json& member(const Json& json, const char* key) const {
        if (!json.is_object() || !json.contains(key)) fail(fmt::format("\"{}\" is missing", key));
        return json[key];
    }
    const Json& object(const Json& json, const char* key) const {
        const Json& value = member(json, key);
        if (!value.is_object()) fail(fmt::format("\"{}\" is not an object", key));
        return value;
    }
    const Json& list(const Json& json, const char* key) const {
        const Json& value = member(json, key);
        if (!value.is_array()) fail(fmt::format("\"{}\" is not a list", key));
        return value;
    }
    std::string text(const Json& json, const char* key) const {
        const Json& value = member(json, key);
        if (!value.is_string()) fail(fmt::format("\"{}\" is not text", key));
        return value.get<std::string>();
    }
    std::int64_t integer(const Json& json, const char* key, std::int64_t least,
                         std::int64_t most = kMost / 4) const {
        const Json& value = member(json, key);
        const bool fits =
            value.is_number_integer() &&
            (!value.is_number_unsigned() ||
             value.get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<std::int64_t>::max()});
        if (!fits || value.get<std::int64_t>() < least || value.get<std::int64_t>() > most) {
            fail(fmt::format("\"{}\" is not a whole number of at least {}", key, least));
        }
        return value.get<std::int64_t>();
    }
    std::uint32_t checksum(const Json& json) const {
        return static_cast<std::uint32_t>(
            integer(json, "crc32c", 0, std::numeric_limits<std::uint32_t>::max()));
    }
    std::string file_name(const Json& json, const char* key = "file") const {
        std::string value = text(json, key);
        if (!is_plain_name(value))
            fail(fmt::format("\"{}\" is not a file in the checkpoint's folder", value));
        return value;
    }

    std::string_view text_;
    const std::string& name_;
    std::map<std::string, std::size_t> by_name_;  // the files' indices
    std::set<std::string> paths_;
};

}  // namespace

std::span<const ManifestPiece> pieces_within(const ManifestParameter& parameter, std::string_view state,
                                             std::int64_t first, std::int64_t elements) {
    const std::span<const ManifestPiece> all = parameter.pieces;
    const auto begin = std::partition_point(all.begin(), all.end(), [&](const ManifestPiece& piece) {
        return piece.state < state || (piece.state == state && piece.first + piece.elements <= first);
    });
    const auto end = std::partition_point(begin, all.end(), [&](const ManifestPiece& piece) {
        return piece.state == state && piece.first < first + elements;
    });
    return {begin, end};
}

std::vector<Extent> simplified(const std::vector<Extent>& extents) {
    std::vector<Extent> fewest;
    for (const Extent& extent : extents) {
        if (extent.size == 1) continue;
        if (!fewest.empty() && fewest.back().stride == extent.stride * extent.size) {
            fewest.back() = {fewest.back().size * extent.size, extent.stride};
        } else {
            fewest.push_back(extent);
        }
    }
    if (fewest.size() == 1 && fewest.front().stride == 1) fewest.clear();
    return fewest;
}

std::vector<EvenRun> runs_of(const ManifestPiece& piece, std::int64_t first, std::int64_t last) {
    if (piece.order.empty()) return {{first, last - first, first - piece.first, 1}};
    std::vector<EvenRun> runs;
    const Extent& inner = piece.order.back();
    while (first < last) {
        std::int64_t left = first - piece.first, offset = 0;
        for (auto extent = piece.order.rbegin(); extent != piece.order.rend(); ++extent) {
            offset += left % extent->size * extent->stride;
            left /= extent->size;
        }
        const std::int64_t count = std::min(last - first, inner.size - (first - piece.first) % inner.size);
        runs.push_back({first, count, offset, inner.stride});
        first += count;
    }
    return runs;
}

std::optional<std::int64_t> sort_pieces(std::vector<ManifestPiece>& pieces) {
    traces::schema::sort_rows(pieces, [](const ManifestPiece& a, const ManifestPiece& b) {
        return std::tie(a.state, a.first) < std::tie(b.state, b.first);
    });
    for (std::size_t i = 1; i < pieces.size(); ++i) {
        const ManifestPiece& before = pieces[i - 1];
        if (before.state == pieces[i].state && before.first + before.elements > pieces[i].first)
            return pieces[i].first;
    }
    return std::nullopt;
}

bool is_plain_name(std::string_view name) {
    return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos &&
           name.find('\0') == std::string_view::npos;
}

std::string to_text(const Manifest& manifest) {
    std::string text = dump(header_json(manifest));
    text.back() = ',';  // the object continues, with a line for each file and parameter
    text += "\n" + lines("files", manifest.files, [](const ManifestFile& file) {
                return Json{{"name", file.name}, {"bytes", file.bytes}};
            });
    text += lines("parameters", manifest.parameters,
                  [&](const ManifestParameter& parameter) { return parameter_json(manifest, parameter); });
    return text + check_of(text);
}

Manifest parse_manifest(std::string_view text, const std::string& name) {
    return Reader(text, name).read();
}

}  // namespace shardscope::trainer::checkpoint
