#include "traces/import/kineto/kineto_names.h"

#include <array>
#include <string>
#include <utility>

#include "traces/schema/memory_kinds.h"
#include "traces/schema/text.h"

namespace shardscope::traces::importer {

namespace {

// Source: libkineto's ActivityType and its names over the years.
constexpr std::array<std::pair<std::string_view, EventCategory>, 36> kCategories = {{
    {"cpu_op", EventCategory::operation},
    {"kernel", EventCategory::kernel},
    {"cuda_runtime", EventCategory::runtime},
    {"python_function", EventCategory::function},
    {"ac2g", EventCategory::ignored},
    {"cpu_instant_event", EventCategory::instant},
    {"user_annotation", EventCategory::annotation},
    {"gpu_memcpy", EventCategory::memcpy},
    {"gpu_memset", EventCategory::memset},
    {"gpu_user_annotation", EventCategory::ignored},
    {"cuda_driver", EventCategory::driver},
    {"fwdbwd", EventCategory::backward_link},
    {"forward_backward", EventCategory::backward_link},
    {"cuda_sync", EventCategory::synchronization},
    {"overhead", EventCategory::overhead},
    {"operator", EventCategory::operation},
    {"runtime", EventCategory::runtime},
    {"memcpy", EventCategory::memcpy},
    {"memset", EventCategory::memset},
    {"python", EventCategory::annotation},
    {"async", EventCategory::ignored},
    {"async_cpu_to_gpu", EventCategory::ignored},
    {"async_gpu", EventCategory::ignored},
    {"trace", EventCategory::ignored},
    {"cuda_event", EventCategory::ignored},
    {"cuda_profiler_range", EventCategory::ignored},
    {"external_correlation", EventCategory::ignored},
    {"xpu_runtime", EventCategory::runtime},
    {"xpu_driver", EventCategory::driver},
    {"mtia_runtime", EventCategory::runtime},
    {"mtia_ccp_events", EventCategory::mtia},
    {"mtia_insight", EventCategory::ignored},
    {"glow_runtime", EventCategory::runtime},
    {"hpu_op", EventCategory::kernel},
    {"privateuse1_runtime", EventCategory::runtime},
    {"privateuse1_driver", EventCategory::driver},
}};

bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

// The memory kind of one side of "(Pageable -> Device)". Source: ENUM_CUDA_MEM_KIND.
int memory_kind(std::string_view text, int otherwise) {
    constexpr std::array<std::pair<std::string_view, int>, 9> kKinds = {
        {{"Pageable", schema::kMemKindPageable},
         {"Pinned", schema::kMemKindPinned},
         {"Device Static", 5},
         {"Managed Static", 6},
         {"Device", schema::kMemKindDevice},
         {"Array", 3},
         {"Managed", 4},
         {"Disk", schema::kMemKindDisk},
         {"Host", schema::kMemKindPageable}}};
    for (const auto& [word, kind] : kKinds) {
        if (contains(text, word)) return kind;
    }
    return otherwise;
}

}  // namespace

EventCategory category_of(std::string_view cat) {
    for (const auto& [word, category] : kCategories) {
        if (schema::same_but_for_case(cat, word)) return category;
    }
    return EventCategory::other;
}

EventCategory mtia_category(std::string_view name) {
    if (contains(name, "dma_request")) return EventCategory::memcpy;
    if (contains(name, "event_wait")) return EventCategory::synchronization;
    return EventCategory::kernel;
}

CopyKinds copy_kinds(std::string_view name) {
    struct Spelling {
        std::string_view text;
        CopyKinds kinds;
    };
    constexpr int kArray = 3;
    constexpr CopyKinds kToDevice{schema::kCopyHostToDevice, schema::kMemKindPageable,
                                  schema::kMemKindDevice},
        kToHost{schema::kCopyDeviceToHost, schema::kMemKindDevice, schema::kMemKindPageable},
        kWithin{schema::kCopyDeviceToDevice},
        kHost{schema::kCopyHostToHost, schema::kMemKindPageable, schema::kMemKindPageable};
    constexpr std::array kSpellings = {
        Spelling{"HtoD", kToDevice},
        Spelling{"DtoH", kToHost},
        Spelling{"DtoD", kWithin},
        Spelling{"HtoH", kHost},
        Spelling{"PtoP", {10}},
        Spelling{"HtoA", {3, schema::kMemKindPageable, kArray}},
        Spelling{"AtoH", {4, kArray, schema::kMemKindPageable}},
        Spelling{"AtoA", {5, kArray, kArray}},
        Spelling{"AtoD", {6, kArray, schema::kMemKindDevice}},
        Spelling{"DtoA", {7, schema::kMemKindDevice, kArray}},
        Spelling{"HostToDevice", kToDevice},
        Spelling{"DeviceToHost", kToHost},
        Spelling{"DeviceToDevice", kWithin},
        Spelling{"HostToHost", kHost},
        Spelling{"PeerToPeer", {10}},
        Spelling{"Read of a file", {schema::kCopyDiskToHost, schema::kMemKindDisk, schema::kMemKindPinned}},
        Spelling{"Write of a file", {schema::kCopyHostToDisk, schema::kMemKindPinned, schema::kMemKindDisk}},
        Spelling{"(M2D)", kToDevice},
        Spelling{"(H2D)", kToDevice},
        Spelling{"(D2M)", kToHost},
        Spelling{"(D2H)", kToHost},
        Spelling{"(D2D)", kWithin},
        Spelling{"(S2D)", kToDevice},
        Spelling{"(D2S)", kToHost},
    };
    for (const Spelling& spelling : kSpellings) {
        if (!contains(name, spelling.text)) continue;
        CopyKinds kinds = spelling.kinds;
        if (const auto arrow = name.find("->"); arrow != std::string_view::npos) {
            kinds.source = memory_kind(name.substr(0, arrow), kinds.source);
            kinds.destination = memory_kind(name.substr(arrow), kinds.destination);
        }
        return kinds;
    }
    return {};
}

int memset_kind(std::string_view name) {
    const auto open = name.find('(');
    return open == std::string_view::npos ? schema::kMemKindDevice
                                          : memory_kind(name.substr(open), schema::kMemKindDevice);
}

int sync_type(std::string_view name) {
    if (contains(name, "Wait") || contains(name, "event_wait")) return schema::kSyncStreamWait;
    if (contains(name, "Event")) return schema::kSyncEvent;
    if (contains(name, "Stream")) return schema::kSyncStream;
    if (contains(name, "Context") || contains(name, "Device")) return schema::kSyncContext;
    return 0;
}

int overhead_type(std::string_view name) {
    constexpr std::array<std::pair<std::string_view, int>, 7> kTypes = {{{"Driver Compiler", 2},
                                                                         {"Buffer Flush", 3},
                                                                         {"Instrumentation", 4},
                                                                         {"Resource", 5},
                                                                         {"Module Loading", 6},
                                                                         {"Lazy Function", 7},
                                                                         {"Command Buffer", 8}}};
    for (const auto& [word, type] : kTypes) {
        if (contains(name, word)) return type;
    }
    return 1;
}

schema::Operation collective_operation(std::string_view name) {
    std::string text;
    for (const char c : name) {
        if (c != '_' && c != ' ' && text.size() < 64) text += schema::lower_case(c);
    }
    // Longer words come before those that they contain.
    constexpr std::array<std::pair<std::string_view, schema::Operation>, 11> kWords = {
        {{"allgather", schema::Operation::all_gather},
         {"reducescatter", schema::Operation::reduce_scatter},
         {"allreduce", schema::Operation::all_reduce},
         {"alltoall", schema::Operation::all_to_all},
         {"broadcast", schema::Operation::broadcast},
         {"barrier", schema::Operation::barrier},
         {"gather", schema::Operation::gather},
         {"scatter", schema::Operation::scatter},
         {"reduce", schema::Operation::reduce},
         {"send", schema::Operation::send},
         {"recv", schema::Operation::recv}}};
    for (const auto& [word, operation] : kWords) {
        if (contains(text, word)) return operation;
    }
    return schema::Operation::other;
}

std::int64_t element_size(std::string_view data_type) {
    // c10's names of scalar types.
    constexpr std::array<std::pair<std::string_view, std::int64_t>, 18> kTypes = {{{"float", 4},
                                                                                   {"bfloat16", 2},
                                                                                   {"half", 2},
                                                                                   {"double", 8},
                                                                                   {"long", 8},
                                                                                   {"int", 4},
                                                                                   {"short", 2},
                                                                                   {"char", 1},
                                                                                   {"byte", 1},
                                                                                   {"bool", 1},
                                                                                   {"uint16", 2},
                                                                                   {"uint32", 4},
                                                                                   {"uint64", 8},
                                                                                   {"complexhalf", 4},
                                                                                   {"complexfloat", 8},
                                                                                   {"complexdouble", 16},
                                                                                   {"float16", 2},
                                                                                   {"int8", 1}}};
    for (const auto& [word, bytes] : kTypes) {
        if (schema::same_but_for_case(data_type, word)) return bytes;
    }
    return data_type.starts_with("Float8") ? 1 : 0;
}

// Sources: torch.distributed.device_mesh ("mesh_" and the dimension's name, those of torchtitan), Megatron's
// parallel_state.py.
std::string axis_of_group(std::string_view description) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 20> kAxes = {
        {{"dp", "data"},
         {"dp_replicate", "data"},
         {"replicate", "data"},
         {"ddp", "data"},
         {"data_parallel", "data"},
         {"dp_shard", "shard"},
         {"fsdp", "shard"},
         {"tp", "tensor"},
         {"tensor_model_parallel", "tensor"},
         {"pp", "pipeline"},
         {"pipeline_model_parallel", "pipeline"},
         {"cp", "context"},
         {"context_parallel", "context"},
         {"ep", "expert"},
         {"expert_model_parallel", "expert"},
         {"dp_cp", "data+context"},
         {"dp_shard_cp", "shard+context"},
         {"data_parallel_group_with_cp", "data+context"},
         {"tensor_and_data_parallel", "data+tensor"},
         {"model_parallel", "tensor+pipeline"}}};
    if (description == "default_pg" || description == "mesh_default") return "world";
    std::string name = schema::lower_case(description);
    constexpr std::string_view kMesh = "mesh_", kGroup = "_group";
    const bool named = description.ends_with("_GROUP");
    if (named) name.resize(name.size() - kGroup.size());
    const bool of_mesh = name.starts_with(kMesh);  // what is left: "MESH_GROUP" names no dimension
    if (of_mesh) name.erase(0, kMesh.size());
    for (const auto& [word, axis] : kAxes) {
        if (name == word) return std::string(axis);
    }
    return of_mesh || named ? name : "";
}

}  // namespace shardscope::traces::importer
