// Writes a Plan, operation by operation, with the context (phase, module, unit) of each operation.
//
// Tensors are references to a buffer; the buffer is freed, by an operation of the Plan, where its last
// reference ends. PyTorch's reference counts place frees in the same way, so a Plan that is written like the
// PyTorch program allocates and frees like it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trainer/plan/plan.h"

namespace shardscope::trainer::plan {

class PlanBuilder;

// Owns one allocation of the Plan under construction: its destructor emits the free.
class Storage {
  public:
    Storage(PlanBuilder& builder, BufferId buffer);
    ~Storage();
    Storage(const Storage&) = delete;
    Storage& operator=(const Storage&) = delete;
    BufferId buffer() const { return buffer_; }
    // Between the two the buffer has no memory, and so no content.
    void leave();
    void come_back(Stream stream);

  private:
    PlanBuilder* builder_;
    std::weak_ptr<const bool> builder_lives_;  // expires if planning was abandoned
    BufferId buffer_;
    bool away_ = false;
};

// A shared reference to (part of) a buffer. `value` is its identity on the tape, which keeps the gradient
// under that number; -1: it needs no gradient.
struct Tensor {
    std::shared_ptr<Storage> storage;  // null: the buffer's lifetime is managed elsewhere (parameters)
    Arg view;
    int value = -1;
    DType dtype = DType::fp32;

    explicit operator bool() const { return view.buffer >= 0; }
    std::int64_t bytes() const { return view.bytes; }
    std::int64_t elements() const { return view.bytes / size_of(dtype); }
    operator const Arg&() const { return view; }
};

class PlanBuilder {
  public:
    explicit PlanBuilder(PlanKind kind, std::vector<Buffer> persistent);

    // Sets the context of the operations that follow; ~Scope restores it.
    class Scope {
      public:
        Scope(PlanBuilder& builder, Phase phase, int module, int unit);
        ~Scope();
        Scope(const Scope&) = delete;
        Scope& operator=(const Scope&) = delete;

      private:
        PlanBuilder& builder_;
        Phase phase_;
        int module_, unit_;
    };
    Phase phase() const { return phase_; }
    int module() const { return module_; }
    int unit() const { return unit_; }
    void set_micro(int micro) { micro_ = micro; }  // of the operations that follow
    int micro() const { return micro_; }
    // Until its end, kernels and copies of the compute stream go to another one, and are Op::exclusive.
    class Turn {
      public:
        Turn(PlanBuilder& builder, Stream stream) : builder_(builder) { builder_.turn_ = stream; }
        ~Turn() { builder_.turn_.reset(); }
        Turn(const Turn&) = delete;
        Turn& operator=(const Turn&) = delete;

      private:
        PlanBuilder& builder_;
    };
    PlanKind kind() const { return plan_.kind; }

    // A named range until the end of the scope. `module` >= 0: the range represents that module's work.
    class Range {
      public:
        Range(PlanBuilder& builder, std::string_view name, int module = -1);
        ~Range();
        Range(const Range&) = delete;
        Range& operator=(const Range&) = delete;

      private:
        PlanBuilder& builder_;
        bool written_;  // not while the builder was muted
    };

    // While a builder is muted, nothing is written but the ends of what began before: tensors have no memory,
    // and operations are forgotten.
    void mute(bool muted) { muted_ = muted; }
    bool muted() const { return muted_; }

    // Buffers. new_tensor allocates now and frees at the end of its last reference; allocate and free are for
    // buffers whose lifetime the schedule decides.
    Tensor new_tensor(std::string name, MemoryCategory category, std::int64_t elements,
                      DType dtype = DType::fp32, Stream stream = Stream::compute,
                      MemorySpace space = MemorySpace::device);
    // Adds the storage of each tensor that is made from now on to `made`, until another one or the end.
    void watch(std::vector<std::weak_ptr<Storage>>& made) { watched_ = &made; }
    void end_watch(const std::vector<std::weak_ptr<Storage>>& made) {
        if (watched_ == &made) watched_ = nullptr;
    }
    BufferId new_buffer(Buffer buffer);
    void allocate(BufferId buffer, Stream stream);
    void free(BufferId buffer);
    Arg whole(BufferId buffer) const {
        return {buffer, 0, buffers()[static_cast<std::size_t>(buffer)].bytes};
    }
    const std::vector<Buffer>& buffers() const { return plan_.buffers; }

