// Numbers things in order of first occurrence: threads, streams, domains, ranks. There are few of them and
// many rows that refer to them, so a look-up has to be cheap. Internal to the store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardscope::traces::store {

// A thing is identified by two integers (the second may be unused).
struct SlotKey {
    std::int64_t a = 0, b = 0;
    bool operator==(const SlotKey&) const = default;
};

// Open addressing over a power of two; the latest result is cached, since consecutive rows often share a
// thread.
class Slots {
  public:
    std::uint32_t of(std::int64_t a, std::int64_t b = 0) {
        const SlotKey key{a, b};
        if (!keys_.empty() && key == keys_[last_]) return last_;
        if (2 * (keys_.size() + 1) > table_.size()) grow();
        std::size_t at = hash(key) & (table_.size() - 1);
        while (table_[at] != 0 && !(keys_[table_[at] - 1] == key)) at = (at + 1) & (table_.size() - 1);
        if (table_[at] == 0) {
            keys_.push_back(key);
            table_[at] = static_cast<std::uint32_t>(keys_.size());
        }
        last_ = table_[at] - 1;
        return last_;
    }
    std::size_t size() const { return keys_.size(); }
    const SlotKey& operator[](std::size_t slot) const { return keys_[slot]; }
    const std::vector<SlotKey>& keys() const { return keys_; }

  private:
    static std::size_t hash(const SlotKey& key) {
        const std::uint64_t mixed = (static_cast<std::uint64_t>(key.a) * 0x9E3779B97F4A7C15) ^
                                    (static_cast<std::uint64_t>(key.b) * 0xC2B2AE3D27D4EB4F);
        return static_cast<std::size_t>(mixed ^ mixed >> 29);
    }
    void grow() {
        table_.assign(table_.empty() ? 64 : 2 * table_.size(), 0);
        for (std::size_t i = 0; i < keys_.size(); ++i) {
            std::size_t at = hash(keys_[i]) & (table_.size() - 1);
            while (table_[at] != 0) at = (at + 1) & (table_.size() - 1);
            table_[at] = static_cast<std::uint32_t>(i + 1);
        }
    }
    std::vector<SlotKey> keys_;
    std::vector<std::uint32_t> table_;  // 0 free, else the slot + 1
    std::uint32_t last_ = 0;
};

}  // namespace shardscope::traces::store
