// Memory for what is received before it is summed: pieces that are kept and reused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace shardscope::trainer::comm {

class ScratchPool {
  public:
    // A piece of the pool, returned by the destructor.
    class Lease {
      public:
        Lease(ScratchPool& pool, std::size_t slot) : pool_(&pool), slot_(slot) {}
        Lease(Lease&& other) noexcept
            : pool_(std::exchange(other.pool_, nullptr)), slot_(std::exchange(other.slot_, 0)) {}
        Lease& operator=(Lease&& other) noexcept {
            std::swap(pool_, other.pool_);
            std::swap(slot_, other.slot_);
            return *this;
        }
        Lease(const Lease&) = delete;
        Lease& operator=(const Lease&) = delete;
        ~Lease() {
            if (pool_) pool_->slots_[slot_].used = false;
        }
        std::byte* data() const { return pool_->slots_[slot_].data.get(); }

      private:
        ScratchPool* pool_;
        std::size_t slot_;
    };

    // `most`: maximum of pieces in use at a time.
    explicit ScratchPool(std::size_t most) : most_(most) {}

    // Nullopt: all pieces are in use; ask again later.
    std::optional<Lease> take(std::int64_t bytes) {
        Slot* chosen = nullptr;  // the largest free one
        for (Slot& slot : slots_) {
            if (!slot.used && (!chosen || slot.bytes > chosen->bytes)) chosen = &slot;
        }
        if (!chosen) {
            if (slots_.size() == most_) return std::nullopt;
            chosen = &slots_.emplace_back();
        }
        if (chosen->bytes < bytes) {
            chosen->data.reset();
            chosen->bytes = 0;
            chosen->data = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(bytes));
            chosen->bytes = bytes;
        }
        chosen->used = true;
        return Lease(*this, static_cast<std::size_t>(chosen - slots_.data()));
    }

  private:
    struct Slot {
        std::unique_ptr<std::byte[]> data;
        std::int64_t bytes = 0;
        bool used = false;
    };
    std::size_t most_;
    std::vector<Slot> slots_;
};

}  // namespace shardscope::trainer::comm
