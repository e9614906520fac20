// The text that `perf script` prints, as samples of threads.
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "traces/import/input/importer.h"
#include "traces/import/perf/perf_line.h"
#include "traces/schema/row_access.h"
#include "traces/schema/text.h"

namespace shardscope::traces::importer {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 20;
constexpr std::size_t kLongest = std::size_t{1} << 20;  // bytes of a line
constexpr std::size_t kDeepest = 512;                   // frames of a stack; perf records at most 127

std::string printable(std::string_view text) {
    std::string result(text);
    std::replace_if(
        result.begin(), result.end(), [](unsigned char c) { return c < 0x20 || c > 0x7E; }, '?');
    return result;
}

// Lines without their line break, each with the offset of its first byte.
class Lines {
  public:
    explicit Lines(Input& input) : input_(input), chunk_(kChunk) {}

    // False at the end. The line is valid until the next call.
    bool next(std::string_view& line, std::uint64_t& at) {
        for (;;) {
            const std::size_t end = text_.find('\n', from_);
            if (end != text_.npos || (ended_ && from_ < text_.size())) {
                const std::size_t to = std::min(end, text_.size());
                line = std::string_view(text_).substr(from_, to - from_);
                at = offset_ + from_;
                from_ = std::min(to + 1, text_.size());
                return true;
            }
            if (ended_) return false;
            offset_ += from_;
            text_.erase(0, from_);
            from_ = 0;
            if (text_.size() > kLongest)
                throw input_.error(offset_, "a line is longer than 1 MiB; give what perf script prints");
            const std::size_t got = input_.read(chunk_);
            ended_ = got < chunk_.size();
            text_.append(chunk_.data(), got);
        }
    }

  private:
    Input& input_;
    std::vector<char> chunk_;
    std::string text_;
    std::uint64_t offset_ = 0;  // of text_
    std::size_t from_ = 0;
    bool ended_ = false;
};

class PerfRows {
  public:
    PerfRows(Input& input, store::EventSink& sink, const FileRequest& request)
        : input_(input), sink_(sink), request_(request) {}

    FileFacts read() {
        Lines lines(input_);
        std::string_view line;
        std::uint64_t at = 0;
        while (lines.next(line, at)) take(line, at);
        finish_sample();
        if (samples_ == 0) throw input_.error(0, "there are no samples; record with perf record -g");
        add_threads();
        FileFacts facts;
        facts.rows_rank = request_.rank;
        facts.last_ns = last_;
        facts.partial = lost_ > 0;
        sink_.add(schema::RunInfoRow{"import.format", "perf_script"});
        if (lost_ > 0) {
            sink_.add(schema::DiagnosticRow{
                .time = last_,
                .severity = schema::Severity::error,
                .text = fmt::format("{} {} could not be read, the first at byte {}; the trace is incomplete",
                                    lost_, lost_ == 1 ? "line" : "lines", first_lost_)});
            sink_.add(schema::RunInfoRow{"import.partial", "1"});
        }
        if (without_stack_ > 0) {
            sink_.add(schema::DiagnosticRow{
                .time = 0,
                .severity = schema::Severity::information,
                .text = fmt::format("{} of {} samples have no stack; perf record -g records stacks",
                                    without_stack_, samples_)});
        }
        return facts;
    }

  private:
    void take(std::string_view line, std::uint64_t at) {
        if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
        const bool indented = !line.empty() && (line.front() == ' ' || line.front() == '\t');
        const std::size_t first = line.find_first_not_of(" \t");
        if (first == line.npos) return finish_sample();
        if (line[first] == '#') return;
        // A program may be called "dd", which could be an address, and perf indents short names.
        if (const auto sample = read_perf_sample(line)) {
            finish_sample();
            begin(*sample);
            return;
        }
        if (indented && sample_) {
            if (auto frame = read_perf_frame(line)) return add_frame(*frame);
        }
        if (!request_.partial)
            throw input_.error(at,
                               fmt::format("\"{}\" is neither a sample nor a frame of perf script; import "
                                           "with --partial to keep the other lines",
                                           printable(line.substr(0, 60))));
        if (lost_++ == 0) first_lost_ = at;
    }

    void begin(const PerfSample& sample) {
        if (!first_) {
            first_ = sample.time;
            process_ = sample.pid >= 0 ? sample.pid : sample.tid;
        }
        const std::int64_t pid = sample.pid >= 0 ? sample.pid : process_;
        schema::SampleRow row{.time = sample.time - *first_, .weight = sample.period, .cpu = sample.cpu};
        row.global_tid = schema::global_tid(pid, sample.tid);
        row.event = sink_.intern(sample.event);
        last_ = std::max(last_, row.time);
        std::string& name = threads_[{pid, sample.tid}];
        name = sample.program;
        sample_ = row;
        if (!sample.rest.empty()) {
            if (auto frame = read_perf_frame(sample.rest)) add_frame(*frame);
        }
    }

    void add_frame(const std::string& frame) {
        if (frames_++ >= kDeepest) return;
        if (!stack_.empty()) stack_ += '\n';
        stack_ += frame;
    }

    void finish_sample() {
        if (!sample_) return;
        if (stack_.empty()) {
            ++without_stack_;
            stack_ = "[unknown]";
        }
        sample_->stack = sink_.intern(stack_);
        sink_.add(*sample_);
        ++samples_;
        sample_.reset();
        stack_.clear();
        frames_ = 0;
    }

    void add_threads() {
        const std::int64_t process = threads_.begin()->first.first;
        for (const auto& [thread, name] : threads_) {
            const std::int64_t pid = thread.first;
            if (pid != named_process_)
                sink_.add(
                    schema::ProcessRow{.global_pid = schema::global_pid(pid), .pid = pid, .name = name});
            named_process_ = pid;
            sink_.add(schema::ThreadRow{
                .global_tid = schema::global_tid(pid, thread.second), .name = name, .rank = request_.rank});
        }
        sink_.add(schema::RankRow{.rank = request_.rank,
                                  .device = request_.rank,
                                  .global_pid = schema::global_pid(process),
                                  .global_tid = schema::global_tid(process, process),
                                  .host = {},
                                  .device_name = {}});
    }

    Input& input_;
    store::EventSink& sink_;
    const FileRequest& request_;
    std::optional<schema::SampleRow> sample_;
    std::string stack_;
    std::size_t frames_ = 0;
    std::optional<std::int64_t> first_;  // perf's time at time 0 of the rows
    std::int64_t last_ = 0;
    std::int64_t process_ = 0, named_process_ = -1;
    std::map<std::pair<std::int64_t, std::int64_t>, std::string> threads_;  // (pid, tid)
    std::uint64_t samples_ = 0, without_stack_ = 0, lost_ = 0, first_lost_ = 0;
};

}  // namespace

bool is_perf_script(std::string_view head) {
    while (!head.empty()) {
        const std::size_t end = std::min(head.find('\n'), head.size());
        const std::string_view line = head.substr(0, end);
        head.remove_prefix(std::min(end + 1, head.size()));
        const std::size_t first = line.find_first_not_of(" \t\r");
        if (first == line.npos || line[first] == '#') continue;
        return read_perf_sample(line).has_value();
    }
    return false;
}

FileFacts read_perf_script(Input& input, store::EventSink& sink, const FileRequest& request) {
    input.set_cut_is_end(request.partial);
    return PerfRows(input, sink, request).read();
}

}  // namespace shardscope::traces::importer
