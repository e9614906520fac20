#include "traces/import/kineto/event_stream.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "traces/import/kineto/event_batch.h"

namespace shardscope::traces::importer {

namespace {

constexpr std::size_t kChunk = std::size_t{1} << 19;
constexpr std::size_t kLargestValue = std::size_t{1} << 28;  // one event, or one member next to traceEvents
constexpr std::size_t kSmallestBatch = 1 << 10;
constexpr const char* kKeepWhole = "use --partial to keep the intact part";

// The part of the file that is in memory, with room for one byte before it and for the parser's padding
// after it.
class Window {
  public:
    explicit Window(Input& input) : input_(input), bytes_(1 + kChunk + EventBatchParser::padding()) {}

    std::string_view text() const { return {bytes_.data() + begin_, end_ - begin_}; }
    char* data() { return bytes_.data() + begin_; }
    std::uint64_t offset() const { return base_ + (begin_ - 1); }  // of the first byte in the file
    bool at_end() const { return at_end_; }
    void drop(std::size_t bytes) { begin_ += bytes; }

    // Reads more; grows if it is full already. False at the end of the file.
    bool fill() {
        if (at_end_) return false;
        if (begin_ > 1) {
            base_ += begin_ - 1;
            std::memmove(bytes_.data() + 1, bytes_.data() + begin_, end_ - begin_);
            end_ -= begin_ - 1;
            begin_ = 1;
        }
        std::size_t capacity = bytes_.size() - EventBatchParser::padding();
        if (end_ > capacity / 2) {
            if (capacity > kLargestValue)
                throw input_.error(
                    offset(),
                    fmt::format("one value has more than {} bytes, which no tracer writes; is a quote"
                                " or a bracket missing?",
                                kLargestValue));
            bytes_.resize(1 + 2 * (capacity - 1) + EventBatchParser::padding());
            capacity = bytes_.size() - EventBatchParser::padding();
        } else if (capacity > 8 * kChunk && end_ < kChunk) {  // after a large value
            bytes_.resize(1 + kChunk + EventBatchParser::padding());
            bytes_.shrink_to_fit();
            capacity = bytes_.size() - EventBatchParser::padding();
        }
        const std::size_t got = input_.read({bytes_.data() + end_, capacity - end_});
        at_end_ = got < capacity - end_;
        end_ += got;
        std::memset(bytes_.data() + end_, 0, EventBatchParser::padding());
        return got > 0;
    }

    // Drops white space and returns the first character after it; '\0' at the end.
    char next() {
        for (;;) {
            while (begin_ < end_ && is_space(bytes_[begin_])) ++begin_;
            if (begin_ < end_) return bytes_[begin_];
            if (!fill()) return '\0';
        }
    }

  private:
    Input& input_;
    std::vector<char> bytes_;
    std::size_t begin_ = 1, end_ = 1;
    std::uint64_t base_ = 0;  // offset in the file of bytes_[1]
    bool at_end_ = false;
};

// The position after the last "}" of the text that is followed by a comma and another "{"; 0 if there is
// none.
std::size_t last_event_end(std::string_view text) {
    for (std::size_t at = text.rfind('{'); at != std::string_view::npos && at > 0;
         at = text.rfind('{', at - 1)) {
        std::size_t before = at;
        while (before > 0 && is_space(text[before - 1])) --before;
        if (before == 0 || text[before - 1] != ',') continue;
        --before;
        const std::size_t comma = before;
        while (before > 0 && is_space(text[before - 1])) --before;
        if (before > 0 && text[before - 1] == '}') return comma;
    }
    return 0;
}

// The first position from `from` on where an event seems to begin: after a comma or the list's bracket, with
// a key that events have.
std::size_t next_event_start(std::string_view text, std::size_t from) {
    for (std::size_t at = text.find('{', from); at != std::string_view::npos; at = text.find('{', at + 1)) {
        std::size_t before = at;
        while (before > 0 && is_space(text[before - 1])) --before;
        if (before == 0 || (text[before - 1] != ',' && text[before - 1] != '[')) continue;
        std::size_t key = at + 1;
        while (key < text.size() && is_space(text[key])) ++key;
        if (key >= text.size() || text[key] != '"') continue;
        const std::size_t end = text.find('"', key + 1);
        if (end == std::string_view::npos) return at;  // more must be read to know
        const EventKey known = event_key(text.substr(key + 1, end - key - 1));
        if (known != EventKey::count && known != EventKey::args) return at;
    }
    return std::string_view::npos;
}

class EventStream {
  public:
    EventStream(Input& input, EventHandler& handler, bool partial)
        : input_(input), handler_(handler), partial_(partial), window_(input) {
        input_.set_cut_is_end(partial);
    }

    EventStreamResult run() {
        read_file();
        if (input_.cut()) lose_end("", window_.offset());
        return result_;
    }

