// The streams, communicators and shared cores of a cluster in virtual time: which items are on each stream,
// when they begin and when they end. There is one set of streams per class of ranks (rank_classes.h).
// Single-threaded; times are nanoseconds from the start of the run.
//
// An item begins when it heads its stream and what it waits for has happened. A collective then waits for the
// other members of its communicator and ends for all at the same time. If ranks share cores, all running work
// gets an equal part of them: `service` is the time that work would have got alone, and all running work
// gains it at the same rate. If ranks share a device, each of those that it works for gets an equal part of
// its kernels' rate, and so of each direction of its bus; the latency of an item takes none of it. Copies
// to and from a disk take no core and run beside everything.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <queue>
#include <vector>

#include "trainer/device/stream_event.h"
#include "trainer/plan/plan.h"
#include "trainer/sim/rank_classes.h"

namespace shardscope::trainer::sim {

using Time = std::int64_t;
inline constexpr Time kNever = std::numeric_limits<Time>::max();

// What an item uses of its device, which the ranks of one device share.
enum class Engine : std::uint8_t { kernels, to_device, to_host, none };
inline constexpr std::size_t kEngines = 3;

struct StreamItem {
    enum class Kind : std::uint8_t { work, collective, mark };
    Kind kind = Kind::mark;
    Time duration = 0;       // if it runs alone; for a collective, from the last member's arrival
    int communicator = -1;   // collective: index into RankClasses::communicators
    double beside_work = 1;  // collective: factor of its duration while the hosts work
    Engine engine = Engine::none;
    Time latency = 0;        // the part of its duration before it uses the engine
    bool takes_core = true;  // of the device or, on a processor, one of its cores
    device::Waits waits;
    // For the listener.
    const plan::Plan* plan = nullptr;
    const plan::Op* op = nullptr;
    std::int64_t step = 0, correlation = 0, sequence = 0;
};

// Notified of each kernel, copy, memset and collective when it has ended.
class StreamListener {
  public:
    virtual ~StreamListener() = default;
    virtual void ended(int rank_class, const StreamItem& item, Time start, Time end) = 0;
};

// The cores that the ranks of a node share.
struct SharedCores {
    int count = 0;     // 0: nothing is shared
    Curve busy_share;  // share of a core's speed, over the number of busy cores
    Time wake = 0;     // until an idle core starts; without cores: an idle device
};

class VirtualDevice {
  public:
    VirtualDevice(const RankClasses& ranks, SharedCores cores, StreamListener& listener);

    static device::StreamIndex stream(int rank_class, plan::Stream use) {
        return rank_class * plan::kStreams + static_cast<int>(use);
    }

    // Both take effect at now().
    device::StreamEvent enqueue(device::StreamIndex stream, const StreamItem& item);
    void begin_host_work(int rank_class, Time duration);

    bool happened(device::StreamEvent event) const {
        return event.stream < 0 ||
               streams_[static_cast<std::size_t>(event.stream)].completed >= event.sequence;
    }
    // The hosts wait: what runs beside them has the cores to itself until they have work again.
    void hosts_wait();
    void hosts_work() { waiting_ = false; }
    bool host_works(int rank_class) const { return host_works_[static_cast<std::size_t>(rank_class)]; }

    Time now() const { return now_; }
    // When the next piece of work ends; kNever: nothing runs.
    Time next() const;
    // Advances to a time that is not after next().
    void advance(Time to);
    // Advances to next() and ends the work that ends there.
    void complete();

  private:
    struct StreamState {
        std::deque<StreamItem> queue;
        std::uint64_t issued = 0, completed = 0;
        bool busy = false;  // the head has begun or, in a collective, has arrived
        Time start = 0;
    };
    struct Job {
        double finish = 0;  // in service; of what takes no core, a time
        std::uint64_t order = 0;
        int ranks = 0;
        device::StreamIndex stream = -1;
        int communicator = -1, host = -1;  // exactly one of the three
        std::size_t share = 0;             // index into shares_
        Time on_engine = 0;                // what it will use of its engine after its latency
        double beside_work = 1;
        bool operator>(const Job& other) const {
            return finish != other.finish ? finish > other.finish : order > other.order;
        }
    };

    // What running work gains service from at one rate: the cores with all that nothing slows, or one engine
    // of devices that look the same.
    struct Share {
        std::priority_queue<Job, std::vector<Job>, std::greater<>> running;
        std::int64_t ranks = 0;  // that it works for: on all nodes, or on one device
        double service = 0;
    };

    double rate(const Share& share) const;
    Time next(const Share& share) const;
    void begin(Job job, Time duration);
    void begin_beside(device::StreamIndex stream, Time duration);
    void use_engine(Job job);
    void count(const Job& job, int change);
    void end(const Job& job);
    const RankClass& class_of(device::StreamIndex stream) const {
        return ranks_.classes[static_cast<std::size_t>(stream / plan::kStreams)];
    }
    void end_head(device::StreamIndex stream);
    void start_heads(int rank_class);
    bool start_head(device::StreamIndex stream);
    Time waking(device::StreamIndex stream, int ranks);
    void arrive(device::StreamIndex stream, const StreamItem& item);
    void start_collective(int communicator);
    void free_link(int link);

    const RankClasses& ranks_;
    const SharedCores cores_;  // per node
    StreamListener& listener_;
    std::vector<StreamState> streams_;
    int used_;                                               // of each class: the first ones
    std::vector<std::vector<device::StreamIndex>> arrived_;  // by communicator
    struct Link {
        bool busy = false;
        std::deque<int> next;  // communicators whose message waits for it
    };
    std::vector<Link> links_;
    std::vector<bool> host_works_;                                       // by class
    std::vector<bool> in_turn_;                                          // by class: an exclusive item runs
    std::priority_queue<Job, std::vector<Job>, std::greater<>> beside_;  // what takes no core
    std::vector<Share> shares_;
    // By class: its work that runs on each engine, if devices are shared.
    std::vector<std::array<int, kEngines>> on_engines_;
    int running_work_ = 0;    // kernels, copies and memsets
    bool waiting_ = false;    // the hosts
    bool slowed_ = false;     // a collective beside their work runs
    std::int64_t freed_ = 0;  // ranks whose work ended just now and whose cores have no new work yet
    std::uint64_t jobs_ = 0;
    Time now_ = 0;
};

}  // namespace shardscope::trainer::sim
