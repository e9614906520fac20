#include "trainer/disk/disk_streams.h"

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include <fmt/core.h>

namespace shardscope::trainer::disk {

namespace {

constexpr std::int64_t kPieceBytes = 1 << 20;
constexpr unsigned kPiecesOfAStream = 16;  // under way at the same time

// Whether two transfers of one stream touch the same bytes, so that their order counts.
bool overlap(const DiskTransfer& a, const DiskTransfer& b) {
    const bool in_file = a.file == b.file && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
    return in_file || (a.memory < b.memory + b.bytes && b.memory < a.memory + a.bytes);
}

}  // namespace

DiskStreams::DiskStreams(std::unique_ptr<DiskIo> io, DiskHooks hooks, collective::Delays* delays)
    : io_(std::move(io)), hooks_(std::move(hooks)), delays_(delays) {
    for (Piece& piece : pieces_) free_.push_back(&piece);
}

// --- the hosts' side -------------------------------------------------------------------------------------

device::StreamIndex DiskStreams::add_stream() {
    const std::lock_guard lock(mutex_);
    queues_.emplace_back();
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
    return kFirst + static_cast<device::StreamIndex>(queues_.size() - 1);
}

device::StreamEvent DiskStreams::enqueue(device::StreamIndex stream, const device::Waits& waits,
                                         const DiskTransfer& transfer) {
    device::StreamEvent event{stream, 0};
    {
        const std::lock_guard lock(mutex_);
        if (error_) std::rethrow_exception(error_);
        Queue& queue = queues_[static_cast<std::size_t>(stream - kFirst)];
        queue.items.push_back({transfer, waits});
        event.sequence = ++queue.enqueued;
        wake();
    }
    return event;
}

bool DiskStreams::happened(device::StreamEvent event) const {
    const Queue& queue = queues_[static_cast<std::size_t>(event.stream - kFirst)];
    return queue.completed.load(std::memory_order_acquire) >= event.sequence;
}

void DiskStreams::wait(device::StreamEvent event) {
    if (happened(event)) return;
    std::unique_lock lock(mutex_);
    happened_.wait(lock, [&] { return error_ || happened(event); });
    if (!happened(event)) std::rethrow_exception(error_);
}

void DiskStreams::fail(std::exception_ptr error) {
    {
        const std::lock_guard lock(mutex_);
        if (!error_) error_ = std::move(error);
    }
    happened_.notify_all();
}

bool DiskStreams::idle() const {
    return std::all_of(queues_.begin(), queues_.end(),
                       [](const Queue& queue) { return queue.items.empty(); });
}

void DiskStreams::stop() {
    {
        std::unique_lock lock(mutex_);
        happened_.wait(lock, [this] { return error_ || idle(); });
        stop_ = true;
        wake();
    }
    if (thread_.joinable()) thread_.join();
}

// The caller has the mutex.
void DiskStreams::wake() {
    if (io_) io_->wake();
}

// --- the thread ------------------------------------------------------------------------------------------

void DiskStreams::run() {
    std::unique_lock lock(mutex_);
    while (true) {
        try {
            begin_pieces();
            if (stop_ && free_.size() == pieces_.size()) return;
            lock.unlock();
            const std::vector<EndedPiece> ended = io_->wait();
            if (delays_) delays_->maybe_sleep();
            lock.lock();
            for (const EndedPiece& each : ended) end_piece(*static_cast<Piece*>(each.piece), each.bytes);
            for (Queue& queue : queues_) complete(queue);
        } catch (const std::exception& error) {  // the way to the files is gone
            if (!lock.owns_lock()) lock.lock();
            io_.reset();  // what is under way ends with it
            const DiskTransfer transfer = first_left();
            lock.unlock();
            return hooks_.failed(transfer,
                                 fmt::format("files can no longer be read or written ({})", error.what()));
        }
        if (!failure_) continue;
        const Failure failure = std::move(*failure_);
        failure_.reset();
        lock.unlock();
        hooks_.failed(failure.transfer, failure.reason);
        lock.lock();
    }
}

// The first transfer that is not done; one without a file if there is none.
DiskTransfer DiskStreams::first_left() const {
    for (const Queue& queue : queues_) {
        for (const Item& item : queue.items) {
            if (item.transfer.file) return item.transfer;
        }
    }
    return {};
}

// A piece of each stream in turn, as long as there is room for more; the next time goes on from there.
void DiskStreams::begin_pieces() {
    for (std::size_t without = 0; without < queues_.size(); turn_ = (turn_ + 1) % queues_.size()) {
        if (error_ || failure_ || free_.empty()) return;
        without = begin_piece(queues_[turn_]) ? 0 : without + 1;
    }
}

bool DiskStreams::may_begin(const Queue& queue, const Item& item) const {
    const auto events = item.waits.events();
    if (!std::all_of(events.begin(), events.end(), [this](const auto& event) { return happened(event); }))
        return false;
    const auto before = queue.items.begin();
    return std::none_of(before, before + static_cast<std::ptrdiff_t>(queue.next),
                        [&](const Item& earlier) { return overlap(earlier.transfer, item.transfer); });
}

// Returns whether it has begun one, or passed an item that has none.
bool DiskStreams::begin_piece(Queue& queue) {
    if (queue.next == queue.items.size() || queue.pieces == kPiecesOfAStream) return false;
    Item& item = queue.items[queue.next];
    const DiskTransfer& transfer = item.transfer;
    if (item.begun == 0) {
        if (!may_begin(queue, item)) return false;
        item.start = profiler::ticks();
    }
    const std::int64_t left = transfer.bytes - item.begun;
    if (left > 0) {
        Piece& piece = *free_.back();
        free_.pop_back();
        piece.queue = &queue;
        piece.item = &item;
        piece.writes = transfer.writes;
        piece.memory = transfer.memory + item.begun;
        piece.offset = transfer.offset + item.begun;
        // What is less than a block goes through the page cache, and nothing else with it.
        const std::int64_t bytes = std::min(left, kPieceBytes);
        piece.bytes = static_cast<std::size_t>(bytes > kDiskBlock ? bytes / kDiskBlock * kDiskBlock : bytes);
        item.begun += static_cast<std::int64_t>(piece.bytes);
        ++queue.pieces;
        give(piece);
    }
    if (item.begun == transfer.bytes) ++queue.next;
    if (left == 0) complete(queue);
    return true;
}

void DiskStreams::give(Piece& piece) {
    piece.descriptor = piece.item->transfer.file->descriptor(piece.memory, piece.offset,
                                                             static_cast<std::int64_t>(piece.bytes));
    io_->begin(piece);
}

void DiskStreams::end_piece(Piece& piece, std::int64_t bytes) {
    const DiskTransfer& transfer = piece.item->transfer;
    const bool refused = bytes == -EINVAL && transfer.file->is_direct();
    if (refused) transfer.file->stop_direct();
    const bool again = refused || bytes == -EINTR || bytes == -EAGAIN;
    const bool some = bytes > 0 && bytes < static_cast<std::int64_t>(piece.bytes);
    if ((again || some) && !error_ && !failure_) {  // the rest
        const std::int64_t done = std::max<std::int64_t>(bytes, 0);
        piece.memory += done;
        piece.offset += done;
        piece.bytes -= static_cast<std::size_t>(done);
        piece.item->done += done;
        return give(piece);
    }
    free_.push_back(&piece);
    --piece.queue->pieces;
    if (bytes == static_cast<std::int64_t>(piece.bytes)) {
        piece.item->done += bytes;
        return;
    }
    if (error_ || failure_) return;
    const std::string reason = bytes < 0         ? std::generic_category().message(static_cast<int>(-bytes))
                               : transfer.writes ? "nothing more can be written"
                                                 : "the file is shorter than it was";
    failure_ =
        Failure{transfer, fmt::format("cannot {} {} bytes at {} of a file: {}",
                                      transfer.writes ? "write" : "read", piece.bytes, piece.offset, reason)};
}

// Takes what is done from the front of the queue. What ended together had the disk in turn, each for its
// share of the bytes.
void DiskStreams::complete(Queue& queue) {
    std::size_t ended = 0;
    double bytes = 0;
    for (; ended < queue.next && queue.items[ended].done == queue.items[ended].transfer.bytes; ++ended)
        bytes += static_cast<double>(queue.items[ended].done);
    if (ended == 0) return;
    const profiler::Ticks now = profiler::ticks();
    for (; ended > 0; --ended) {
        const Item& item = queue.items.front();
        if (item.transfer.file) {
            const profiler::Ticks start = std::max(item.start, queue.ended);
            const double share = bytes > 0 ? static_cast<double>(item.done) / bytes : 1;
            queue.ended = start + static_cast<std::uint64_t>(static_cast<double>(now - start) * share);
            bytes -= static_cast<double>(item.done);
            hooks_.ended(item.transfer, start, queue.ended);
        }
        queue.items.pop_front();
        --queue.next;
        queue.completed.fetch_add(1, std::memory_order_release);
    }
    happened_.notify_all();
}

}  // namespace shardscope::trainer::disk
