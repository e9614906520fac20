// Measures how fast ten million events open and draw. A lower bound for any viewer is measured in the same
// run: one sqlite3_step scan of the same columns. Bars: open in at most 1.5 scans, 64 bytes resident per
// event, a frame in 4 ms (median) and 16 ms (99th percentile) of processor time at every zoom with at most
// 10,000 rectangles and 100 draw commands, a table of ten million rows sorted off the frame thread. Not a
// test.
//
//   bench_viewer [--events N] [--trace FILE] [--only opening|frames|large]
//                                                FILE is made if it does not exist, and kept; without it a
//                                                temporary one is used
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/core.h>
#include <malloc.h>
#include <sqlite3.h>
#include <unistd.h>

#include "traces/lanes/kept_tracks.h"
#include "traces/lanes/tracks.h"
#include "traces/store/beside/column_file.h"
#include "traces/store/beside/kept_trace.h"
#include "traces/store/load/loader.h"
#include "traces/store/sqlite/open.h"
#include "traces/store/sqlite/sqlite.h"
#include "viewer/bench/curves.h"
#include "viewer/bench/frames.h"
#include "viewer/bench/made_trace.h"
#include "viewer/bench/measure.h"
#include "viewer/tables/table_order.h"

namespace {

using namespace shardscope;
using namespace shardscope::viewer::bench;
namespace fs = std::filesystem;

constexpr int kRounds = 3;                      // of open and scan, alternating
constexpr std::int64_t kTooLarge = 50'000'000;  // for more than one round: events

// Steps through every row and reads every value that the loader reads; the sum keeps the compiler from
// removing the reads.
std::vector<double> bare_scan(const std::string& path) {
    const double start = process_seconds();
    traces::store::Database database = traces::store::open_trace(path);
    traces::store::Statement statement(
        database,
        "SELECT start, \"end\", eventType, globalTid, domainId, textId, int64Value, "
        "uint64Value, jsonTextId FROM NVTX_EVENTS");
    sqlite3_stmt* bare = statement.handle();
    std::int64_t rows = 0, sum = 0;
    while (sqlite3_step(bare) == SQLITE_ROW) {
        ++rows;
        for (int c = 0; c < 9; ++c) sum += sqlite3_column_int64(bare, c) & 1;
    }
    return {process_seconds() - start, static_cast<double>(rows), static_cast<double>(sum)};
}

// The time from the command to the first frame with rows, and the memory once all work is done.
struct Opened {
    double processor_s = 0, wall_s = 0, stays = 0, most = 0;  // bytes: resident at the end, at most
};

double wall_seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Opened open_once(const std::string& path) {
    const auto values = in_child([&]() -> std::vector<double> {
        const std::int64_t before = resident_bytes();
        const double start = process_seconds(), wall_start = wall_seconds();
        Viewer viewer(path);
        viewer.wait_for_timeline();
        const double processor = process_seconds() - start, wall = wall_seconds() - wall_start;
        viewer.settle();
        const std::int64_t most = largest_resident_bytes();
        ::malloc_trim(0);
        return {processor, wall, static_cast<double>(resident_bytes() - before),
                static_cast<double>(most - before)};
    });
    return {values[0], values[1], values[2], values[3]};
}

// Several such, by median and by the largest memory.
struct Openings {
    std::vector<double> processor, wall;
    double stays = 0, most = 0;
    void add(const Opened& one) {
        processor.push_back(one.processor_s);
        wall.push_back(one.wall_s);
        stays = std::max(stays, one.stays);
        most = std::max(most, one.most);
    }
    void print(const char* what, double rows) const {
        fmt::print("{:<26}{:>9.2f}{:>9.2f}{:>16.1f}{:>10.1f}\n", what, percentile(processor, 0.5),
                   percentile(wall, 0.5), stays / rows, most / rows);
    }
};

// The trace is opened from its rows, and then from the file of its columns beside it.
void measure_opening(const std::string& path) {
    std::vector<double> scans, scan_walls;
    Openings opens, again;
    double rows = 0;
    int rounds = kRounds;
    fs::remove(traces::store::column_path(path));
    if (in_child([&] { return bare_scan(path); })[1] > kTooLarge) rounds = 1;  // it warms the page cache
    for (int round = 0; round < rounds; ++round) {
        const double start = wall_seconds();
        const auto scan = in_child([&] { return bare_scan(path); });
        scan_walls.push_back(wall_seconds() - start);
        scans.push_back(scan[0]);
        rows = scan[1];
        opens.add(open_once(path));
    }
    const auto kept = in_child([&]() -> std::vector<double> {
        const auto trace = traces::store::load_trace(path);
        const traces::lanes::Tracks tracks = traces::lanes::make_tracks(*trace);
        if (!traces::store::can_be_kept(*trace)) return {};
        const double start = process_seconds();
        const std::int64_t bytes = traces::lanes::keep_beside(*trace, tracks.tracks);
        return {process_seconds() - start, static_cast<double>(bytes)};
    });
    for (int round = 0; round < rounds && !kept.empty(); ++round) again.add(open_once(path));
    fs::remove(traces::store::column_path(path));
    const double scan = percentile(scans, 0.5), open = percentile(opens.processor, 0.5);
    fmt::print("{:.0f} events, {:.1f} MiB; median of {}\n", rows,
               static_cast<double>(fs::file_size(path)) / (1 << 20), rounds == 1 ? "one round" : "3 rounds");
    fmt::print("{:<26}{:>9}{:>9}{:>16}{:>10}\n", "", "CPU (s)", "wall (s)", "resident (B/ev.)", "at most");
    fmt::print("{:<26}{:>9.2f}{:>9.2f}\n", "bare scan", scan, percentile(scan_walls, 0.5));
    opens.print("open to the first frame", rows);
    if (!kept.empty()) again.print("the same, columns beside", rows);
    fmt::print("CPU time is {:.2f} x the scan (bar 1.5), resident at most 64 bytes per event (bar)\n",
               open / scan);
    if (!kept.empty())
        fmt::print("the columns take {:.1f} bytes per event and are written in {:.2f} s of CPU time\n\n",
                   kept[1] / rows, kept[0]);
}

// Measures resident memory per event for a temporary trace that has only device events.
void measure_devices(std::int64_t events) {
    const std::string path =
        (fs::temp_directory_path() / fmt::format("bench_viewer_devices_{}.sqlite", ::getpid())).string();
    (void)in_child([&] {
        make_device_trace(path, events);
        return std::vector<double>{};
    });
    const Opened open = open_once(path);
    fs::remove(path);
    fmt::print("{} device events alone: resident, open {:.1f} bytes per event (bar 64)\n\n", events,
               open.stays / static_cast<double>(events));
}

struct Zoom {
    const char* name;
    double share_of_all;  // used if ns is 0
    double ns;
};
constexpr Zoom kZooms[] = {{"all", 1, 0},       {"30 %", 0.3, 0}, {"10 %", 0.1, 0},  {"1 %", 0.01, 0},
                           {"0.1 %", 0.001, 0}, {"1 ms", 0, 1e6}, {"30 us", 0, 3e4}, {"1 us", 0, 1e3}};

// Turns the vertical and horizontal wheel over the rows, around the middle of the trace.
void measure_zooms(Viewer& viewer, const viewer::model::TimeRange& all) {
    viewer::model::OpenTrace& entry = *viewer.program.session.current();
    fmt::print("{:<10}{:>9}{:>9}{:>9}{:>13}{:>11}{:>11}\n", "shown", "median", "p99", "most", "rectangles",
               "commands", "vertices");
    for (const Zoom& zoom : kZooms) {
        const double length = zoom.ns > 0 ? zoom.ns : zoom.share_of_all * static_cast<double>(all.length());
        const std::int64_t middle = all.from + all.length() / 2;
        entry.visible = {middle - static_cast<std::int64_t>(length / 2),
                         middle + static_cast<std::int64_t>(length / 2)};
        viewer.settle();
        std::vector<double> times;
        Counted most;
        constexpr int kFrames = 200;
        for (int f = 0; f < kFrames; ++f) {
            const int phase = f % 8;  // in, in, right, right, out, out, left, left
            viewer.wheel = phase < 2 ? 0.5F : phase >= 4 && phase < 6 ? -0.5F : 0;
            viewer.wheel_sideways = phase >= 6 ? 0.4F : phase >= 2 && phase < 4 ? -0.4F : 0;
            times.push_back(viewer.frame());
            const Counted now = viewer.counted();
            most.rectangles = std::max(most.rectangles, now.rectangles);
            most.commands = std::max(most.commands, now.commands);
            most.vertices = std::max(most.vertices, now.vertices);
        }
        viewer.wheel = viewer.wheel_sideways = 0;
        fmt::print("{:<10}{:>9.2f}{:>9.2f}{:>9.2f}{:>13}{:>11}{:>11}\n", zoom.name, percentile(times, 0.5),
                   percentile(times, 0.99), percentile(times, 1), most.rectangles, most.commands,
                   most.vertices);
        std::fflush(stdout);
    }
}

// The bar of 4 ms is for each pane.
void measure_panes(Viewer& viewer, const viewer::model::TimeRange& all) {
    viewer.mouse = {1200, 700};  // over the timeline
    for (const char* panes : {"memory /45 timeline", "(memory | units) / (summary | timeline)"}) {
        viewer.program.arrange(panes);
        viewer.settle();
        fmt::print("The same in panes: {}\n", panes);
        measure_zooms(viewer, all);
        fmt::print("\n");
    }
    viewer.program.arrange("timeline");
    viewer::model::Session& session = viewer.program.session;
    session.open_file(session.current()->path);
    viewer.settle();
    session.set_active(0);
    viewer.program.shown().act("other_run", session);
    viewer.settle();
    fmt::print("Two runs, one below the other, each step aligned\n");
    measure_zooms(viewer, all);
    fmt::print("\n");
}

void measure_frames(const std::string& path) {
    Viewer viewer(path);
    viewer.wait_for_timeline();
    viewer.settle();
    viewer::model::Session& session = viewer.program.session;
    const viewer::model::TimeRange all = session.current()->visible;
    fmt::print(
        "Frames while panning and zooming, 1600 x 900, processor time in ms (bars: median 4, p99 16, 10,000 "
        "rectangles, 100 commands)\n");
    measure_zooms(viewer, all);
    std::vector<double> still;
    for (int f = 0; f < 100; ++f) still.push_back(viewer.frame());
    fmt::print("{:<10}{:>9.2f}{:>9.2f}\n\n", "unmoved", percentile(still, 0.5), percentile(still, 0.99));
    viewer.program.shown().act("find", session);
    viewer.settle();
    ImGui::GetIO().AddInputCharactersUTF8("o");
    session.current()->visible = all;
    viewer.program.shown().act("area", session);
    viewer.settle();
    fmt::print(
        "The same with all events found that have an o in their name, and all rows marked as an area\n");
    measure_zooms(viewer, all);
    fmt::print("\n");
    measure_panes(viewer, all);
}

// A table with as many rows as the trace has ranges: name and time.
class ManyRows final : public viewer::tables::TableModel {
  public:
    explicit ManyRows(std::size_t rows) : rows_(rows) {
        columns_ = {
            {.id = "name", .title = "Name", .unit = "", .kind = viewer::tables::TableColumn::Kind::text},
            {.id = "time", .title = "Time", .unit = "ns"}};
    }
    std::size_t rows() const override { return rows_; }
    std::string text(std::size_t row, std::size_t column) const override {
        return column == 0 ? fmt::format("operator_{}", row % 300) : fmt::format("{}", value(row));
    }
    double number(std::size_t row, std::size_t column) const override {
        return column == 0 ? viewer::tables::kNoNumber : static_cast<double>(value(row));
    }

