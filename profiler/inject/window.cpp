// Opens and closes the window. The frequent checks are in the header.
#include "profiler/inject/window.h"

#include <cstring>

#include "profiler/log/chunk_arena.h"

namespace shardscope::profiler::inject {

constinit std::atomic<bool> window_watches{false};
constinit std::atomic<std::uint32_t> window_ids{0};
constinit std::atomic<bool> window_names{false};

namespace {

constexpr std::uint32_t kMaxIds = 16;
constexpr std::uint32_t kMaxListeners = 4;

struct Id {
    std::uint64_t id;
    Watched watched;
};

struct Window {
    SpinLock lock;
    const SessionHeader* session = nullptr;
    SetGate set_gate = nullptr;
    WindowKind kind = WindowKind::always;
    Text name{"", 0};  // of the ranges; for steps, the part before the number
    bool is_open = false;
    bool over = false;         // if so, it does not open again
    bool last_ended = false;   // steps: a range of the last step has ended
    std::uint32_t ranges = 0;  // watched ranges that are open
    Id ids[kMaxIds] = {};
    std::atomic<void (*)(bool)> listeners[kMaxListeners] = {};
};
constinit Window window;

class Held {
  public:
    Held() { window.lock.lock(); }
    ~Held() { window.lock.unlock(); }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
};

// Called under the lock. Returns whether the window changed.
bool set_open(bool open) {
    if (open == window.is_open || (open && window.over)) return false;
    window.is_open = open;
    window.set_gate(open ? &window.session->state : nullptr,
                    window.kind == WindowKind::steps || window.kind == WindowKind::range);
    return true;
}

void set_over() {
    window.over = true;
    window_watches.store(false, std::memory_order_relaxed);
}

void tell(bool changed, bool open) {
    if (!changed) return;
    for (auto& listener : window.listeners) {
        if (auto* call = listener.load(std::memory_order_acquire)) call(open);
    }
}

// The number that follows the name, as in "ProfilerStep#12" or "ProfilerStep#12, op_id = 3" (PyTorch's
// emit_nvtx); -1 for any other text.
std::int64_t step_number(Text text) {
    std::size_t at = window.name.size;
    if (text.size <= at || std::memcmp(text.data, window.name.data, at) != 0) return -1;
    std::int64_t number = 0;
    const std::size_t first = at;
    for (; at < text.size && text.data[at] >= '0' && text.data[at] <= '9'; ++at) {
        if (at - first >= 18) return -1;
        number = number * 10 + (text.data[at] - '0');
    }
    return at == first || (at < text.size && text.data[at] != ',') ? -1 : number;
}

bool is_named_range(Text text) {
    return text.size == window.name.size && std::memcmp(text.data, window.name.data, text.size) == 0;
}

}  // namespace

bool prepare_window(const SessionHeader& session, std::int32_t rank, SetGate set_gate) {
    if (rank >= 0 && session.rank_ranges != 0) {
        bool listed = false;
        for (std::uint32_t i = 0; i < session.rank_ranges && i < sizeof session.ranks / sizeof *session.ranks;
             ++i) {
            listed = listed || (rank >= session.ranks[i].first && rank <= session.ranks[i].last);
        }
        if (!listed) return false;
    }
    const Held held;
    window.session = &session;
    window.set_gate = set_gate;
    window.kind = session.window;
    window.name = {session.range_name, ::strnlen(session.range_name, sizeof session.range_name)};
    set_open(window.kind == WindowKind::always);
    window_watches.store(window.kind == WindowKind::steps || window.kind == WindowKind::range,
                         std::memory_order_relaxed);
    return true;
}

// Called on the only thread of the child.
void reset_window_in_child() {
    window.lock.reset();
    window.ranges = 0;
    window_ids.store(0, std::memory_order_relaxed);
    for (Id& id : window.ids) id = {};
    if (window.session != nullptr && window.kind != WindowKind::always) set_open(false);
}

void set_window(WindowKind kind, bool open) {
    bool changed = false;
    {
        const Held held;
        if (window.session == nullptr || window.kind != kind || kind == WindowKind::always) return;
        changed = set_open(open);
    }
    tell(changed, open);
}

bool listen_to_window(void (*changed)(bool open)) {
    const Held held;
    for (auto& listener : window.listeners) {
        auto* known = listener.load(std::memory_order_relaxed);
        if (known == changed) return true;
        if (known != nullptr) continue;
        listener.store(changed, std::memory_order_release);
        return true;
    }
    return false;
}

void name_registered(Text text) {
    if (watches_ranges() && window_wants(text)) window_names.store(true, std::memory_order_relaxed);
}

bool window_wants(Text text) {
    return window.kind == WindowKind::steps   ? step_number(text) >= 0
           : window.kind == WindowKind::range ? is_named_range(text)
                                              : false;
}

Watched range_begins(Text text) {
    if (!window_wants(text)) return Watched::no;
    Watched watched = Watched::yes;
    bool changed = false, open = true;
    {
        const Held held;
        if (window.over) return Watched::no;
        if (window.kind == WindowKind::steps) {
            const std::int64_t step = step_number(text);
            if (step < window.session->first_step) return Watched::no;
            if (step > window.session->last_step) {  // the last step's end was never seen
                changed = set_open(false);
                open = false;
                set_over();
                watched = Watched::no;
            } else if (step == window.session->last_step) {
                watched = Watched::last;
            }
        }
        if (open) {
            ++window.ranges;
            changed = set_open(true);
        }
    }
    tell(changed, open);
    return watched;
}

void range_ended(Watched watched) {
    bool changed = false;
    {
        const Held held;
        if (window.ranges != 0) --window.ranges;
        window.last_ended = window.last_ended || watched == Watched::last;
        if (window.ranges != 0) return;
        if (window.kind == WindowKind::steps && !window.last_ended) return;
        changed = set_open(false);
        if (window.kind == WindowKind::steps) set_over();
    }
    tell(changed, false);
}

void watch_id(std::uint64_t id, Watched watched) {
    const Held held;
    for (Id& place : window.ids) {
        if (place.id != 0) continue;
        place = {id, watched};
        window_ids.fetch_add(1, std::memory_order_relaxed);
        return;
    }
    // No free slot: the range no longer counts, since otherwise the window would never close.
    if (window.ranges != 0) --window.ranges;
}

void id_ended(std::uint64_t id) {
    Watched watched = Watched::no;
    {
        const Held held;
        for (Id& place : window.ids) {
            if (id == 0 || place.id != id) continue;
            watched = place.watched;
            place = {};
            window_ids.fetch_sub(1, std::memory_order_relaxed);
            break;
        }
    }
    if (watched != Watched::no) range_ended(watched);
}

}  // namespace shardscope::profiler::inject