    // Events and waits.
    EventId new_event() { return plan_.events++; }
    void reserve_events(EventId count) { plan_.events = std::max(plan_.events, count); }
    void record(EventId event, Stream stream);
    void wait(EventId event, Stream stream);
    void host_wait(EventId event);
    // `later` waits for all work that is now queued on `earlier`.
    void order(Stream earlier, Stream later);

    // Work on streams.
    Op& kernel(Kernel kernel, std::string_view name, std::vector<Arg> args, std::array<std::int64_t, 6> dims,
               std::int64_t flops = 0, Stream stream = Stream::compute);
    // Converts n elements from fp32 or to it.
    Op& cast(std::string_view name, const Arg& to, DType to_type, const Arg& from, DType from_type,
             std::int64_t n, Stream stream = Stream::compute);
    Op& memcpy(const Arg& to, const Arg& from, int copy_kind, Stream stream = Stream::compute);
    Op& memset(const Arg& to, Stream stream = Stream::compute, int value = 0);
    // `full_bytes`: bytes of the output (all_gather), of the input (reduce_scatter), else of either.
    Op& collective(const CollectiveOp& own, const Arg& output, const Arg& input, std::int64_t full_bytes,
                   Stream stream);
    // An all_to_all of rows on the compute stream: `sent` and `received` as in CollectiveOp::row.
    Op& exchange_rows(const Tensor& output, const Tensor& input, const Tensor& sent, const Tensor& received,
                      std::int64_t row, std::int64_t expected_rows, Group group);
    // A message to, or from, the rank at place `peer` of the pipeline group; order() and events say what it
    // waits for, and what waits for it.
    Op& send(const Tensor& from, int peer, Stream stream = Stream::send);
    Op& receive(const Tensor& into, int peer, Stream stream = Stream::receive);
    // A message to the next rank of the context group, or from the previous one, on Stream::ring_send or
    // Stream::ring_receive.
    Op& send_on(const Tensor& from);
    Op& receive_on(const Tensor& into);
    Op& host_call(HostCall call, std::string_view name, std::vector<Arg> args);
    // For Op::segments.
    std::int32_t add_segments(std::vector<Segment> segments);

    void carry(EventId from, EventId to) { plan_.carry.emplace_back(from, to); }
    // Throws std::logic_error if a range is open or a tensor of the Plan is still referenced.
    Plan take();

  private:
    friend class Storage;
    Op& emit(OpKind kind, Stream stream);
    Op& append(OpKind kind, Stream stream);
    Op& message(const CollectiveOp& own, const Tensor& tensor, Stream stream);
    // Does `work` in a destructor, which must not throw: the next emit() or take() throws its exception.
    template <class Work>
    void at_the_end(const Work& work) noexcept {
        try {
            work();
        } catch (...) {
            failure_ = std::current_exception();
        }
    }
    std::int32_t intern(std::string_view name);

    Plan plan_;
    std::shared_ptr<const bool> lives_ = std::make_shared<const bool>(true);
    std::unordered_map<std::string, std::int32_t> names_;
    Phase phase_ = Phase::none;
    int module_ = -1, unit_ = -1;
    int micro_ = 0;
    int open_ranges_ = 0;
    bool muted_ = false;
    std::optional<Stream> turn_;
    std::vector<std::weak_ptr<Storage>>* watched_ = nullptr;
    Op forgotten_;      // the latest operation while muted
    int storages_ = 0;  // Storage objects that are alive
    std::exception_ptr failure_;
};

}  // namespace shardscope::trainer::plan