  private:
    static std::uint64_t value(std::size_t row) { return row * 0x9E3779B97F4A7C15 >> 40; }
    std::size_t rows_;
};

// On the frame thread a result may take 100 ms; longer work runs on another thread and shows its progress.
void measure_tables(std::size_t rows) {
    const auto model = std::make_shared<const ManyRows>(rows);
    fmt::print("A table of {} rows: the longest that it holds up a frame, and the work behind it\n", rows);
    const auto ask = [&](const char* what, viewer::tables::TableSort sort, const std::string& filter) {
        viewer::tables::TableOrder order;
        double longest = 0;
        const double start = process_seconds();
        do {
            const double frame = thread_seconds();
            (void)order.of(model, sort, filter);
            longest = std::max(longest, thread_seconds() - frame);
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        } while (order.busy());
        fmt::print("{:<28}{:>9.2f} ms{:>11.2f} s\n", what, longest * 1e3, process_seconds() - start);
        std::fflush(stdout);
    };
    ask("sort by a number", {.column = 1, .descending = true}, "");
    ask("filter by a text", {}, "operator_29");
}

int usage() {
    fmt::print(
        stderr,
        "usage: bench_viewer [--events N] [--trace FILE | --make FILE] [--only opening|frames|large]\n");
    return 2;
}

}  // namespace

