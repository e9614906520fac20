// Ranges and calls of host threads, marks, steps, and the flows from forward operators to their backward
// ones.
#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <vector>

#include <fmt/core.h>

#include "traces/export/chrome_context.h"
#include "traces/export/table_scan.h"
#include "traces/schema/enums.h"
#include "traces/schema/json_text.h"
#include "traces/schema/text.h"
#include "traces/store/columns/names.h"

namespace shardscope::traces::exports {

namespace {

struct Range {
    std::int64_t start = 0;
    std::optional<std::int64_t> end;
    std::int64_t global_tid = 0;
    std::string text;  // as a JSON string
    std::string plain;
    std::string_view domain;
    std::optional<std::int64_t> module, external;
    std::string detail;  // the inside of a JSON object
    bool mark = false;
};

// An open frame of a thread; Python's ids link a frame to the one around it.
struct Frame {
    std::int64_t end = 0, id = 0;
};

bool ends_as_module(std::string_view text) {
    return text.starts_with(store::kModulePrefix) && !text.ends_with(store::kBackwardSuffix);
}

// n of "nn.Module: Class_n", else 0.
std::int64_t number_at_end(std::string_view text) {
    const auto mark = text.rfind('_');
    if (mark == std::string_view::npos) return 0;
    return schema::number_of<std::int64_t>(text.substr(mark + 1)).value_or(0);
}

class Ranges {
  public:
    explicit Ranges(ChromeContext& context) : context_(context) {
        scan_table(context.database(), "SHARD_MODULES", {"id"}, "",
                   [&](const store::Statement& row) { known_modules_.insert(row.integer(0)); });
        load_domains();
    }

    void write() {
        scan_table(context_.database(), "NVTX_EVENTS",
                   {"start", "end", "eventType", "globalTid", "domainId", "textId", "text", "uint64Value",
                    "int64Value", "jsonTextId"},
                   context_.ordered_by("NVTX_EVENTS", "start"),
                   [&](const store::Statement& row) { take(row); });
        write_waiting();
    }

  private:
    void load_domains() {
        scan_table(context_.database(), "NVTX_EVENTS", {"globalTid", "domainId", "textId", "text"},
                   fmt::format("WHERE eventType = {}", schema::kNvtxDomainCreate),
                   [&](const store::Statement& row) {
                       domains_[{row.integer(0) & schema::kPidMask, row.integer(1)}] =
                           row.is_null(2) ? std::string(row.text(3)) : context_.plain_name(row.integer(2));
                   });
    }

    void take(const store::Statement& row) {
        const std::int64_t type = row.integer(2);
        if (type != schema::kNvtxPushPop && type != schema::kNvtxStartEnd && type != schema::kNvtxMark)
            return;
        Range range{.start = row.integer(0), .global_tid = row.integer(3)};
        if (!row.is_null(1)) range.end = row.integer(1);
        range.mark = type == schema::kNvtxMark || !range.end;
        if (row.integer_or(5, 0) != 0) {
            range.text = context_.name(row.integer(5));
            range.plain = context_.plain_name(row.integer(5));
        } else {
            range.plain = row.text(6);
            append_json(range.text, range.plain);
        }
        const auto domain = domains_.find({range.global_tid & schema::kPidMask, row.integer(4)});
        if (domain != domains_.end()) range.domain = domain->second;
        // Unless it names an operator or a module, the column holds a program's own payload.
        if (!row.is_null(7) &&
            (range.domain == store::kOperatorDomain || range.domain == store::kAnnotationDomain))
            range.external = row.integer(7);
        if (!row.is_null(8) && known_modules_.contains(row.integer(8))) range.module = row.integer(8);
        if (!row.is_null(9)) range.detail = inside_of(row.integer(9));
        // The order of rows with equal starts says nothing, so they are sorted: the longest is the outermost.
        if (!waiting_.empty() && waiting_.front().start != range.start) write_waiting();
        waiting_.push_back(std::move(range));
    }

    // The content between the braces of a JSON object; empty if the text is not one.
    std::string inside_of(std::int64_t id) {
        const auto [it, is_new] = details_.try_emplace(id);
        if (is_new) {
            const std::string object = schema::object_in_one_line(context_.plain_name(id));
            if (!object.empty()) it->second = object.substr(1, object.size() - 2);
        }
        return it->second;
    }

    void write_waiting() {
        std::stable_sort(waiting_.begin(), waiting_.end(), [](const Range& a, const Range& b) {
            return a.end.value_or(a.start) > b.end.value_or(b.start);
        });
        for (const Range& range : waiting_) write_one(range);
        waiting_.clear();
    }

