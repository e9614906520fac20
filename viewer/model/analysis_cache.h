// Results of analyses, computed on one background thread and kept. A panel asks in every frame and gets the
// finished result, or nullptr while it is being computed; the request starts the computation. Frame thread
// only (the worker is inside). No Dear ImGui.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "traces/analysis/base/selection.h"
#include "traces/analysis/communication/collectives.h"
#include "traces/analysis/compare/compare.h"
#include "traces/analysis/facts/info.h"
#include "traces/analysis/memory/memory.h"
#include "traces/analysis/modules/modules.h"
#include "traces/analysis/time/summary.h"
#include "traces/store/columns/trace.h"
#include "viewer/draw/fold.h"

namespace shardscope::viewer::model {

using TracePtr = std::shared_ptr<const traces::store::Trace>;

class AnalysisCache {
  public:
    template <class T>
    using Result = std::shared_ptr<const T>;

    AnalysisCache();
    ~AnalysisCache();  // waits for the analysis that is running, unless it was abandoned
    AnalysisCache(const AnalysisCache&) = delete;
    AnalysisCache& operator=(const AnalysisCache&) = delete;

    Result<traces::analysis::ExecutionSummary> summary(const TracePtr& trace,
                                                       const traces::analysis::Selection& selection = {});
    Result<traces::analysis::ModuleView> modules(const TracePtr& trace,
                                                 const traces::analysis::Selection& selection = {});
    Result<traces::analysis::MemoryReport> memory(const TracePtr& trace,
                                                  const traces::analysis::Selection& selection = {});
    Result<traces::analysis::CollectivesReport> collectives(
        const TracePtr& trace, const traces::analysis::Selection& selection = {});
    // The second function returns the points of the first one's curve.
    Result<draw::CategoryCurve> category_curve(
        const TracePtr& trace, traces::store::RankIndex rank,
        traces::schema::MemorySpace space = traces::schema::MemorySpace::device);
    Result<std::vector<traces::analysis::MemoryPoint>> curve(
        const TracePtr& trace, traces::store::RankIndex rank,
        traces::schema::MemorySpace space = traces::schema::MemorySpace::device);
    Result<traces::analysis::TraceInfo> info(const TracePtr& trace);
    Result<std::vector<std::string>> faults(const TracePtr& trace);  // check_trace
    // Several runs, in this order; the first is the base.
    Result<traces::analysis::Comparison> comparison(const std::vector<TracePtr>& traces);

    // Any other analysis of one trace, made by `make(const Trace&, const Selection&)`, which must be pure
    // because it may run on the worker. `name` distinguishes it from other analyses.
    template <class T, class Make>
    Result<T> analysis(const std::string& name, const TracePtr& trace,
                       const traces::analysis::Selection& selection, Make make) {
        return get<T>(
            key_of(name, selection), {trace},
            [make, selection](const std::vector<TracePtr>& t) -> T { return make(*t.front(), selection); });
    }

    // Any other slow result that depends on traces alone, for example an index for drawing. `name`
    // distinguishes it from everything else made from the same traces.
    template <class T, class Make>
    Result<T> get(const std::string& name, const std::vector<TracePtr>& traces, Make make) {
        return find<T>(name, traces, make, true);
    }
    // The same for a `make` that also captures other results: renew() does not repeat it.
    template <class T, class Make>
    Result<T> derived(const std::string& name, const std::vector<TracePtr>& traces, Make make) {
        return find<T>(name, traces, make, false);
    }

    bool busy() const;                            // whether a requested analysis is unfinished
    bool busy_with(const TracePtr& trace) const;  // the same for this trace
    bool busy_without(const std::vector<TracePtr>& traces) const;  // the same for what is not of these
    // Begins a frame: the requests that follow belong to it.
    void begin_frame();
    // The error of the latest failed analysis that this frame requested; empty if none failed, or while
    // another that it requested is unfinished. A failed result stays nullptr until its trace is forgotten.
    std::string failure() const;
    bool failed_with(const TracePtr& trace) const;  // whether an analysis of this trace failed
    // Forgets everything about a trace that was closed.
    void forget(const TracePtr& trace);
    // The last call: does not wait for an analysis that is still running. True: one is running, and the
    // process must end without destroying what it may use (std::_Exit).
    bool abandon();
    // Requests for `after` what the latest frame requested for `before`: a reloaded trace is shown when the
    // results are ready.
    void renew(const TracePtr& before, const TracePtr& after);

  private:
    using Maker = std::function<Result<void>(const std::vector<TracePtr>&)>;
    template <class T, class Make>
    Result<T> find(const std::string& name, const std::vector<TracePtr>& traces, Make make, bool renewable) {
        return std::static_pointer_cast<const T>(find_or_start(
            name, traces,
            [make](const std::vector<TracePtr>& of) -> Result<void> {
                return std::make_shared<const T>(make(of));
            },
            renewable));
    }
    static std::string key_of(std::string_view analysis, const traces::analysis::Selection& selection);
    Result<void> find_or_start(const std::string& name, const std::vector<TracePtr>& traces,
                               const Maker& make, bool renewable);
    struct Impl;
    std::shared_ptr<Impl> impl_;  // shared with the worker
};

}  // namespace shardscope::viewer::model