int main(int argc, char** argv) {
    std::int64_t events = 10'000'000;
    std::string path, made, only;
    for (int i = 1; i < argc; i += 2) {
        const std::string_view option = argv[i];
        if (i + 1 == argc) return usage();
        if (option == "--events") {
            events = std::strtoll(argv[i + 1], nullptr, 10);
        } else if (option == "--trace") {
            path = argv[i + 1];
        } else if (option == "--only") {  // opening, frames, or large: opening and the plain frames
            only = argv[i + 1];
        } else if (option == "--make") {  // the trace, without measuring it
            made = argv[i + 1];
        } else {
            return usage();
        }
    }
    if (events <= 0) return usage();
    const bool temporary = path.empty();
    try {
        if (!made.empty()) {
            make_trace(made, events);
            return 0;
        }
        if (temporary)
            path = (fs::temp_directory_path() / fmt::format("bench_viewer_{}.sqlite", ::getpid())).string();
        // In a child process, so that memory that it frees does not serve the measured ones.
        if (!fs::exists(path)) {
            (void)in_child([&] {
                make_trace(path, events);
                return std::vector<double>{};
            });
        }
        if (only.empty() || only == "opening" || only == "large") measure_opening(path);
        if (only.empty()) measure_devices(events / 2);
        if (only == "large") {
            (void)in_child([&] {
                Viewer viewer(path);
                viewer.wait_for_timeline();
                viewer.settle();
                measure_zooms(viewer, viewer.program.session.current()->visible);
                return std::vector<double>{};
            });
        }
        if (only.empty() || only == "frames") {
            (void)in_child([&] {
                measure_frames(path);
                return std::vector<double>{};
            });
        }
        if (only.empty()) {
            (void)in_child([&] {
                measure_curves(static_cast<std::size_t>(events));
                return std::vector<double>{};
            });
            measure_tables(static_cast<std::size_t>(events));
        }
        if (temporary) fs::remove(path);
        return 0;
    } catch (const std::exception& error) {
        fmt::print(stderr, "bench_viewer: {}\n", error.what());
        if (temporary) fs::remove(path);
        return 1;
    }
}
