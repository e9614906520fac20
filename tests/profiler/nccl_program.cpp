// A program that does to a profiler plugin what NCCL does, for tests to record:
// nccl_program VERSION [RANK [PART]]. As this rank it first writes what NCCL writes about its host, or a part
// of it (nccl_dumps.h). It loads the library named by NCCL_PROFILER_PLUGIN as NCCL does, uses that version's
// struct and reports
//   communicator 0xFEDC…10 of rank 1: all_gather number 7, a send to rank 3, and an all_reduce by another
//   thread
//     whose end comes after the communicator and the plugin are gone;
//   communicator 0x22 of rank 0: a broadcast.
// From version 5 on, a call precedes each; the broadcast's call is captured and replayed twice, and a barrier
// consists of a call only. Version 6 adds a collective of the copy engines. A wrong answer exits with 9.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <type_traits>

#include <dlfcn.h>

#include "profiler/inject/nccl_profiler_abi.h"
#include "tests/profiler/nccl_dumps.h"

namespace {

namespace nccl = shardscope::profiler::nccl;

constexpr std::uint64_t kFirst = 0xFEDCBA9876543210, kSecond = 0x22;

void expect(bool right, const char* what) {
    if (right) return;
    std::fprintf(stderr, "not so: %s\n", what);
    std::_Exit(9);
}

struct Said {  // the description of an operation
    const char *function, *data_type, *algorithm, *protocol;
    unsigned function_1, data_type_1, algorithm_1, protocol_1;  // in the numbering of version 1
    std::uint64_t sequence;
    std::size_t count;
    int root, channels, warps;
};
constexpr Said kGather = {"AllGather", "ncclFloat32", "RING", "LL128", 2, 7, 1, 1, 7, 1000, 0, 4, 16};
constexpr Said kReduce = {"AllReduce", "ncclBfloat16", "TREE", "SIMPLE", 4, 9, 0, 2, 3, 500, 0, 2, 8};
constexpr Said kBroadcast = {"Broadcast", "ncclInt8", "NVLS", "LL", 0, 0, 4, 0, 0, 64, 2, 1, 4};
constexpr Said kSend = {"Send", "ncclFloat16", nullptr, nullptr, 6, 6, 0, 0, 0, 12, 3, 2, 0};
constexpr Said kBarrier = {"Barrier", "ncclInt8", nullptr, nullptr, 0, 0, 0, 0, 0, 1, -1, 0, 0};

template <typename About>
void fill(About& about, const Said& said, std::uint64_t communicator) {
    about.count = said.count;
    if constexpr (std::is_same_v<About, nccl::Coll1> || std::is_same_v<About, nccl::P2p1>) {
        about.function = static_cast<std::uint8_t>(said.function_1);
        about.data_type = static_cast<std::uint8_t>(said.data_type_1);
    } else {
        about.function = said.function;
        about.data_type = said.data_type;
    }
    if constexpr (std::is_same_v<About, nccl::Coll1>) {
        about.algorithm = static_cast<std::uint8_t>(said.algorithm_1);
        about.protocol = static_cast<std::uint8_t>(said.protocol_1);
    } else if constexpr (requires { about.algorithm; }) {
        about.algorithm = said.algorithm;
        about.protocol = said.protocol;
    }
    if constexpr (requires { about.communicator; }) {
        about.communicator = communicator;
        about.name = "pipeline";
    }
    if constexpr (requires { about.sequence; }) about.sequence = said.sequence;
    if constexpr (requires { about.root; }) about.root = said.root;
    if constexpr (requires { about.peer; }) about.peer = said.root;
    if constexpr (requires { about.channels; }) about.channels = static_cast<std::uint8_t>(said.channels);
    if constexpr (requires { about.warps; }) about.warps = static_cast<std::uint8_t>(said.warps);
}

template <typename Plugin, typename Type>
struct Player {
    const Plugin& plugin;

