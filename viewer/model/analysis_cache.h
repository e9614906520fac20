// Results of analyses, computed on one background thread and kept. A panel asks every frame and gets the
// finished result, or nullptr while it is being computed; asking is what starts it.
// Frame thread only (the worker is inside). No Dear ImGui.
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

namespace shardscope::viewer {

using TracePtr = std::shared_ptr<const traces::Trace>;

class AnalysisCache {
  public:
    template <class T>
    using Result = std::shared_ptr<const T>;

    AnalysisCache();
    ~AnalysisCache();  // waits for the analysis that is running, unless it was abandoned
    AnalysisCache(const AnalysisCache&) = delete;
    AnalysisCache& operator=(const AnalysisCache&) = delete;

    Result<traces::ExecutionSummary> summary(const TracePtr& trace, const traces::Selection& selection = {});
    Result<traces::ModuleView> modules(const TracePtr& trace, const traces::Selection& selection = {});
    Result<traces::MemoryReport> memory(const TracePtr& trace, const traces::Selection& selection = {});
    Result<traces::CollectivesReport> collectives(const TracePtr& trace,
                                                  const traces::Selection& selection = {});
    // `rank_index` is an index into Trace::ranks. The second is the points of the first.
    Result<CategoryCurve> category_curve(const TracePtr& trace, int rank_index,
                                         traces::MemorySpace space = traces::MemorySpace::device);
    Result<std::vector<traces::MemoryPoint>> curve(const TracePtr& trace, int rank_index,
                                                   traces::MemorySpace space = traces::MemorySpace::device);
    Result<traces::TraceInfo> info(const TracePtr& trace);
    Result<std::vector<std::string>> faults(const TracePtr& trace);  // check_trace
    // Several runs, in this order; the first is the base.
    Result<traces::Comparison> comparison(const std::vector<TracePtr>& traces);

    // Any other analysis of one trace, made by `make(const Trace&, const Selection&)`: pure, so that it may
    // run on the worker. `name` tells it from other analyses.
    template <class T, class Make>
    Result<T> analysis(const std::string& name, const TracePtr& trace, const traces::Selection& selection,
                       Make make) {
        return get<T>(
            key_of(name, selection), {trace},
            [make, selection](const std::vector<TracePtr>& t) -> T { return make(*t.front(), selection); });
    }

    // Anything else that is made from traces alone and takes long, for example an index for drawing. `name`
    // tells it from everything else made from the same traces.
    template <class T, class Make>
    Result<T> get(const std::string& name, const std::vector<TracePtr>& traces, Make make) {
        return find<T>(name, traces, make, true);
    }
    // The same for what `make` also makes from other results (it captures them): renew() leaves it out.
    template <class T, class Make>
    Result<T> derived(const std::string& name, const std::vector<TracePtr>& traces, Make make) {
        return find<T>(name, traces, make, false);
    }

    bool busy() const;                            // an analysis that was asked for is not finished
    bool busy_with(const TracePtr& trace) const;  // one of this trace
    // A frame begins: the questions that follow are its own.
    void begin_frame();
    // The sentence of an analysis that failed, the latest of those that this frame asked for; empty where
    // none did, and while another of them is not finished. Its result stays nullptr until its trace is
    // forgotten.
    std::string failure() const;
    bool failed_with(const TracePtr& trace) const;  // an analysis of this trace did
    // Forgets everything about a trace that was closed.
    void forget(const TracePtr& trace);
    // The last call: the analysis that is running goes on, and nobody waits for it. True: there is one, and
    // the process must end without taking apart what it may use (std::_Exit).
    bool abandon();
    // Asks of `after` what the latest frame asked of `before`: a trace that was read again is shown when the
    // answers are there.
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
    static std::string key_of(std::string_view analysis, const traces::Selection& selection);
    Result<void> find_or_start(const std::string& name, const std::vector<TracePtr>& traces,
                               const Maker& make, bool renewable);
    struct Impl;
    std::shared_ptr<Impl> impl_;  // the worker's, too
};

}  // namespace shardscope::viewer
