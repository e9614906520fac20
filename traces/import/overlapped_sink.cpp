#include "traces/import/overlapped_sink.h"

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "traces/store/columns/trace.h"

namespace shardscope::traces::importer {

namespace {

constexpr std::size_t kRowsOfBatch = 4096;
constexpr std::size_t kBatchesAhead = 8;

struct Commit {};
using Entry = std::variant<schema::AnyRow, Commit>;

struct Batch {
    std::vector<std::string> strings;  // new strings, in the order of their ids
    std::vector<Entry> rows;
};

}  // namespace

struct OverlappedSink::Impl {
    explicit Impl(store::EventSink& sink) : to(sink), thread([this] { run(); }) {}
    ~Impl() { stop(); }

    store::EventSink& to;
    store::StringTable strings;
    Batch batch;

    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Batch> queue;
    bool ended = false, dropped = false;
    std::exception_ptr failure;
    std::thread thread;  // the last member, because it uses the others

    void add(schema::AnyRow row) {
        batch.rows.emplace_back(std::move(row));
        if (batch.rows.size() == kRowsOfBatch) send();
    }

    void send() {
        std::unique_lock lock(mutex);
        changed.wait(lock, [this] { return queue.size() < kBatchesAhead || failure; });
        if (failure) std::rethrow_exception(failure);
        queue.push_back(std::exchange(batch, {}));
        lock.unlock();
        changed.notify_all();
        batch.rows.reserve(kRowsOfBatch);
    }

    void stop() {
        if (!thread.joinable()) return;
        {
            const std::lock_guard lock(mutex);
            dropped = true;
            ended = true;
        }
        changed.notify_all();
        thread.join();
    }

    void finish() {
        send();
        {
            const std::lock_guard lock(mutex);
            ended = true;
        }
        changed.notify_all();
        thread.join();
        if (failure) std::rethrow_exception(failure);
    }

    // Runs on the other thread.
    void run() {
        std::vector<schema::StringId> names = {schema::StringId::empty};
        for (;;) {
            Batch next;
            {
                std::unique_lock lock(mutex);
                changed.wait(lock, [this] { return !queue.empty() || ended; });
                if (dropped || queue.empty()) return;
                next = std::move(queue.front());
                queue.pop_front();
            }
            changed.notify_all();
            try {
                write(next, names);
            } catch (...) {
                const std::lock_guard lock(mutex);
                failure = std::current_exception();
                queue.clear();
                changed.notify_all();
                return;
            }
        }
    }

    void write(Batch& next, std::vector<schema::StringId>& names) {
        for (const std::string& text : next.strings) names.push_back(to.intern(text));
        const auto map = [&](schema::StringId& id) { id = names[static_cast<std::size_t>(id)]; };
        for (Entry& entry : next.rows) {
            if (std::holds_alternative<Commit>(entry)) {
                to.commit();
                continue;
            }
            std::visit(
                [&](auto& row) {
                    schema::visit_names(row, map);  // the other sink numbers them in its own way
                    to.add(row);
                },
                std::get<schema::AnyRow>(entry));
        }
    }
};

OverlappedSink::OverlappedSink(store::EventSink& to) : impl_(std::make_unique<Impl>(to)) {}
OverlappedSink::~OverlappedSink() = default;

void OverlappedSink::finish() {
    impl_->finish();
}

schema::StringId OverlappedSink::intern(std::string_view text) {
    const std::size_t before = impl_->strings.size();
    const schema::StringId id = impl_->strings.intern(text);
    if (impl_->strings.size() > before) impl_->batch.strings.emplace_back(text);
    return id;
}
std::string_view OverlappedSink::text(schema::StringId id) const {
    return impl_->strings[id];
}
void OverlappedSink::commit() {
    impl_->batch.rows.emplace_back(Commit{});
}
void OverlappedSink::take(const schema::AnyRow& row) {
    impl_->add(row);
}

}  // namespace shardscope::traces::importer