    void write_one(const Range& range) {
        std::string arguments = range.detail;
        const auto add = [&](const std::string& text) { arguments += (arguments.empty() ? "" : ",") + text; };
        if (range.external) add(fmt::format("\"External id\":{}", *range.external));
        std::string_view category = store::kAnnotationDomain;
        if (range.domain == store::kOperatorDomain) category = store::kOperatorDomain;
        if (range.domain == store::kFunctionDomain || (!range.mark && ends_as_module(range.plain)))
            category = store::kFunctionDomain;
        if (category == store::kFunctionDomain && !range.mark) add(frame_of(range));
        const bool known_domain = range.domain.empty() || range.domain == category;
        if (range.module || !known_domain) {
            std::string ours;
            if (range.module) ours = fmt::format("\"module\":{}", *range.module);
            if (!known_domain) {
                ours += ours.empty() ? "\"domain\":" : ",\"domain\":";
                append_json(ours, range.domain);
            }
            add("\"shardscope\":{" + ours + "}");
        }
        context_.begin(range.mark ? "i" : "X", category, range.text);
        context_.place(context_.pid_of_thread(range.global_tid), ChromeContext::tid_of(range.global_tid),
                       range.start);
        if (range.mark) {
            context_.out() += ",\"s\":\"t\"";
        } else {
            context_.duration(range.start, *range.end);
        }
        if (!arguments.empty()) context_.out() += ",\"args\":{" + arguments + "}";
        context_.end();
    }

    std::string frame_of(const Range& range) {
        std::vector<Frame>& open = frames_[range.global_tid];
        while (!open.empty() && open.back().end <= range.start) open.pop_back();
        const std::int64_t id = ++last_frame_;
        std::string text = fmt::format("\"Python id\":{},\"Python parent id\":{}", id,
                                       open.empty() ? "null" : std::to_string(open.back().id));
        if (ends_as_module(range.plain))
            text += fmt::format(",\"Python module id\":{}", number_at_end(range.plain));
        open.push_back({*range.end, id});
        return text;
    }

    ChromeContext& context_;
    std::set<std::int64_t> known_modules_;
    RangeDomains domains_;
    std::unordered_map<std::int64_t, std::string> details_;
    std::vector<Range> waiting_;  // with equal starts
    std::unordered_map<std::int64_t, std::vector<Frame>> frames_;
    std::int64_t last_frame_ = 0;
};

void write_calls(ChromeContext& context) {
    scan_table(context.database(), "CUPTI_ACTIVITY_KIND_RUNTIME",
               {"start", "end", "globalTid", "correlationId", "nameId", "eventClass"},
               context.ordered_by("CUPTI_ACTIVITY_KIND_RUNTIME", "start"), [&](const store::Statement& row) {
                   std::string name;
                   append_json(name, store::without_version_suffix(context.plain_name(row.integer(4))));
                   context.begin("X", row.integer(5) == 1 ? "cuda_driver" : "cuda_runtime", name);
                   context.place(context.pid_of_thread(row.integer(2)), ChromeContext::tid_of(row.integer(2)),
                                 row.integer(0));
                   context.duration(row.integer(0), row.integer(1));
                   fmt::format_to(std::back_inserter(context.out()), ",\"args\":{{\"correlation\":{}}}",
                                  row.integer(3));
                   context.end();
               });
}

void write_overheads(ChromeContext& context) {
    scan_table(context.database(), "CUPTI_ACTIVITY_KIND_OVERHEAD", {"start", "end", "globalTid", "nameId"},
               context.ordered_by("CUPTI_ACTIVITY_KIND_OVERHEAD", "start"), [&](const store::Statement& row) {
                   context.begin("X", "overhead",
                                 row.is_null(3) ? "\"Overhead\"" : context.name(row.integer(3)));
                   context.place(context.pid_of_thread(row.integer(2)), ChromeContext::tid_of(row.integer(2)),
                                 row.integer(0));
                   context.duration(row.integer(0), row.integer(1));
                   context.end();
               });
}

// Writes the steps that have no range.
void write_steps(ChromeContext& context) {
    const std::string told =
        fmt::format("SELECT 1 FROM NVTX_EVENTS WHERE text LIKE 'ProfilerStep#%' LIMIT 1");
    if (context.database().has_table("NVTX_EVENTS") && store::Statement(context.database(), told).step())
        return;
    scan_table(context.database(), "SHARD_STEPS", {"step", "start", "end", "globalTid"}, "",
               [&](const store::Statement& row) {
                   context.begin("X", store::kAnnotationDomain,
                                 fmt::format("\"ProfilerStep#{}\"", row.integer(0)));
                   context.place(context.pid_of_thread(row.integer(3)), ChromeContext::tid_of(row.integer(3)),
                                 row.integer(1));
                   context.duration(row.integer(1), row.integer(2));
                   context.end();
               });
}

void write_links(ChromeContext& context) {
    std::int64_t id = 0;
    scan_table(context.database(), "SHARD_LINKS", {"kind", "fromTid", "fromTime", "toTid", "toTime"}, "",
               [&](const store::Statement& row) {
                   if (row.integer(0) != static_cast<int>(schema::LinkKind::backward)) return;
                   ++id;
                   for (const auto& [phase, tid, time] : {std::tuple("s", row.integer(1), row.integer(2)),
                                                          std::tuple("f", row.integer(3), row.integer(4))}) {
                       context.begin(phase, "fwdbwd", "\"fwdbwd\"");
                       fmt::format_to(std::back_inserter(context.out()), ",\"id\":{}", id);
                       context.place(context.pid_of_thread(tid), ChromeContext::tid_of(tid), time);
                       if (*phase == 'f') context.out() += ",\"bp\":\"e\"";
                       context.end();
                   }
               });
}

}  // namespace

void write_host_events(ChromeContext& context) {
    write_steps(context);
    Ranges(context).write();
    write_calls(context);
    write_overheads(context);
    write_links(context);
}

}  // namespace shardscope::traces::exports
