#include "traces/import/kineto/our_metadata.h"

#include <algorithm>
#include <array>
#include <limits>

#include <nlohmann/json.hpp>

#include "traces/schema/json_text.h"
#include "traces/schema/text.h"

namespace shardscope::traces::importer {

namespace {

using Json = nlohmann::json;

// Members of the expected type, otherwise the value for "unknown". The content is untrusted.
template <typename Integer>
Integer integer(const Json& object, const char* key, Integer otherwise) {
    const auto it = object.find(key);
    if (it == object.end() || !it->is_number_integer()) return otherwise;
    if (it->is_number_unsigned() &&
        it->get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
        return std::is_unsigned_v<Integer> ? static_cast<Integer>(it->get<std::uint64_t>()) : otherwise;
    const auto value = it->get<std::int64_t>();
    if (sizeof(Integer) < sizeof value &&
        (value < static_cast<std::int64_t>(std::numeric_limits<Integer>::min()) ||
         value > static_cast<std::int64_t>(std::numeric_limits<Integer>::max())))
        return otherwise;
    return static_cast<Integer>(value);
}

const Json& member(const Json& object, const char* key) {
    static const Json kNone;
    const auto it = object.find(key);
    return it != object.end() ? *it : kNone;
}

// The index of the member's text among `names`, as the enum.
template <typename Enum, std::size_t size>
std::optional<Enum> enumerator(const Json& object, const char* key,
                               const std::array<std::string_view, size>& names) {
    const auto it = std::find(names.begin(), names.end(), schema::string_member(object, key));
    if (it == names.end()) return std::nullopt;
    return static_cast<Enum>(it - names.begin());
}

template <typename Each>
void each_object(const Json& list, Each each) {
    if (!list.is_array()) return;
    for (const Json& entry : list) {
        if (entry.is_object()) each(entry);
    }
}

OurRank read_rank(const Json& json) {
    OurRank rank;
    rank.row.rank = std::max(integer(json, "rank", 0), 0);
    rank.row.device = integer(json, "device", rank.row.rank);
    rank.row.host = schema::string_member(json, "host");
    rank.row.device_name = schema::string_member(json, "device_name");
    rank.row.device_memory = integer<std::int64_t>(json, "device_memory", 0);
    for (const schema::MeshAxis& axis : schema::kMeshAxes)
        rank.row.*axis.place = integer(json, std::string(axis.name).c_str(), 0);
    rank.row.local_rank = integer(json, "local_rank", -1);
    rank.row.cpus = schema::string_member(json, "cpus");
    rank.pid = integer<std::int64_t>(json, "pid", 0);
    rank.thread = integer<std::int64_t>(json, "thread", 0);
    if (const Json& threads = member(json, "threads"); threads.is_array()) {
        for (const Json& thread : threads) {
            if (thread.is_number_integer()) rank.threads.push_back(thread.get<std::int64_t>());
        }
    }
    if (const Json& streams = member(json, "streams"); streams.is_object()) {
        for (const auto& [id, name] : streams.items()) {
            const auto number = schema::number_of<int>(id);
            if (number && name.is_string())
                rank.streams.push_back(
                    {.rank = rank.row.rank, .stream = *number, .name = name.get<std::string>()});
        }
    }
    return rank;
}

schema::PredictionRow read_prediction(const Json& json) {
    schema::PredictionRow row{.rank = integer(json, "rank", 0)};
    row.peak_bytes = integer<std::int64_t>(json, "peak_bytes", 0);
    row.where = schema::string_member(json, "where");
    if (const Json& at_peak = member(json, "at_peak"); at_peak.is_object()) {
        for (std::size_t c = 0; c < schema::kMemoryCategoryNames.size(); ++c)
            row.at_peak[c] =
                integer<std::int64_t>(at_peak, std::string(schema::kMemoryCategoryNames[c]).c_str(), 0);
    }
    return row;
}

void read_model(const Json& json, OurMetadata& into) {
    each_object(member(json, "modules"), [&](const Json& m) {
        into.rows.push_back(schema::ModuleRow{.id = integer(m, "id", 0),
                                              .parent = integer(m, "parent", -1),
                                              .name = schema::string_member(m, "name"),
                                              .class_name = schema::string_member(m, "class"),
                                              .path = schema::string_member(m, "path"),
                                              .unit = integer(m, "unit", -1),
                                              .parameters = integer<std::int64_t>(m, "parameters", 0)});
    });
    each_object(member(json, "units"), [&](const Json& u) {
        into.rows.push_back(schema::UnitRow{.id = integer(u, "id", 0),
                                            .module = integer(u, "module", -1),
                                            .name = schema::string_member(u, "name"),
                                            .elements = integer<std::int64_t>(u, "elements", 0),
                                            .padded_elements = integer<std::int64_t>(u, "padded_elements", 0),
                                            .shard_bytes = integer<std::int64_t>(u, "shard_bytes", 0),
                                            .bytes = integer<std::int64_t>(u, "bytes", 0)});
    });
}

void read_groups(const Json& json, OurMetadata& into) {
    each_object(member(json, "groups"), [&](const Json& g) {
        into.rows.push_back(schema::GroupRow{.group = integer<std::int64_t>(g, "group", 0),
                                             .axis = schema::string_member(g, "axis"),
                                             .ranks = schema::string_member(g, "ranks"),
                                             .name = schema::string_member(g, "name"),
                                             .description = schema::string_member(g, "description")});
    });
}

void read_schedule(const Json& json, OurMetadata& into) {
    each_object(member(json, "schedule"), [&](const Json& a) {
        const Json& with_next = member(a, "with_next");
        into.rows.push_back(
            schema::ScheduleRow{.rank = integer(a, "rank", 0),
                                .position = integer(a, "position", 0),
                                .stage = integer(a, "stage", 0),
                                .kind = schema::string_member(a, "kind"),
                                .micro_batch = integer(a, "micro_batch", -1),
                                .with_next = with_next.is_boolean() && with_next.get<bool>()});
    });
}

double real(const Json& json, const char* key) {
    const Json& value = member(json, key);
    return value.is_number() ? value.get<double>() : -1;
}

void read_devices(const Json& json, OurMetadata& into) {
    each_object(member(json, "devices"), [&](const Json& d) {
        const Json& visible = member(d, "visible");
        into.rows.push_back(schema::DeviceRow{.host = schema::string_member(d, "host"),
                                              .kind = schema::string_member(d, "kind"),
                                              .number = integer(d, "number", 0),
                                              .name = schema::string_member(d, "name"),
                                              .bus = schema::string_member(d, "bus"),
                                              .numa = integer(d, "numa", -1),
                                              .memory_bytes = integer<std::int64_t>(d, "memory_bytes", -1),
                                              .bytes_per_second = real(d, "bytes_per_second"),
                                              .power_limit_watts = real(d, "power_limit_watts"),
                                              .cpus = schema::string_member(d, "cpus"),
                                              .visible = !visible.is_boolean() || visible.get<bool>()});
    });
    each_object(member(json, "topology"), [&](const Json& t) {
        into.rows.push_back(schema::TopologyRow{.host = schema::string_member(t, "host"),
                                                .from = schema::string_member(t, "from"),
                                                .to_host = schema::string_member(t, "to_host"),
                                                .to = schema::string_member(t, "to"),
                                                .link = schema::string_member(t, "link"),
                                                .lanes = integer(t, "lanes", -1),
                                                .bytes_per_second = real(t, "bytes_per_second"),
                                                .read = schema::string_member(t, "read"),
                                                .write = schema::string_member(t, "write"),
                                                .nvlink = schema::string_member(t, "nvlink"),
                                                .atomics = schema::string_member(t, "atomics"),
                                                .source = schema::string_member(t, "source")});
    });
}

void read_predictions(const Json& json, OurMetadata& into) {
    each_object(member(json, "predictions"), [&](const Json& p) { into.rows.push_back(read_prediction(p)); });
    each_object(member(json, "prediction_parts"), [&](const Json& p) {
        const auto kind = enumerator<schema::PredictionPart>(p, "part", schema::kPredictionPartNames);
        if (!kind) return;
        into.rows.push_back(schema::PredictionPartRow{.rank = integer(p, "rank", 0),
                                                      .kind = *kind,
                                                      .id = integer<std::int64_t>(p, "id", -1),
                                                      .bytes = integer<std::int64_t>(p, "bytes", 0),
                                                      .name = schema::string_member(p, "name")});
    });
}

void read_steps(const Json& json, OurMetadata& into) {
    each_object(member(json, "steps"), [&](const Json& s) {
        OurStep step;
        step.row.rank = integer(s, "rank", 0);
        step.row.step = integer<std::int64_t>(s, "step", 0);
        step.row.start = integer<std::int64_t>(s, "start_ns", 0);
        step.row.end = integer<std::int64_t>(s, "end_ns", 0);
        step.thread = integer<std::int64_t>(s, "thread", 0);
        into.steps.push_back(step);
    });
    if (const Json& losses = member(json, "losses"); losses.is_object()) {
        for (const auto& [step, loss] : losses.items()) {
            const auto number = schema::number_of<std::int64_t>(step);
            if (number && loss.is_number())
                into.rows.push_back(schema::LossRow{.step = *number, .loss = loss.get<double>()});
        }
    }
}

void read_metrics(const Json& json, OurMetadata& into) {
    each_object(member(json, "metrics"), [&](const Json& m) {
        const Json& value = member(m, "value");
        if (!value.is_number()) return;
        into.metrics.push_back({.row = {.step = integer<std::int64_t>(m, "step", -1),
                                        .sample = integer<std::int64_t>(m, "sample", -1),
                                        .time = integer<std::int64_t>(m, "time_ns", 0),
                                        .rank = integer(m, "rank", -1),
                                        .value = value.get<double>()},
                                .name = schema::string_member(m, "name")});
    });
}

void read_processes(const Json& json, OurMetadata& into) {
    each_object(member(json, "clocks"), [&](const Json& c) {
        into.rows.push_back(
            schema::ClockRow{.rank = integer(c, "rank", 0),
                             .at_ns = integer<std::int64_t>(c, "time_ns", 0),
                             .offset_ns = integer<std::int64_t>(c, "offset_ns", 0),
                             .uncertainty_ns = integer<std::int64_t>(c, "uncertainty_ns", 0)});
    });
    each_object(member(json, "stops"), [&](const Json& s) {
        const Json& lost = member(s, "lost");
        into.rows.push_back(schema::StopRow{.rank = integer(s, "rank", 0),
                                            .at_ns = integer<std::int64_t>(s, "time_ns", 0),
                                            .first_rank = integer(s, "first_rank", -1),
                                            .lost = lost.is_boolean() && lost.get<bool>(),
                                            .reason = schema::string_member(s, "reason"),
                                            .waiting = schema::string_member(s, "waiting")});
    });
}

Json parse(std::string_view json) {
    Json parsed = schema::parse_json(json);
    return parsed.is_object() ? parsed : Json::object();
}

}  // namespace

std::optional<OurMetadata> read_our_metadata(std::string_view text_of_it) {
    const Json json = schema::parse_json(text_of_it);
    if (!json.is_object()) return std::nullopt;
    OurMetadata ours;
    ours.exported = member(json, "ranks").is_array();
    if (const Json& ended = member(json, "ended"); ended.is_boolean()) ours.ended = ended.get<bool>();
    ours.dropped = std::max<std::int64_t>(integer<std::int64_t>(json, "dropped", 0), 0);
    if (const Json& facts = member(json, "configuration"); facts.is_object()) {
        for (const auto& [key, value] : facts.items()) {
            if (value.is_string())
                ours.rows.push_back(schema::RunInfoRow{.key = key, .value = value.get<std::string>()});
        }
    }
    if (!ours.exported) return ours;
    each_object(json["ranks"], [&](const Json& rank) { ours.ranks.push_back(read_rank(rank)); });
    read_groups(json, ours);
    read_schedule(json, ours);
    read_devices(json, ours);
    read_model(json, ours);
    read_steps(json, ours);
    read_metrics(json, ours);
    read_predictions(json, ours);
    read_processes(json, ours);
    each_object(member(json, "segments"), [&](const Json& s) {
        ours.rows.push_back(schema::SegmentRow{.time = integer<std::int64_t>(s, "time_ns", 0),
                                               .rank = integer(s, "rank", 0),
                                               .address = integer<std::uint64_t>(s, "address", 0),
                                               .bytes = integer<std::int64_t>(s, "bytes", 0),
                                               .stream = integer(s, "stream", -1)});
    });
    return ours;
}

OurRange read_our_range(std::string_view text_of_it) {
    const Json json = parse(text_of_it);
    OurRange range{.module = integer(json, "module", -1), .domain = {}};
    if (json.contains("domain")) range.domain = schema::string_member(json, "domain");
    return range;
}

OurKernel read_our_kernel(std::string_view text_of_it) {
    const Json json = parse(text_of_it);
    OurKernel kernel{.short_name = schema::string_member(json, "short_name"), .collective = {}};
    if (const auto operation = enumerator<schema::Operation>(json, "operation", schema::kOperationNames)) {
        schema::CollectiveRow row;
        row.operation = *operation;
        row.bytes = integer<std::int64_t>(json, "bytes", 0);
        row.padding = integer<std::int64_t>(json, "padding", 0);
        row.group = integer<std::int64_t>(json, "group", 0);
        row.group_size = integer(json, "group_size", 0);
        row.sequence = integer<std::int64_t>(json, "sequence", -1);
        row.unit = integer(json, "unit", -1);
        row.phase =
            enumerator<schema::Phase>(json, "phase", schema::kPhaseNames).value_or(schema::Phase::none);
        kernel.collective = row;
    }
    return kernel;
}

OurMemory read_our_memory(std::string_view text_of_it) {
    const Json json = parse(text_of_it);
    OurMemory memory;
    memory.category = enumerator<schema::MemoryCategory>(json, "category", schema::kMemoryCategoryNames)
                          .value_or(schema::MemoryCategory::other);
    memory.space = enumerator<schema::MemorySpace>(json, "space", schema::kMemorySpaceNames);
    memory.phase =
        enumerator<schema::Phase>(json, "phase", schema::kPhaseNames).value_or(schema::Phase::none);
    memory.unit = integer(json, "unit", -1);
    memory.module = integer(json, "module", -1);
    memory.stream = integer(json, "stream", -1);
    memory.name = schema::string_member(json, "name");
    memory.annotation = schema::string_member(json, "annotation");
    memory.stack = schema::string_member(json, "stack");
    return memory;
}

OurCounter read_our_counter(std::string_view text_of_it) {
    const Json json = parse(text_of_it);
    return {.rank = integer(json, "rank", -1),
            .host = schema::string_member(json, "host"),
            .device = integer(json, "device", -1)};
}

OurSample read_our_sample(std::string_view text_of_it) {
    const Json json = parse(text_of_it);
    return {.weight = integer<std::int64_t>(json, "weight", 0),
            .cpu = integer(json, "cpu", -1),
            .stack = schema::string_member(json, "stack")};
}

}  // namespace shardscope::traces::importer
