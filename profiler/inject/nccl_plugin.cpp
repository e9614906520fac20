// NCCL's profiler plugin: the structs that NCCL looks for in the library named by NCCL_PROFILER_PLUGIN, one
// for each version of its interface, and the functions behind them. Any thread of the program runs this.
//
// NCCL ends events late: after the communicator is gone, or after it has unloaded the plugin (the library is
// linked so that it stays). Nothing can go wrong with that here, because a handle is a number, not an
// object, and what we know about a communicator is never freed.
#include <atomic>
#include <cstdint>
#include <cstdlib>

#include "profiler/inject/nccl_profiler_abi.h"
#include "profiler/inject/nccl_records.h"
#include "profiler/inject/process_log.h"
#include "profiler/inject/text.h"

namespace shardscope::profiler::inject {
namespace {

using nccl::Descriptor;

// What we know about a communicator; NCCL passes it back with each event, even late ones, so none is ever
// freed.
struct Communicator {
    std::uint64_t id;
    std::atomic<bool> told;  // sent to the reader
    Communicator* before;    // the one made before this one; `communicators` is the newest
};
std::atomic<Communicator*> communicators{nullptr};

// An event, the same for every version of the interface.
struct Event {
    NcclEvent kind = NcclEvent::operation;
    const void* parent = nullptr;
    std::uint64_t communicator = 0;
    std::int64_t sequence = -1;
    std::int64_t count = -1;
    int rank = 0, root = -1, channels = -1, warps = -1;
    bool captured = false;
    const char *function = nullptr, *data_type = nullptr, *algorithm = nullptr, *protocol = nullptr;
};

template <std::size_t N>
const char* name_of(const char* const (&names)[N], unsigned number) {
    return number < N ? names[number] : nullptr;
}

// At most N-1 bytes; the rest of the field is zero.
template <std::size_t N>
void copy_name(char (&to)[N], const char* from) {
    std::size_t i = 0;
    if (from != nullptr) {
        for (; i + 1 < N && from[i] != '\0'; ++i) to[i] = from[i];
    }
    for (; i < N; ++i) to[i] = '\0';
}

// --- writing -----------------------------------------------------------------------------------------------

// Sends the communicator to the reader, even before the window opens: later events refer to it.
void tell(std::uint64_t id, const char* name, int nodes, int ranks, int rank) {
    if (stopped()) return;
    const Entered thread;
    if (!thread) return;
    const Text text = narrow_text(name);
    const std::size_t bytes = sizeof(NcclCommunicatorRecord) + padded_size(text);
    auto* r = thread->writer.begin<NcclCommunicatorRecord>(kNcclCommunicator, 0, bytes);
    if (r == nullptr) return;
    r->communicator = id;
    r->rank = rank;
    r->ranks = ranks;
    r->nodes = nodes;
    r->reserved = 0;
    copy_text(r + 1, text);
    r->ticks = thread->writer.now();
    thread->writer.publish();
}

// The event's handle, or null when it was not recorded.
void* start(const Event& event) {
    const Entered thread;
    if (!thread) return nullptr;
    // Unique in the process without asking other threads: the number of the log, then a count.
    const std::uint64_t id = (std::uint64_t{thread->writer.log()} << 40) | ++thread->next_range;
    auto* r = thread->writer.begin<NcclStartRecord>(kNcclStart, 0);
    if (r == nullptr) return nullptr;
    r->id = id;
    r->parent = reinterpret_cast<std::uintptr_t>(event.parent);
    r->communicator = event.communicator;
    r->sequence = event.sequence;
    r->count = event.count;
    r->rank = event.rank;
    r->root = event.root;
    r->channels = static_cast<std::int16_t>(event.channels);
    r->warps = static_cast<std::int16_t>(event.warps);
    r->event = event.kind;
    r->captured = event.captured ? 1 : 0;
    r->reserved = 0;
    copy_name(r->function, event.function);
    copy_name(r->data_type, event.data_type);
    copy_name(r->algorithm, event.algorithm);
    copy_name(r->protocol, event.protocol);
    r->ticks = thread->writer.now();
    thread->writer.publish();
    return reinterpret_cast<void*>(id);
}

// --- descriptors of the versions ---------------------------------------------------------------------------

// Casts the descriptor to the longer struct that its type says it is.
template <typename About, typename Type>
const Descriptor<Type, About>& as(const nccl::AnyDescriptor<Type>& any) {
    return reinterpret_cast<const Descriptor<Type, About>&>(any);
}

template <typename About, typename Type>
Event common(const Descriptor<Type, About>& d) {
    Event event;
    event.parent = d.parent;
    event.rank = d.rank;
    event.count = static_cast<std::int64_t>(d.about.count);
    return event;
}

Event read_coll(const Descriptor<std::uint8_t, nccl::Coll1>& d) {
    Event event = common(d);
    event.communicator = d.about.communicator;
    event.sequence = static_cast<std::int64_t>(d.about.sequence);
    event.root = d.about.root;
    event.channels = d.about.channels;
    event.warps = d.about.warps;
    event.function = name_of(nccl::kFunctions1, d.about.function);
    event.data_type = name_of(nccl::kDataTypes1, d.about.data_type);
    event.algorithm = name_of(nccl::kAlgorithms1, d.about.algorithm);
    event.protocol = name_of(nccl::kProtocols1, d.about.protocol);
    return event;
}

Event read_p2p(const Descriptor<std::uint8_t, nccl::P2p1>& d) {
    Event event = common(d);
    event.communicator = d.about.communicator;
    event.root = d.about.peer;
    event.function = name_of(nccl::kFunctions1, d.about.function);
    event.data_type = name_of(nccl::kDataTypes1, d.about.data_type);
    return event;
}

// Versions 2 to 6 use the same member names.
template <typename Type, typename About>
Event read_coll(const Descriptor<Type, About>& d) {
    Event event = common(d);
    event.sequence = static_cast<std::int64_t>(d.about.sequence);
    event.root = d.about.root;
    event.channels = d.about.channels;
    event.warps = d.about.warps;
    event.function = d.about.function;
    event.data_type = d.about.data_type;
    event.algorithm = d.about.algorithm;
    event.protocol = d.about.protocol;
    if constexpr (requires { d.about.communicator; }) event.communicator = d.about.communicator;
    return event;
}

template <typename Type, typename About>
Event read_p2p(const Descriptor<Type, About>& d) {
    Event event = common(d);
    event.root = d.about.peer;
    event.function = d.about.function;
    event.data_type = d.about.data_type;
    if constexpr (requires { d.about.channels; }) event.channels = d.about.channels;
    if constexpr (requires { d.about.communicator; }) event.communicator = d.about.communicator;
    return event;
}

template <typename About>
Event read_call(const Descriptor<std::uint64_t, About>& d) {
    Event event = common(d);
    event.kind = NcclEvent::call;
    event.captured = d.about.captured;
    event.function = d.about.function;
    event.data_type = d.about.data_type;
    if constexpr (requires { d.about.root; }) event.root = d.about.root;
    return event;
}

Event read_copy_engine(const Descriptor<std::uint64_t, nccl::CopyEngineColl6>& d) {
    Event event = common(d);
    event.sequence = static_cast<std::int64_t>(d.about.sequence);
    event.root = d.about.root;
    event.function = d.about.function;
    event.data_type = d.about.data_type;
    event.algorithm = "COPY_ENGINE";  // no kernel runs
    return event;
}

// --- the functions of the structs --------------------------------------------------------------------------

// Whether NCCL's events are requested at all.
bool wanted() {
    return join_session() && (session()->sources & kSourceNccl) != 0;
}

int init(void** context, int* mask, std::uint64_t wanted_events, std::uint64_t id) {
    *context = nullptr;
    *mask = 0;
    if (!wanted()) return nccl::kSuccess;
    auto* communicator = static_cast<Communicator*>(std::calloc(1, sizeof(Communicator)));
    if (communicator == nullptr) return nccl::kSuccess;
    communicator->id = id;
    communicator->before = communicators.load(std::memory_order_relaxed);
    while (
        !communicators.compare_exchange_weak(communicator->before, communicator, std::memory_order_relaxed)) {
    }
    *context = communicator;
    *mask = static_cast<int>(wanted_events);
    return nccl::kSuccess;
}

int init_1(void** context, int* mask) {
    return init(context, mask, nccl::kColl | nccl::kP2p, 0);
}

int init_4(void** context, int* mask, const char* name, std::uint64_t id, int nodes, int ranks, int rank,
           nccl::Logger) {
    const int result = init(context, mask, nccl::kColl | nccl::kP2p, id);
    if (*context != nullptr) tell(id, name, nodes, ranks, rank);
    return result;
}

// Enabling a lower kind of event enables its parents too: so the calls are requested explicitly.
constexpr std::uint64_t kEvents5 = nccl::kCollApi | nccl::kColl | nccl::kP2pApi | nccl::kP2p;

template <std::uint64_t kEvents>
int init_new(void** context, std::uint64_t id, int* mask, const char* name, int nodes, int ranks, int rank,
             nccl::Logger) {
    const int result = init(context, mask, kEvents, id);
    if (*context != nullptr) tell(id, name, nodes, ranks, rank);
    return result;
}

// Up to version 3 the first operation describes its communicator, without its number of ranks.
void tell_once(Communicator& communicator, const char* name, const Event& event) {
    if (communicator.told.load(std::memory_order_relaxed)) return;
    if (!communicator.told.exchange(true, std::memory_order_relaxed)) {
        tell(event.communicator, name, 0, 0, event.rank);
    }
}

template <typename Coll, typename P2p>
int start_old(void* context, void** handle, nccl::OldDescriptor* descriptor) {
    *handle = nullptr;
    if (context == nullptr || !recording()) return nccl::kSuccess;
    const bool coll = descriptor->type == nccl::kColl;
    if (!coll && descriptor->type != nccl::kP2p) return nccl::kSuccess;
    Event event = coll ? read_coll(as<Coll>(*descriptor)) : read_p2p(as<P2p>(*descriptor));
    event.parent = nullptr;  // a group, which is not recorded
    auto& communicator = *static_cast<Communicator*>(context);
    if constexpr (requires(Coll about) { about.communicator; }) {
        tell_once(communicator, coll ? as<Coll>(*descriptor).about.name : as<P2p>(*descriptor).about.name,
                  event);
    } else {
        event.communicator = communicator.id;
    }
    *handle = start(event);
    return nccl::kSuccess;
}

int start_new(void* context, void** handle, nccl::NewDescriptor* descriptor) {
    *handle = nullptr;
    if (context == nullptr || !recording()) return nccl::kSuccess;
    Event event;
    switch (descriptor->type) {
        case nccl::kCollApi:
            event = read_call(as<nccl::CollApi5>(*descriptor));
            break;
        case nccl::kP2pApi:
            event = read_call(as<nccl::P2pApi5>(*descriptor));
            break;
        case nccl::kColl:
            event = read_coll(as<nccl::Coll4>(*descriptor));
            break;
        case nccl::kP2p:
            event = read_p2p(as<nccl::P2p4>(*descriptor));
            break;
        case nccl::kCopyEngineColl:
            event = read_copy_engine(as<nccl::CopyEngineColl6>(*descriptor));
            break;
        default:
            return nccl::kSuccess;
    }
    if (event.kind == NcclEvent::call) event.parent = nullptr;  // a group, which is not recorded
    event.communicator = static_cast<const Communicator*>(context)->id;
    *handle = start(event);
    return nccl::kSuccess;
}

// Events that began while we recorded are ended even after the window has closed.
int stop(void* handle) {
    if (handle == nullptr || stopped()) return nccl::kSuccess;
    const Entered thread;
    if (!thread) return nccl::kSuccess;
    if (auto* r = thread->writer.begin<NcclStopRecord>(kNcclStop, 0)) {
        r->ticks = thread->writer.now();
        r->id = reinterpret_cast<std::uintptr_t>(handle);
        thread->writer.publish();
    }
    return nccl::kSuccess;
}

// States belong to kinds of event that are not recorded.
int record_state(void*, int, void*) {
    return nccl::kSuccess;
}

// The communicator is kept: NCCL may still end events of it, or begin some.
int finalize(void*) {
    return nccl::kSuccess;
}

constexpr char kName[] = "Shardscope";

}  // namespace
}  // namespace shardscope::profiler::inject

