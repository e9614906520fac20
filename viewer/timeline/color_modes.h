// The colours of the timeline's bars: by kind, name, module, FSDP unit, or why communication is exposed. A
// thing has the same hue in every trace, because the hue is computed from its name; if units share a hue, the
// later ones take free hues. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "traces/analysis/waits/waits.h"
#include "viewer/model/session.h"
#include "viewer/theme/theme.h"
#include "viewer/timeline/tracks.h"

namespace shardscope::viewer::timeline {

theme::Color paint_color(Paint paint);

// One of the kHues hues: FNV-1a, a hash whose result is the same on every machine.
// Source: Fowler, Noll, Vo, "The FNV Non-Cryptographic Hash Algorithm" (IETF draft-eastlake-fnv).
Paint hue_of(std::string_view name);

struct PaintName {
    Paint paint = 0;
    std::string name;
    std::int64_t busy_ns = 0;  // total over all its events
};

// The paints of every lane of a trace in one of the modes.
class TrackPaints {
  public:
    TrackPaints() = default;  // by kind: the lanes' own paints
    // `waits`: needed by cause.
    TrackPaints(const traces::store::Trace& trace, const Tracks& tracks, model::ColorBy by,
                const traces::analysis::WaitFinder* waits = nullptr);

    const LanePaints& of(const Tracks& tracks, int track, int lane) const;
    // What the trace contains, the longest busy time first; by kind in the order of the kinds.
    const std::vector<PaintName>& legend() const { return legend_; }
    std::size_t memory() const;

  private:
    // `none`: what events without a thing are called.
    template <class Things>
    void paint(const Tracks& tracks, const Things& naming, const char* none);

    std::vector<std::vector<LanePaints>> paints_;  // by track and lane; empty: by kind
    std::vector<PaintName> legend_;
};

}  // namespace shardscope::viewer::timeline
