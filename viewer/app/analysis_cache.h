// Results of analyses, computed on one background thread and kept. A panel asks every frame and gets the
// finished result, or nullptr while it is being computed; asking is what starts it.
// Frame thread only (the worker is inside). No Dear ImGui.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "traces/analysis/collectives.h"
#include "traces/analysis/compare.h"
#include "traces/analysis/info.h"
#include "traces/analysis/memory.h"
#include "traces/analysis/modules.h"
#include "traces/analysis/selection.h"
#include "traces/analysis/summary.h"
#include "traces/store/trace.h"
#include "viewer/draw/fold.h"

namespace shardscope::viewer {

using TracePtr = std::shared_ptr<const traces::Trace>;

class AnalysisCache {
  public:
    template <class T>
    using Result = std::shared_ptr<const T>;

    AnalysisCache();
    ~AnalysisCache();  // waits for the analysis that is running
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
        return std::static_pointer_cast<const T>(find_or_start(
            name, traces,
            [make, traces]() -> Result<void> { return std::make_shared<const T>(make(traces)); }));
    }

    bool busy() const;  // an analysis that was asked for is not finished
    // The sentence of the latest analysis that failed, empty where none did. Its result stays nullptr.
    std::string failure() const;
    // Forgets everything about a trace that was closed.
    void forget(const TracePtr& trace);

  private:
    static std::string key_of(std::string_view analysis, const traces::Selection& selection);
    Result<void> find_or_start(const std::string& name, const std::vector<TracePtr>& traces,
                               std::function<Result<void>()> make);
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace shardscope::viewer