  private:
    void read_file() {
        char c = window_.next();
        if (window_.text().starts_with("\xEF\xBB\xBF")) {  // a byte order mark
            window_.drop(3);
            c = window_.next();
        }
        if (c == '[') {
            window_.drop(1);
            read_events(true);
            result_.has_list = true;
        } else if (c == '{') {
            window_.drop(1);
            read_members();
        } else {
            throw input_.error(window_.offset(),
                               "expected { or [, with which a Chrome trace begins; is it JSON?");
        }
    }

    void note_key(const std::string& key) {
        constexpr std::size_t kKeys = 8, kLongest = 60;
        if (result_.keys.size() < kKeys)
            result_.keys.push_back(key.size() <= kLongest ? key : key.substr(0, kLongest) + "…");
    }

    // --- the object around the events

    void read_members() {
        bool& events = result_.has_list;
        for (;;) {
            const char c = window_.next();
            if (c == '}') return;
            if (c == ',') {
                window_.drop(1);
                continue;
            }
            if (c == '\0') {
                return lose_end(events ? "the closing } of the trace" : "traceEvents", window_.offset());
            }
            std::string key;
            try {
                read_value_at([&](JsonScanner& scanner) {
                    scanner.read_string(key, true);
                    scanner.expect(':', "a colon");
                });
                const bool is_array = window_.next() == '[';
                if (!events) note_key(key);
                if (key == "traceEvents" && is_array) {
                    window_.drop(1);
                    events = true;
                    read_events(false);
                    continue;
                }
                JsonScalar value;
                const std::size_t size =
                    read_value_at<false>([&](JsonScanner& scanner) { value = scanner.read_value(scratch_); });
                handler_.metadata(key, value);
                window_.drop(size);
            } catch (const JsonScanner::Broken& broken) {
                if (events) {  // only metadata is left
                    ++result_.lost_metadata;
                    return;
                }
                find_events(broken);
                events = true;
                read_events(false);
            } catch (const JsonScanner::Incomplete&) {
                return lose_end(events ? "the closing } of the trace" : "traceEvents", window_.offset());
            }
            if (result_.cut) return;
        }
    }

    // Runs `read` on the window's text, with more and more of the file until that suffices; drops what was
    // read (or only returns its size).
    template <bool drop = true, typename Read>
    std::size_t read_value_at(Read read) {
        for (;;) {
            const JsonRepairs before = result_.repairs;
            JsonScanner scanner(window_.text(), window_.at_end(), result_.repairs);
            try {
                read(scanner);
                const std::size_t size = scanner.position();
                if (drop) window_.drop(size);
                return size;
            } catch (const JsonScanner::Incomplete&) {
                result_.repairs = before;
                if (!window_.fill()) throw;
            }
        }
    }

    // Skips to the list of events: some tracers write logs before it that are not always JSON.
    void find_events(const JsonScanner::Broken& broken) {
        const std::uint64_t at = window_.offset() + broken.at;
        constexpr std::string_view kKey = "\"traceEvents\"";
        for (;;) {
            const std::string_view text = window_.text();
            if (const auto found = text.find(kKey); found != text.npos) {
                window_.drop(found + kKey.size());
                if (window_.next() == ':') window_.drop(1);
                if (window_.next() != '[') continue;
                window_.drop(1);
                ++result_.lost_metadata;
                return;
            }
            if (text.size() > kKey.size()) window_.drop(text.size() - kKey.size());
            if (!window_.fill()) {
                throw input_.error(
                    at, fmt::format("expected {}, and there are no traceEvents after it", broken.expected));
            }
        }
    }

    // --- the events

    void read_events(bool bare) {
        for (;;) {
            const char c = window_.next();
            if (c == ']') return window_.drop(1);
            if (c == ',') {
                window_.drop(1);
                continue;
            }
            if (c == '\0') {
                // The Trace Event Format allows a bare list to omit its closing bracket.
                if (!bare) lose_end("an event or the closing ] of traceEvents", window_.offset());
                return;
            }
            note_element(c);
            try {
                if (!read_batch()) read_one();
            } catch (const JsonScanner::Incomplete&) {
                return lose_end("the rest of an event", window_.offset());
            } catch (const JsonScanner::Broken& broken) {
                lose_event(broken);
            }
            if (result_.cut) return;
        }
    }

    void note_element(char first) {
        if (!result_.any_element) result_.first_is_list = first == '[';
        result_.any_element = true;
    }