// The names that NCCL looks up, the newest that it knows first.
namespace inject = shardscope::profiler::inject;
namespace nccl = shardscope::profiler::nccl;

#define SHARDSCOPE_EXPORT __attribute__((visibility("default"))) extern
extern "C" {  // NOLINTBEGIN(readability-identifier-naming): NCCL's names
SHARDSCOPE_EXPORT const nccl::Plugin1 ncclProfiler_v1, ncclProfiler_v2, ncclProfiler_v3;
SHARDSCOPE_EXPORT const nccl::Plugin4 ncclProfiler_v4;
SHARDSCOPE_EXPORT const nccl::Plugin5 ncclProfiler_v5, ncclProfiler_v6;

const nccl::Plugin1 ncclProfiler_v1 = {
    inject::kName, &inject::init_1,       &inject::start_old<nccl::Coll1, nccl::P2p1>,
    &inject::stop, &inject::record_state, &inject::finalize};
const nccl::Plugin1 ncclProfiler_v2 = {
    inject::kName, &inject::init_1,       &inject::start_old<nccl::Coll2, nccl::P2p2>,
    &inject::stop, &inject::record_state, &inject::finalize};
const nccl::Plugin1 ncclProfiler_v3 = {
    inject::kName, &inject::init_1,       &inject::start_old<nccl::Coll3, nccl::P2p2>,
    &inject::stop, &inject::record_state, &inject::finalize};
const nccl::Plugin4 ncclProfiler_v4 = {
    inject::kName, &inject::init_4,       &inject::start_old<nccl::Coll4, nccl::P2p4>,
    &inject::stop, &inject::record_state, &inject::finalize};
const nccl::Plugin5 ncclProfiler_v5 = {inject::kName,         &inject::init_new<inject::kEvents5>,
                                       &inject::start_new,    &inject::stop,
                                       &inject::record_state, &inject::finalize};
const nccl::Plugin5 ncclProfiler_v6 = {
    inject::kName,         &inject::init_new<inject::kEvents5 | nccl::kCopyEngineColl>,
    &inject::start_new,    &inject::stop,
    &inject::record_state, &inject::finalize};
}  // NOLINTEND(readability-identifier-naming)
