// Streams that read and write files: queues of transfers between memory and the bytes of a file, carried out
// in pieces by one thread over a DiskIo.
//
// Each stream is in order: its events happen one after the other. Its transfers overlap nevertheless, so that
// the disk always has enough to do: the next one begins once what it waits for has happened and all pieces of
// those before it are under way, unless both touch the same bytes.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "profiler/base/clock.h"
#include "profiler/log/thread_log.h"
#include "trainer/collective/delays.h"
#include "trainer/device/stream_event.h"
#include "trainer/disk/disk_files.h"
#include "trainer/disk/disk_io.h"

namespace shardscope::trainer::disk {

struct DiskTransfer {
    const DiskFile* file = nullptr;  // null: nothing is moved, the item only waits
    bool writes = false;             // memory into the file; else the file into memory
    std::byte* memory = nullptr;
    std::int64_t offset = 0, bytes = 0;
    // What it belongs to, for messages and the recorder.
    int rank = 0;
    std::int64_t step = 0;
    profiler::DeviceWork work;
};

// Called on the streams' thread.
struct DiskHooks {
    // A transfer had its stream from `start` to `end`, after the one before it.
    std::function<void(const DiskTransfer&, profiler::Ticks start, profiler::Ticks end)> ended;
    // A transfer failed; `reason`: a clause. Without a file: all that may follow would. Must lead to fail().
    std::function<void(const DiskTransfer&, const std::string& reason)> failed;
};

class DiskStreams {
  public:
    // The indices of these streams begin here, beyond those of any device.
    static constexpr device::StreamIndex kFirst = 1 << 24;
    static bool has(device::StreamIndex stream) { return stream >= kFirst; }

    // `delays`: null: none.
    DiskStreams(std::unique_ptr<DiskIo> io, DiskHooks hooks, collective::Delays* delays = nullptr);
    ~DiskStreams() { stop(); }
    DiskStreams(const DiskStreams&) = delete;
    DiskStreams& operator=(const DiskStreams&) = delete;

    // As those of device::Device. `waits`: events of these streams alone.
    device::StreamIndex add_stream();
    device::StreamEvent enqueue(device::StreamIndex stream, const device::Waits& waits,
                                const DiskTransfer& transfer);
    bool happened(device::StreamEvent event) const;
    void wait(device::StreamEvent event);
    void fail(std::exception_ptr error);
    // What is under way has ended when it returns, whatever failed.
    void stop();

  private:
    struct Item {
        DiskTransfer transfer;
        device::Waits waits;
        std::int64_t begun = 0, done = 0;  // bytes
        profiler::Ticks start{0};
    };
    struct Queue {
        std::deque<Item> items;
        std::size_t next = 0;      // the first of the items that has pieces to begin
        unsigned pieces = 0;       // under way
        profiler::Ticks ended{0};  // the latest transfer
        std::uint64_t enqueued = 0;
        std::atomic<std::uint64_t> completed{0};
    };
    struct Piece : DiskPiece {
        Queue* queue = nullptr;
        Item* item = nullptr;
    };
    struct Failure {
        DiskTransfer transfer;
        std::string reason;
    };

    void run();
    void begin_pieces();
    bool begin_piece(Queue& queue);
    bool may_begin(const Queue& queue, const Item& item) const;
    void give(Piece& piece);
    void end_piece(Piece& piece, std::int64_t bytes);
    void complete(Queue& queue);
    bool idle() const;
    void wake();
    DiskTransfer first_left() const;

    std::unique_ptr<DiskIo> io_;  // null once it has failed
    DiskHooks hooks_;
    collective::Delays* delays_;
    mutable std::mutex mutex_;
    std::condition_variable happened_;
    std::deque<Queue> queues_;  // a deque: add_stream moves none
    std::size_t turn_ = 0;      // the queue that may begin a piece next
    std::array<Piece, kMostPieces> pieces_;
    std::vector<Piece*> free_;
    std::optional<Failure> failure_;  // that the hook has not heard of yet
    std::exception_ptr error_;
    bool stop_ = false;
    std::thread thread_;  // from the first stream on
};

}  // namespace shardscope::trainer::disk
