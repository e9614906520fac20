#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include <unistd.h>

#include "trainer/disk/disk_io.h"

namespace shardscope::trainer::disk {

namespace {

class ThreadedIo final : public DiskIo {
  public:
    explicit ThreadedIo(int threads) {
        for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
    }
    ~ThreadedIo() override {
        {
            const std::lock_guard lock(mutex_);
            stop_ = true;
        }
        begun_.notify_all();
        for (std::thread& thread : threads_) thread.join();
    }
    ThreadedIo(const ThreadedIo&) = delete;
    ThreadedIo& operator=(const ThreadedIo&) = delete;

    void begin(DiskPiece& piece) override {
        {
            const std::lock_guard lock(mutex_);
            pieces_.push_back(&piece);
        }
        begun_.notify_one();
    }

    std::vector<EndedPiece> wait() override {
        std::unique_lock lock(mutex_);
        news_.wait(lock, [this] { return woken_ || !ended_.empty(); });
        woken_ = false;
        return std::exchange(ended_, {});
    }

    void wake() override {
        {
            const std::lock_guard lock(mutex_);
            woken_ = true;
        }
        news_.notify_one();
    }

  private:
    static std::int64_t carry_out(const DiskPiece& piece) {
        const auto offset = static_cast<off_t>(piece.offset);
        const ssize_t bytes = piece.writes ? ::pwrite(piece.descriptor, piece.memory, piece.bytes, offset)
                                           : ::pread(piece.descriptor, piece.memory, piece.bytes, offset);
        return bytes < 0 ? -errno : bytes;
    }

    void run() {
        std::unique_lock lock(mutex_);
        while (true) {
            begun_.wait(lock, [this] { return stop_ || !pieces_.empty(); });
            if (pieces_.empty()) return;
            DiskPiece* piece = pieces_.front();
            pieces_.pop_front();
            lock.unlock();
            const std::int64_t bytes = carry_out(*piece);
            lock.lock();
            ended_.push_back({piece, bytes});
            news_.notify_one();
        }
    }

    std::mutex mutex_;
    std::condition_variable begun_, news_;
    std::deque<DiskPiece*> pieces_;  // that no thread has taken
    std::vector<EndedPiece> ended_;
    bool woken_ = false, stop_ = false;
    std::vector<std::thread> threads_;
};

}  // namespace

std::unique_ptr<DiskIo> make_threaded_io(int threads) {
    return std::make_unique<ThreadedIo>(threads);
}

}  // namespace shardscope::trainer::disk
