// Host events (ranges, calls, memory, marks, counters) and the dispatch of each event.
#include "traces/import/kineto/kineto_rows.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/core.h>

#include "traces/import/kineto/scalar_values.h"
#include "traces/schema/json_text.h"
#include "traces/store/columns/device_streams.h"
#include "traces/store/columns/names.h"

namespace shardscope::traces::importer {

namespace {

// Device types of c10 in "[memory]": 0 CPU; all others are devices (1 CUDA, 6 HIP, 12 XPU ...).
constexpr int kHost = 0;

bool is_tracer_process(std::string_view pid) {
    return pid == "Spans" || pid == "Traces" || pid.empty();
}

}  // namespace

KinetoRows::KinetoRows(store::EventSink& sink, const FileRequest& request, const TraceHead& head)
    : sink_(sink),
      request_(request),
      actors_(request.rank),
      collectives_(sink),
      open_ranges_(sink),
      fraction_(head.fraction),
      base_ns_(head.first_ns),
      operator_domain_(sink.intern(store::kOperatorDomain)),
      annotation_domain_(sink.intern(store::kAnnotationDomain)),
      function_domain_(sink.intern(store::kFunctionDomain)) {}

bool KinetoRows::read_time(const TraceEvent& event, std::int64_t& time) {
    const auto ts = parse_us(event.text(EventKey::ts), fraction_);
    std::int64_t since = 0;
    if (!ts || __builtin_sub_overflow(*ts, base_ns_, &since)) {
        ++no_time_;
        return false;
    }
    time = since;
    facts_.last_ns = std::max(facts_.last_ns, time);
    return true;
}

// An event whose duration is missing or unreadable has length 0.
bool KinetoRows::read_times(const TraceEvent& event, Times& times) {
    if (!read_time(event, times.start)) return false;
    const auto duration = parse_us(event.text(EventKey::dur), fraction_);
    if (!duration && event.has(EventKey::dur)) ++no_duration_;
    if (__builtin_add_overflow(times.start, duration.value_or(0), &times.end)) {
        ++no_time_;
        return false;
    }
    facts_.last_ns = std::max(facts_.last_ns, times.end);
    return true;
}

EventCategory KinetoRows::category(std::string_view text) {
    for (const KnownCategory& known : categories_) {
        if (known.text == text) return known.category;
    }
    KnownCategory& known = categories_[next_category_++ % categories_.size()];
    known = {std::string(text), category_of(text)};
    return known.category;
}

void KinetoRows::event(const TraceEvent& event) {
    any_event_ = true;
    const std::string_view phase = event.text(EventKey::ph);
    any_phase_ = any_phase_ || !phase.empty();
    switch (phase.size() == 1 ? phase.front() : '\0') {
        case 'X':
            return complete(event);
        case 'i':
        case 'I':
        case 'R':
        case 'n':
            return mark(event);
        case 's':
        case 't':
        case 'f':
            return link(event);
        case 'M':
            return names(event);
        case 'C':
            return counters(event);
        case 'P':
            return sample(event);
        case 'B':
        case 'E':
        case 'b':
        case 'e':
        case 'S':
        case 'F': {
            std::int64_t time = 0;
            if (!read_time(event, time)) return;
            const std::int64_t thread = actors_.host_thread(event[EventKey::pid], event[EventKey::tid]);
            const char c = phase.front();
            const bool asynchronous = c != 'B' && c != 'E';
            if (c == 'B' || c == 'b' || c == 'S')
                return open_ranges_.begin(event, time, thread, asynchronous);
            return open_ranges_.end(event, time, thread, asynchronous);
        }
        default:
            return;  // objects, clock synchronisation: not kept
    }
}

void KinetoRows::complete(const TraceEvent& event) {
    EventCategory what = category(event.text(EventKey::cat));
    if (what == EventCategory::ignored) return;
    if (what == EventCategory::mtia) what = mtia_category(event.text(EventKey::name));
    Times times;
    if (!read_times(event, times)) return;
    kineto_ = kineto_ || what != EventCategory::other;
    switch (what) {
        case EventCategory::runtime:
        case EventCategory::driver:
            return call(event, what, times);
        case EventCategory::kernel:
            return kernel(event, times);
        case EventCategory::memcpy:
            return copy(event, times);
        case EventCategory::memset:
            return set(event, times);
        case EventCategory::synchronization:
            return synchronization(event, times);
        case EventCategory::overhead:
            return overhead(event, times);
        default:
            return range(event, what, times);
    }
}

// libkineto of April 2022 to February 2024 wrote the event's own correlation in place of the operator's id.
std::int64_t KinetoRows::external_id(const TraceEvent& event) const {
    const std::int64_t id = plain_id(event[EventKey::external_id]);
    if (id != 0 && event.has(EventKey::correlation) && id == plain_id(event[EventKey::correlation])) return 0;
    return id;
}

// {"Input Dims":[[2,3]],"Input type":["float"],"Concrete Inputs":[""]}, with the keys that exist.
schema::StringId KinetoRows::detail(const TraceEvent& event) {
    text_.clear();
    const auto add = [&](EventKey key, const char* name) {
        const JsonScalar value = event[key];
        // Traces of 2020 have a list as a text.
        if (value.kind != JsonKind::array && !(value.is_text() && value.text.starts_with('['))) return;
        text_ += text_.empty() ? "{\"" : ",\"";
        text_ += name;
        text_ += "\":";
        text_ += value.text;
    };
    add(EventKey::input_dims, "Input Dims");
    add(EventKey::input_type, "Input type");
    add(EventKey::concrete_inputs, "Concrete Inputs");
    if (text_.empty()) return schema::StringId::empty;
    text_ += '}';
    const schema::StringId id = sink_.intern(text_);
    const auto [known, is_new] = details_.try_emplace(id, true);
    if (is_new) known->second = schema::is_json(text_);
    return known->second ? id : schema::StringId::empty;
}

void KinetoRows::range(const TraceEvent& event, EventCategory what, const Times& times) {
    if (is_tracer_process(event.text(EventKey::pid)) && event[EventKey::pid].is_text()) return;
    schema::RangeRow row{.start = times.start, .end = times.end};
    row.global_tid = actors_.host_thread(event[EventKey::pid], event[EventKey::tid]);
    std::string_view name = event.text(EventKey::name);
    if (what == EventCategory::function) {
        row.domain = function_domain_;
        // Before PyTorch 1.13 a module's number is only in its name.
        const JsonScalar number = event[EventKey::module_id];
        if (number.kind == JsonKind::number && name.starts_with(store::kModulePrefix)) {
            const auto end = name.rfind('_');
            if (end == std::string_view::npos || name.substr(end + 1) != number.text) {
                text_ = fmt::format("{}_{}", name, number.text);
                name = text_;
            }
        }
    } else if (what != EventCategory::other) {
        row.domain = what == EventCategory::operation ? operator_domain_ : annotation_domain_;
        row.external_id = plain_id(event[EventKey::external_id]);
    } else {
        row.domain = sink_.intern(event.text(EventKey::cat));
    }
    row.text = sink_.intern(name);
    const int rank = actors_.rank_of_thread(row.global_tid);
    if (what != EventCategory::function) {
        row.detail = detail(event);
        if (store::profiler_step(name)) actors_.tell_step(row.global_tid);
        if (event.has(EventKey::collective) && row.external_id != 0)
            collectives_.operation(event, row.external_id, rank);
        if (row.detail != schema::StringId::empty)
            collectives_.range(name, text_, row.global_tid, times.start, times.end);
    }
    row.external_id = rank_id(rank, row.external_id);
    if (ours_ && event.has(EventKey::shardscope)) {
        const OurRange details = read_our_range(event.text(EventKey::shardscope));
        row.module = details.module;
        if (details.domain) row.domain = sink_.intern(*details.domain);
    }
    sink_.add(row);
}

void KinetoRows::call(const TraceEvent& event, EventCategory what, const Times& times) {
    schema::RuntimeRow row{.start = times.start, .end = times.end};
    row.global_tid = actors_.host_thread(event[EventKey::pid], event[EventKey::tid]);
    row.correlation = rank_id(actors_.rank_of_thread(row.global_tid), plain_id(event[EventKey::correlation]));
    row.name = sink_.intern(event.text(EventKey::name));
    row.driver = what == EventCategory::driver;
    const std::int64_t process = row.global_tid & ~std::int64_t{0xFFFFFF};
    many_processes_ = many_processes_ || (process_ != 0 && process_ != process);
    process_ = process;
    collectives_.call(row.global_tid, times.start, row.correlation);
    sink_.add(row);
}

// An allocation if Bytes > 0, else a free.
void KinetoRows::memory(const TraceEvent& event, std::int64_t time) {
    schema::MemoryRow row{.time = time};
    row.global_tid = actors_.host_thread(event[EventKey::pid], event[EventKey::tid]);
    const int device = int_or(event[EventKey::device_id], -1);
    const bool host = int_or(event[EventKey::device_type], kHost) == kHost || device < 0;
    row.space = host ? schema::MemorySpace::host : schema::MemorySpace::device;
    row.rank = host ? actors_.rank_of_thread(row.global_tid) : actors_.rank_of_device(device);
    row.address = address_of(event[EventKey::address]);
    row.bytes = integer_or(event[EventKey::size], 0);
    row.total = std::max<std::int64_t>(integer_or(event[EventKey::total_allocated], -1), -1);
    row.reserved = std::max<std::int64_t>(integer_or(event[EventKey::total_reserved], -1), -1);
    if (!ours_ && !host) {
        // The allocators of a rank's devices have separate totals: the stream number encodes the device.
        const std::size_t nth = actors_.memory_place(device);
        if (nth > 0) row.stream = store::stream_of_device(nth, 0);
    }
    if (ours_ && event.has(EventKey::shardscope)) {
        const OurMemory details = read_our_memory(event.text(EventKey::shardscope));
        row.category = details.category;
        row.space = details.space.value_or(row.space);
        row.phase = details.phase;
        row.unit = details.unit;
        row.module = details.module;
        row.stream = details.stream;
        row.name = sink_.intern(details.name);
        row.annotation = sink_.intern(details.annotation);
        row.stack = sink_.intern(details.stack);
    }
    sink_.add(row);
}

void KinetoRows::mark(const TraceEvent& event) {
    // Skips marks of the tracer itself; the last may be far later than all other events.
    if (event[EventKey::pid].is_text() && is_tracer_process(event.text(EventKey::pid))) return;
    std::int64_t time = 0;
    if (!read_time(event, time)) return;
    if (event.text(EventKey::name) == "[memory]") {
        kineto_ = true;
        return memory(event, time);
    }
    schema::RangeRow row{.start = time};
    row.event_type = schema::kNvtxMark;
    row.text = sink_.intern(event.text(EventKey::name));
    row.domain = sink_.intern(event.text(EventKey::cat));
    row.global_tid = actors_.host_thread(event[EventKey::pid], event[EventKey::tid]);
    sink_.add(row);
}

// Writes one counter for each number of the event.
void KinetoRows::counters(const TraceEvent& event) {
    std::int64_t time = 0;
    if (!read_time(event, time)) return;
    const std::string_view name = event.text(EventKey::name);
    const std::int64_t thread = actors_.host_thread(event[EventKey::pid], event[EventKey::tid]);
    for (const auto& [key, number] : event.numbers) {
        const auto value = parse_double(number);
        if (!value) continue;
        const bool plain = event.numbers.size() == 1 && (key == "value" || key == name);
        schema::CounterRow row{.time = time, .rank = actors_.rank_of_thread(thread)};
        row.name = sink_.intern(plain ? std::string(name) : fmt::format("{} {}", name, key));
        row.value = *value;
        if (ours_ && event.has(EventKey::shardscope)) {
            const OurCounter details = read_our_counter(event.text(EventKey::shardscope));
            row.rank = details.rank;
            row.host = sink_.intern(details.host);
            row.device = details.device;
        }
        sink_.add(row);
    }
}

// Only samples of our own export: what others name is not a stack.
void KinetoRows::sample(const TraceEvent& event) {
    std::int64_t time = 0;
    if (!ours_ || !event.has(EventKey::shardscope) || !read_time(event, time)) return;
    const OurSample details = read_our_sample(event.text(EventKey::shardscope));
    schema::SampleRow row{.time = time, .weight = details.weight, .cpu = details.cpu};
    row.global_tid = actors_.host_thread(event[EventKey::pid], event[EventKey::tid]);
    row.event = sink_.intern(event.text(EventKey::name));
    row.stack = sink_.intern(details.stack);
    sink_.add(row);
}

// Only links from forward operators to their backward ones; launches are known by their correlation.
void KinetoRows::link(const TraceEvent& event) {
    if (category(event.text(EventKey::cat)) != EventCategory::backward_link) return;
    std::int64_t time = 0;
    if (!read_time(event, time)) return;
    const LinkEnd end{.thread = actors_.host_thread(event[EventKey::pid], event[EventKey::tid]),
                      .time = time,
                      .from = event.text(EventKey::ph) == "s"};
    const std::int64_t id = rank_id(actors_.rank_of_thread(end.thread), plain_id(event[EventKey::id]));
    const auto [waiting, is_new] = links_.try_emplace(id, end);
    if (is_new) return;
    if (waiting->second.from == end.from) {  // the id was reused
        waiting->second = end;
        return;
    }
    const LinkEnd &from = end.from ? end : waiting->second, &to = end.from ? waiting->second : end;
    sink_.add(schema::LinkRow{.kind = schema::LinkKind::backward,
                              .from_tid = from.thread,
                              .from_time = from.time,
                              .to_tid = to.thread,
                              .to_time = to.time});
    links_.erase(waiting);
}

void KinetoRows::names(const TraceEvent& event) {
    const std::string_view what = event.text(EventKey::name), name = event.text(EventKey::arg_name);
    if (what == "process_name") actors_.name_process(event[EventKey::pid], name);
    if (what == "thread_name") actors_.name_thread(event[EventKey::pid], event[EventKey::tid], name);
}

}  // namespace shardscope::traces::importer