    // False if the next event must be read individually.
    bool read_batch() {
        if (window_.offset() < slow_until_) return false;
        if (window_.text().size() < kChunk / 4) window_.fill();
        const std::string_view ahead = window_.text().substr(0, batch_limit_);
        const std::size_t size = last_event_end(ahead);
        result_.searched += ahead.size();
        if (size == 0) {
            slow_until_ = window_.offset() + ahead.size();  // no batch ends before it
            batch_limit_ = std::min(4 * batch_limit_, kLargestValue);
            return false;
        }
        char* text = window_.data() - 1;
        const char first = text[0], last = text[size + 1];
        text[0] = '[';
        text[size + 1] = ']';
        EventBatchParser::Result batch;
        try {
            batch = batches_.parse(text, size + 2, window_.offset() - 1, handler_);
        } catch (...) {
            text[0] = first;
            text[size + 1] = last;
            throw;
        }
        text[0] = first;
        text[size + 1] = last;
        result_.events += batch.events;
        batch_limit_ = batch.at < size / 8 ? std::max(size / 4, kSmallestBatch) : 4 * size + kSmallestBatch;
        if (!batch.good) slow_until_ = window_.offset() + size;
        if (batch.at > 1) window_.drop(batch.at - 1);
        if (!batch.good) return batch.events > 0;
        read_value_at([](JsonScanner& scanner) { scanner.skip_value(); });  // the last event of the batch
        return true;
    }

    void read_one() {
        if (window_.next() != '{') {
            read_value_at([](JsonScanner& scanner) { scanner.skip_value(); });
            return;
        }
        const std::size_t size = read_value_at<false>([&](JsonScanner& scanner) { read_event(scanner); });
        event_.offset = window_.offset();
        handler_.event(event_);
        ++result_.events;
        window_.drop(size);
    }

    std::string& scratch() {
        if (used_ == pool_.size()) pool_.emplace_back();
        return pool_[used_++];
    }

    template <typename Member>
    static void read_object(JsonScanner& scanner, std::string& key, Member member) {
        scanner.expect('{', "an object");
        while (scanner.next() == '"') {
            scanner.read_string(key, true);
            scanner.expect(':', "a colon after a key");
            member();
            if (!scanner.take(',')) break;
        }
        scanner.expect('}', "a comma or the end of an object");
    }

    void read_event(JsonScanner& scanner) {
        used_ = 0;
        event_.clear();
        std::string key;
        read_object(scanner, key, [&] {
            const EventKey known = event_key(key);
            if (known == EventKey::count) return scanner.skip_value();
            if (known == EventKey::args && scanner.next() == '{') return read_args(scanner);
            event_.set(known, scanner.read_value(scratch()));
        });
    }

    void read_args(JsonScanner& scanner) {
        const bool counts = !event_.has(EventKey::ph) || event_.text(EventKey::ph) == "C";
        std::string key;
        read_object(scanner, key, [&] {
            const EventKey known = arg_key(key);
            if (known == EventKey::count && !counts) return scanner.skip_value();
            const JsonScalar value = scanner.read_value(scratch());
            if (known != EventKey::count) event_.set(known, value);
            if (counts && value.kind == JsonKind::number) {
                std::string& name = scratch();
                name = key;
                event_.numbers.emplace_back(name, value.text);
            }
        });
    }

    // --- damage

    void lose(std::uint64_t at) {
        if (result_.lost_places++ == 0) result_.first_lost = at;
    }

    void lose_end(const char* expected, std::uint64_t at) {
        if (!partial_) {
            throw input_.error(
                at, fmt::format("the file ends after {} event{}, where {} was expected; it was cut "
                                "off: copy it again, or {}",
                                result_.events, result_.events == 1 ? "" : "s", expected, kKeepWhole));
        }
        if (!result_.cut) lose(at);
        result_.cut = true;
    }

    void lose_event(const JsonScanner::Broken& broken) {
        const std::uint64_t at = window_.offset() + broken.at;
        if (!partial_) {
            throw input_.error(at, fmt::format("expected {} in event {}; {}", broken.expected,
                                               result_.events + 1, kKeepWhole));
        }
        lose(at);
        std::size_t from = 1;
        for (;;) {
            const std::size_t next = next_event_start(window_.text(), from);
            if (next != std::string_view::npos) return window_.drop(next);
            const std::size_t size = window_.text().size();
            if (size > 64) window_.drop(size - 64);  // the start of an event may straddle the end
            from = 0;
            if (!window_.fill()) {
                result_.cut = true;
                return;
            }
        }
    }

    Input& input_;
    EventHandler& handler_;
    bool partial_;
    Window window_;
    EventBatchParser batches_;
    EventStreamResult result_;
    TraceEvent event_;
    std::string scratch_;
    std::deque<std::string> pool_;  // strings of an event that is read individually
    std::size_t used_ = 0;
    std::uint64_t slow_until_ = 0;  // offset up to which simdjson is not tried again
    // The number of bytes that are searched for a batch: fewer after lists that ended long before the limit,
    // so that the time stays linear however short the lists in a file are.
    std::size_t batch_limit_ = kChunk;
};

}  // namespace

EventStreamResult read_event_stream(Input& input, EventHandler& handler, bool partial) {
    return EventStream(input, handler, partial).run();
}

}  // namespace shardscope::traces::importer
