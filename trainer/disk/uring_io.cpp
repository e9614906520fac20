#include <array>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>

#include <liburing.h>
#include <sys/eventfd.h>

#include "traces/store/file_descriptor.h"
#include "trainer/disk/disk_io.h"

namespace shardscope::trainer::disk {

namespace {

// An io_uring that one thread uses. Others wake it through a counter, of which a read is always under way.
class UringIo final : public DiskIo {
  public:
    UringIo() : counter_(::eventfd(0, EFD_CLOEXEC)) {
        usable_ = counter_ && ::io_uring_queue_init(kMostPieces + 1, &ring_, 0) == 0;
        if (!usable_) return;
        io_uring_probe* known = ::io_uring_get_probe_ring(&ring_);  // null before Linux 5.6, as are the reads
        works_ = known && ::io_uring_opcode_supported(known, IORING_OP_READ) != 0;
        if (known) ::io_uring_free_probe(known);
        if (works_) listen();
    }
    ~UringIo() override {
        if (works_) drain();
        if (usable_) ::io_uring_queue_exit(&ring_);
    }
    UringIo(const UringIo&) = delete;
    UringIo& operator=(const UringIo&) = delete;

    bool works() const { return works_; }

    void begin(DiskPiece& piece) override {
        io_uring_sqe& entry = free_entry();
        const auto bytes = static_cast<unsigned>(piece.bytes);
        const auto offset = static_cast<std::uint64_t>(piece.offset);
        if (piece.writes) {
            ::io_uring_prep_write(&entry, piece.descriptor, piece.memory, bytes, offset);
        } else {
            ::io_uring_prep_read(&entry, piece.descriptor, piece.memory, bytes, offset);
        }
        ::io_uring_sqe_set_data(&entry, &piece);
    }

    std::vector<EndedPiece> wait() override {
        // Interrupted, or the kernel is short of memory: what has ended is taken, the rest is tried again.
        const int result = ::io_uring_submit_and_wait(&ring_, 1);
        if (result < 0 && result != -EINTR && result != -EAGAIN && result != -EBUSY)
            throw std::system_error(-result, std::generic_category(), "io_uring");
        std::vector<EndedPiece> ended;
        std::array<io_uring_cqe*, kMostPieces + 1> entries{};
        const unsigned count = ::io_uring_peek_batch_cqe(&ring_, entries.data(), entries.size());
        for (unsigned i = 0; i < count; ++i) {
            auto* piece = static_cast<DiskPiece*>(::io_uring_cqe_get_data(entries[i]));
            if (piece) {
                ended.push_back({piece, entries[i]->res});
            } else {
                listen();
            }
        }
        ::io_uring_cq_advance(&ring_, count);
        entries_ -= count;
        return ended;
    }

    void wake() override { ::eventfd_write(counter_.get(), 1); }

  private:
    io_uring_sqe& free_entry() {
        io_uring_sqe* entry = ::io_uring_get_sqe(&ring_);
        for (; !entry; entry = ::io_uring_get_sqe(&ring_)) {
            const int result = ::io_uring_submit(&ring_);
            if (result < 0 && result != -EINTR && result != -EAGAIN && result != -EBUSY)
                throw std::system_error(-result, std::generic_category(), "io_uring");
        }
        ++entries_;
        return *entry;
    }
    // Waits for all that the kernel has taken, by looking, since its calls may be what failed.
    void drain() {
        wake();
        while (entries_ > ::io_uring_sq_ready(&ring_)) {
            io_uring_cqe* entry = nullptr;
            if (::io_uring_peek_cqe(&ring_, &entry) == 0) {
                ::io_uring_cqe_seen(&ring_, entry);
                --entries_;
            } else {
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            }
        }
    }
    void listen() {
        io_uring_sqe& entry = free_entry();
        ::io_uring_prep_read(&entry, counter_.get(), &count_, sizeof count_, 0);
        ::io_uring_sqe_set_data(&entry, nullptr);
    }

    traces::store::FileDescriptor counter_;
    eventfd_t count_ = 0;
    io_uring ring_{};
    bool usable_ = false, works_ = false;
    unsigned entries_ = 0;  // that have not ended, submitted or not
};

}  // namespace

std::unique_ptr<DiskIo> make_uring_io() {
    auto io = std::make_unique<UringIo>();
    return io->works() ? std::move(io) : nullptr;
}

}  // namespace shardscope::trainer::disk
