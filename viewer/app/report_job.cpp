// See report_job.h.
#include "viewer/app/report_job.h"

#include <chrono>
#include <exception>
#include <filesystem>
#include <utility>
#include <vector>

#include "traces/export/text_output.h"
#include "traces/report/html_report.h"
#include "traces/report/timeline/html_timeline.h"

namespace shardscope::viewer::app {
namespace {

struct Subject {
    model::TracePtr trace;
    std::string name;
    traces::analysis::Selection selection;
};

// Writes what `html` returns; the error, or "".
template <class Html>
std::string write(const std::string& path, const Html& html) {
    try {
        traces::exports::TextOutput output(path, true, false);
        output.buffer() = html();
        output.finish();
        return "";
    } catch (const std::exception& error) {
        return error.what();
    }
}

std::string report_of(const std::vector<Subject>& subjects) {
    std::vector<traces::report::ReportedRun> runs;
    std::vector<const traces::store::Trace*> all;
    std::vector<traces::analysis::Selection> selections;
    for (const Subject& subject : subjects) {
        runs.push_back(traces::report::reported_run(*subject.trace, subject.name, subject.selection));
        all.push_back(subject.trace.get());
        selections.push_back(subject.selection);
    }
    return traces::report::html_report(runs, traces::report::reported_comparison(all, selections));
}

}  // namespace

void ReportJob::start(const model::Session& session, const std::string& path) {
    if (outcome_.valid()) return;
    std::vector<Subject> subjects;
    for (const model::OpenTrace& entry : session.open) {
        if (entry.trace && !model::holds_only_plan(*entry.trace))
            subjects.push_back({entry.trace, entry.name, model::Session::selection(entry)});
    }
    begin(path);
    if (subjects.empty()) {
        error_ = "No trace with a timeline is open: there is nothing to report.";
        return;
    }
    outcome_ = std::async(std::launch::async, [subjects = std::move(subjects), path] {
        return write(path, [&] { return report_of(subjects); });
    });
}

void ReportJob::start_timeline(const model::Session& session, const std::string& path, bool visible) {
    if (outcome_.valid()) return;
    begin(path);
    const model::OpenTrace* entry = session.current();
    if (entry == nullptr || !entry->trace || model::holds_only_plan(*entry->trace)) {
        error_ = "No trace with a timeline is open: there is nothing to export.";
        return;
    }
    Subject subject{entry->trace, entry->name, model::Session::selection(*entry)};
    if (visible) {
        subject.selection.from_ns = entry->visible.from;
        subject.selection.to_ns = entry->visible.to;
    }
    outcome_ = std::async(std::launch::async, [subject = std::move(subject), path] {
        return write(path, [&] {
            return traces::report::html_timeline(*subject.trace, subject.name, subject.selection).html;
        });
    });
}

void ReportJob::begin(const std::string& path) {
    wanted_ = path;
    path_.clear();
    error_.clear();
}

bool ReportJob::busy() const {
    return outcome_.valid() && outcome_.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
}

void ReportJob::take() {
    if (!outcome_.valid() || busy()) return;
    error_ = outcome_.get();
    if (error_.empty()) path_ = wanted_;
}

std::string ReportJob::path() {
    take();
    return path_;
}

std::string ReportJob::error() {
    take();
    return error_;
}

}  // namespace shardscope::viewer::app
