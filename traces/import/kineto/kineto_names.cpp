#include "traces/import/kineto/kineto_names.h"

#include <array>
#include <string>
#include <utility>

#include "traces/schema/text.h"

namespace shardscope::traces {

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
    constexpr std::array<std::pair<std::string_view, int>, 8> kKinds = {{{"Pageable", kMemKindPageable},
                                                                         {"Pinned", kMemKindPinned},
                                                                         {"Device Static", 5},
                                                                         {"Managed Static", 6},
                                                                         {"Device", kMemKindDevice},
                                                                         {"Array", 3},
                                                                         {"Managed", 4},
                                                                         {"Host", kMemKindPageable}}};
    for (const auto& [word, kind] : kKinds) {
        if (contains(text, word)) return kind;
    }
    return otherwise;
}

}  // namespace

EventCategory category_of(std::string_view cat) {
    for (const auto& [word, category] : kCategories) {
        if (same_but_for_case(cat, word)) return category;
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
    constexpr CopyKinds kToDevice{kCopyHostToDevice, kMemKindPageable, kMemKindDevice},
        kToHost{kCopyDeviceToHost, kMemKindDevice, kMemKindPageable}, kWithin{kCopyDeviceToDevice},
        kHost{kCopyHostToHost, kMemKindPageable, kMemKindPageable};
    constexpr std::array kSpellings = {
        Spelling{"HtoD", kToDevice},
        Spelling{"DtoH", kToHost},
        Spelling{"DtoD", kWithin},
        Spelling{"HtoH", kHost},
        Spelling{"PtoP", {10}},
        Spelling{"HtoA", {3, kMemKindPageable, kArray}},
        Spelling{"AtoH", {4, kArray, kMemKindPageable}},
        Spelling{"AtoA", {5, kArray, kArray}},
        Spelling{"AtoD", {6, kArray, kMemKindDevice}},
        Spelling{"DtoA", {7, kMemKindDevice, kArray}},
        Spelling{"HostToDevice", kToDevice},
        Spelling{"DeviceToHost", kToHost},
        Spelling{"DeviceToDevice", kWithin},
        Spelling{"HostToHost", kHost},
        Spelling{"PeerToPeer", {10}},
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
    return open == std::string_view::npos ? kMemKindDevice : memory_kind(name.substr(open), kMemKindDevice);
}

int sync_type(std::string_view name) {
    if (contains(name, "Wait") || contains(name, "event_wait")) return kSyncStreamWait;
    if (contains(name, "Event")) return kSyncEvent;
    if (contains(name, "Stream")) return kSyncStream;
    if (contains(name, "Context") || contains(name, "Device")) return kSyncContext;
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

Operation collective_operation(std::string_view name) {
    std::string text;
    for (const char c : name) {
        if (c != '_' && c != ' ' && text.size() < 64) text += lower_case(c);
    }
    // Longer words come before those that they contain.
    constexpr std::array<std::pair<std::string_view, Operation>, 11> kWords = {
        {{"allgather", Operation::all_gather},
         {"reducescatter", Operation::reduce_scatter},
         {"allreduce", Operation::all_reduce},
         {"alltoall", Operation::all_to_all},
         {"broadcast", Operation::broadcast},
         {"barrier", Operation::barrier},
         {"gather", Operation::gather},
         {"scatter", Operation::scatter},
         {"reduce", Operation::reduce},
         {"send", Operation::send},
         {"recv", Operation::recv}}};
    for (const auto& [word, operation] : kWords) {
        if (contains(text, word)) return operation;
    }
    return Operation::other;
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
        if (same_but_for_case(data_type, word)) return bytes;
    }
    return data_type.starts_with("Float8") ? 1 : 0;
}

}  // namespace shardscope::traces