    template <typename About>
    void* start(void* context, std::uint64_t type, const Said& said, int rank, std::uint64_t communicator,
                void* parent = nullptr, bool captured = false) {
        // NCCL's descriptors are a union of all kinds of event: more bytes may follow.
        alignas(8) unsigned char room[256] = {};
        nccl::Descriptor<Type, About> d{};
        d.type = static_cast<Type>(type);
        d.parent = parent;
        d.rank = rank;
        fill(d.about, said, communicator);
        if constexpr (requires { d.about.captured; }) d.about.captured = captured;
        std::memcpy(room, &d, sizeof d);
        void* handle = room;
        expect(plugin.start(context, &handle, reinterpret_cast<nccl::AnyDescriptor<Type>*>(room)) == 0,
               "start");
        return handle;
    }
    void stop(void* handle) { expect(plugin.stop(handle) == 0, "stop"); }
};

template <typename Plugin>
int init(const Plugin& plugin, void** context, std::uint64_t id, const char* name, int nodes, int ranks,
         int rank) {
    int mask = -1;
    *context = &mask;
    int result = 0;
    if constexpr (std::is_same_v<Plugin, nccl::Plugin1>) result = plugin.init(context, &mask);
    if constexpr (std::is_same_v<Plugin, nccl::Plugin4>) {
        result = plugin.init(context, &mask, name, id, nodes, ranks, rank, nullptr);
    }
    if constexpr (std::is_same_v<Plugin, nccl::Plugin5>) {
        result = plugin.init(context, id, &mask, name, nodes, ranks, rank, nullptr);
    }
    expect(result == 0, "init");
    return mask;
}

template <typename Plugin, typename Coll, typename P2p>
void play(void* library, const std::string& version) {
    using Type = std::conditional_t<std::is_same_v<Plugin, nccl::Plugin5>, std::uint64_t, std::uint8_t>;
    constexpr bool kHasCalls = std::is_same_v<Plugin, nccl::Plugin5>;
    const auto* plugin = static_cast<const Plugin*>(::dlsym(library, ("ncclProfiler_" + version).c_str()));
    expect(plugin != nullptr && std::strcmp(plugin->name, "Shardscope") == 0, "the plugin's name");
    Player<Plugin, Type> player{*plugin};

    void *first = nullptr, *second = nullptr;
    const int mask = init(*plugin, &first, kFirst, "pipeline", 2, 8, 1);
    init(*plugin, &second, kSecond, nullptr, 1, 2, 0);
    if (std::getenv("SHARDSCOPE_EXPECT_OFF") != nullptr) {
        expect(mask == 0, "nothing is wanted");
        expect(player.template start<Coll>(first, nccl::kColl, kGather, 1, kFirst) == nullptr, "no handle");
        player.stop(nullptr);
        expect(plugin->finalize(first) == 0, "finalize");
        return;
    }
    expect((mask & nccl::kColl) != 0 && (mask & nccl::kP2p) != 0, "operations are wanted");
    expect(((mask & nccl::kCollApi) != 0) == kHasCalls, "calls are wanted where there are any");

    const auto call = [&](auto about, std::uint64_t type, const Said& said, void* context, std::uint64_t id,
                          int rank, bool captured) -> void* {
        if constexpr (kHasCalls) {
            void* handle =
                player.template start<decltype(about)>(context, type, said, rank, id, nullptr, captured);
            player.stop(handle);
            return handle;
        } else {
            static_cast<void>(about), static_cast<void>(type), static_cast<void>(said);
            static_cast<void>(context), static_cast<void>(id), static_cast<void>(rank),
                static_cast<void>(captured);
            return nullptr;
        }
    };

    void* parent = call(nccl::CollApi5(), nccl::kCollApi, kGather, first, kFirst, 1, false);
    void* handle = player.template start<Coll>(first, nccl::kColl, kGather, 1, kFirst, parent);
    expect(handle != nullptr, "a handle");
    expect(plugin->record_state(handle, 3, nullptr) == 0, "a state");
    player.stop(handle);

    parent = call(nccl::P2pApi5(), nccl::kP2pApi, kSend, first, kFirst, 1, false);
    player.stop(player.template start<P2p>(first, nccl::kP2p, kSend, 1, kFirst, parent));

    // Kinds of event that were not requested.
    handle = &handle;
    nccl::AnyDescriptor<Type> proxy{static_cast<Type>(8), nullptr, 1};
    expect(plugin->start(first, &handle, &proxy) == 0 && handle == nullptr, "no handle for a proxy's work");

    void* late = nullptr;
    std::thread([&] {
        void* reduce_call = call(nccl::CollApi5(), nccl::kCollApi, kReduce, first, kFirst, 1, false);
        late = player.template start<Coll>(first, nccl::kColl, kReduce, 1, kFirst, reduce_call);
    }).join();

    parent = call(nccl::CollApi5(), nccl::kCollApi, kBroadcast, second, kSecond, 0, true);
    player.stop(player.template start<Coll>(second, nccl::kColl, kBroadcast, 0, kSecond, parent));
    if constexpr (kHasCalls) {
        Said again = kBroadcast;
        ++again.sequence;
        player.stop(player.template start<Coll>(second, nccl::kColl, again, 0, kSecond, parent));
        call(nccl::CollApi5(), nccl::kCollApi, kBarrier, second, kSecond, 0, false);
    }
    if (version == "v6") {
        expect((mask & nccl::kCopyEngineColl) != 0, "the copy engines' work is wanted");
        Said copy = kGather;
        copy.sequence = 8;
        player.stop(
            player.template start<nccl::CopyEngineColl6>(first, nccl::kCopyEngineColl, copy, 1, kFirst));
    }

    expect(plugin->finalize(first) == 0 && plugin->finalize(second) == 0, "finalize");
    expect(::dlclose(library) == 0, "unloaded");
    player.stop(late);  // NCCL has done this
    player.stop(late);  // NCCL has done this
}

}  // namespace

int main(int argc, char** argv) {
    const char* path = std::getenv("NCCL_PROFILER_PLUGIN");
    if (argc < 2 || path == nullptr) return 2;
    if (argc > 2)
        shardscope::profiler::testing::write_nccl_dumps(std::atoi(argv[2]),
                                                        argc > 3 ? std::atof(argv[3]) : 1);
    const std::string version = argv[1];
    void* library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) std::fprintf(stderr, "%s\n", ::dlerror());
    expect(library != nullptr, "the library loads");
    if (version == "v1") play<nccl::Plugin1, nccl::Coll1, nccl::P2p1>(library, version);
    if (version == "v2") play<nccl::Plugin1, nccl::Coll2, nccl::P2p2>(library, version);
    if (version == "v3") play<nccl::Plugin1, nccl::Coll3, nccl::P2p2>(library, version);
    if (version == "v4") play<nccl::Plugin4, nccl::Coll4, nccl::P2p4>(library, version);
    if (version == "v5" || version == "v6") play<nccl::Plugin5, nccl::Coll4, nccl::P2p4>(library, version);
    return 0;
}
