// A step lifted from a trace: the module tree and what each call did on the host and on the device, without
// the work of FSDP or DDP around it. Plain data, from which workload.h makes Plans. Times in nanoseconds,
// sizes in bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/schema/enums.h"

namespace shardscope::trainer::lift {

struct Item {
    enum class Kind : std::uint8_t {
        allocate,  // index into LiftedStep::buffers
        free,
        kernel,
        memcpy,
        memset,
        gradient,  // index into LiftedStep::parameters; its gradient's memory is allocated here
        ready,     // that gradient is complete
        wait,      // the host waits for the device
        host,      // host time only
    };
    Kind kind = Kind::host;
    int index = -1;
    std::int64_t host_ns = 0;    // the host's own time before it
    std::int64_t device_ns = 0;  // kernel, memcpy, memset
    std::int64_t bytes = 0;      // memcpy, memset
    std::uint8_t copy_kind = 0;  // ENUM_CUDA_MEMCPY_OPER
    std::string name;
};

// A call's own work between two calls of its children, and the backward of that work.
struct Segment {
    std::vector<Item> forward, backward;
};

struct Call {
    std::vector<Segment> own;   // one more than children: before, between and after their calls
    std::vector<int> children;  // nodes
};

// A module, or a stand-in for one. Wrappers (FullyShardedDataParallel, DistributedDataParallel) are not
// nodes.
struct Node {
    int parent = -1;  // -1: this is the root
    std::string name, class_name, attribute;
    bool unit = false;  // an FSDP unit of the recorded run
    std::vector<int> children;
    std::vector<int> parameters;  // ids of the parameters that it owns
    std::vector<int> shared;      // ids of those that it reads and another node owns
    std::vector<Call> calls;      // in one micro-batch, in order
};

struct LiftedParameter {
    std::string name;  // "weight"
    std::int64_t elements = 0;
    std::int64_t rows = 0;  // size of the first dimension; 0: unknown
    bool trained = true;
};

struct LiftedBuffer {
    std::string name;
    traces::schema::MemoryCategory category = traces::schema::MemoryCategory::activations;
    traces::schema::MemorySpace space = traces::schema::MemorySpace::device;
    std::int64_t bytes = 0;
    bool grows = true;  // with the batch
};

struct LiftedStep {
    std::vector<Node> nodes;  // the root first, parents before their children
    std::vector<LiftedParameter> parameters;
    std::vector<LiftedBuffer> buffers;
    std::vector<Item> data;  // before the root's call
    Segment loss;            // after the root's call
    std::vector<Item> tail;  // after the backward, without the optimizer

    std::int64_t elements() const {
        std::int64_t sum = 0;
        for (const LiftedParameter& parameter : parameters) sum += parameter.elements;
        return sum;
    }
    // Visits all items in the order of the members above, which is the same for steps of equal structure.
    template <class Each>
    void for_each_item(const Each& each) {
        const auto all = [&](std::vector<Item>& items) {
            for (Item& item : items) each(item);
        };
        const auto both = [&](Segment& segment) {
            all(segment.forward);
            all(segment.backward);
        };
        all(data);
        for (Node& node : nodes)
            for (Call& call : node.calls)
                for (Segment& segment : call.own) both(segment);
        both(loss);
        all(tail);
    }
};

// Why a step cannot be replayed: calls of modules that are not inside the caller, missing parts. Empty if it
// can be replayed.
std::string fault_of(const LiftedStep& step);

}  // namespace shardscope::trainer::lift
