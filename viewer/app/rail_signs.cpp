// See rail_signs.h.
#include "viewer/app/rail_signs.h"

#include <cstdint>
#include <span>

namespace shardscope::viewer {
namespace {

// On the grid: a line from a to b, a filled box, an outlined box, a filled or outlined circle (a: centre,
// b.x: radius).
enum class Shape : std::uint8_t { line, box, frame, dot, ring };
struct Stroke {
    Shape shape;
    float ax, ay, bx, by;
};

constexpr Stroke kRuns[] = {{Shape::box, 1, 2, 4, 5},       {Shape::line, 6, 3.5F, 15, 3.5F},
                            {Shape::box, 1, 6.5F, 4, 9.5F}, {Shape::line, 6, 8, 15, 8},
                            {Shape::box, 1, 11, 4, 14},     {Shape::line, 6, 12.5F, 15, 12.5F}};
constexpr Stroke kTimeline[] = {{Shape::box, 1, 2, 8, 5},
                                {Shape::box, 10, 2, 15, 5},
                                {Shape::box, 4, 6.5F, 12, 9.5F},
                                {Shape::box, 1, 11, 5, 14},
                                {Shape::box, 7, 11, 15, 14}};
constexpr Stroke kModules[] = {{Shape::box, 1, 1, 7, 5},   {Shape::line, 3, 5, 3, 13},
                               {Shape::line, 3, 8, 8, 8},  {Shape::line, 3, 13, 8, 13},
                               {Shape::box, 8, 6, 15, 10}, {Shape::box, 8, 11, 15, 15}};
constexpr Stroke kUnits[] = {{Shape::box, 1, 1, 7.5F, 7.5F},
                             {Shape::frame, 8.5F, 1, 15, 7.5F},
                             {Shape::frame, 1, 8.5F, 7.5F, 15},
                             {Shape::box, 8.5F, 8.5F, 15, 15}};
constexpr Stroke kMemory[] = {{Shape::line, 1, 13, 4, 9},
                              {Shape::line, 4, 9, 7, 11},
                              {Shape::line, 7, 11, 11, 3},
                              {Shape::line, 11, 3, 15, 8},
                              {Shape::line, 1, 15, 15, 15}};
constexpr Stroke kSummary[] = {
    {Shape::box, 2, 9, 5, 14}, {Shape::box, 6.5F, 2, 9.5F, 14}, {Shape::box, 11, 6, 14, 14}};
constexpr Stroke kOperators[] = {
    {Shape::ring, 8, 8, 6.5F, 0}, {Shape::line, 8, 5, 8, 11}, {Shape::line, 5, 8, 11, 8}};
constexpr Stroke kKernels[] = {{Shape::frame, 4, 4, 12, 12}, {Shape::box, 6.5F, 6.5F, 9.5F, 9.5F},
                               {Shape::line, 6, 1, 6, 4},    {Shape::line, 10, 1, 10, 4},
                               {Shape::line, 6, 12, 6, 15},  {Shape::line, 10, 12, 10, 15},
                               {Shape::line, 1, 6, 4, 6},    {Shape::line, 1, 10, 4, 10},
                               {Shape::line, 12, 6, 15, 6},  {Shape::line, 12, 10, 15, 10}};
constexpr Stroke kCollectives[] = {{Shape::line, 8, 3, 3, 12},   {Shape::line, 8, 3, 13, 12},
                                   {Shape::line, 3, 12, 13, 12}, {Shape::dot, 8, 3, 2.3F, 0},
                                   {Shape::dot, 3, 12, 2.3F, 0}, {Shape::dot, 13, 12, 2.3F, 0}};
constexpr Stroke kDistributed[] = {{Shape::frame, 1, 1, 6, 6},       {Shape::frame, 10, 1, 15, 6},
                                   {Shape::frame, 1, 10, 6, 15},     {Shape::frame, 10, 10, 15, 15},
                                   {Shape::line, 6, 3.5F, 10, 3.5F}, {Shape::line, 6, 12.5F, 10, 12.5F},
                                   {Shape::line, 3.5F, 6, 3.5F, 10}, {Shape::line, 12.5F, 6, 12.5F, 10}};
constexpr Stroke kShardmap[] = {
    {Shape::box, 1, 1, 5, 5},     {Shape::frame, 6, 1, 10, 5}, {Shape::frame, 11, 1, 15, 5},
    {Shape::box, 1, 6, 5, 10},    {Shape::box, 6, 6, 10, 10},  {Shape::frame, 11, 6, 15, 10},
    {Shape::frame, 1, 11, 5, 15}, {Shape::box, 6, 11, 10, 15}, {Shape::box, 11, 11, 15, 15}};
constexpr Stroke kIdle[] = {
    {Shape::ring, 8, 8, 6.5F, 0}, {Shape::line, 8, 8, 8, 4}, {Shape::line, 8, 8, 11, 9.5F}};
constexpr Stroke kAdvice[] = {
    {Shape::ring, 8, 6, 4.5F, 0}, {Shape::line, 6, 12, 10, 12}, {Shape::line, 6.5F, 14.5F, 9.5F, 14.5F}};
constexpr Stroke kCompare[] = {
    {Shape::frame, 1, 6, 6, 14}, {Shape::box, 10, 2, 15, 14}, {Shape::line, 8, 1, 8, 15}};
constexpr Stroke kPlan[] = {{Shape::line, 2, 1, 2, 14},       {Shape::line, 2, 14, 15, 14},
                            {Shape::dot, 5, 3, 1.4F, 0},      {Shape::dot, 7.5F, 7.5F, 1.4F, 0},
                            {Shape::dot, 13, 10.5F, 1.4F, 0}, {Shape::ring, 12, 4.5F, 1.2F, 0}};
constexpr Stroke kQuery[] = {
    {Shape::line, 2, 4, 6, 8}, {Shape::line, 6, 8, 2, 12}, {Shape::line, 8, 13, 14, 13}};
constexpr Stroke kPlain[] = {{Shape::frame, 2, 2, 14, 14}};

struct Sign {
    std::string_view panel;
    std::span<const Stroke> strokes;
};
constexpr Sign kSigns[] = {{"runs", kRuns},
                           {"timeline", kTimeline},
                           {"modules", kModules},
                           {"units", kUnits},
                           {"memory", kMemory},
                           {"summary", kSummary},
                           {"operators", kOperators},
                           {"kernels", kKernels},
                           {"collectives", kCollectives},
                           {"distributed", kDistributed},
                           {"shardmap", kShardmap},
                           {"idle", kIdle},
                           {"advice", kAdvice},
                           {"compare", kCompare},
                           {"plan", kPlan},
                           {"query", kQuery}};

std::span<const Stroke> strokes_of(std::string_view panel) {
    for (const Sign& sign : kSigns) {
        if (sign.panel == panel) return sign.strokes;
    }
    return kPlain;
}

}  // namespace

void draw_sign(ImDrawList& list, std::string_view panel, ImVec2 at, float size, ImU32 color) {
    const float unit = size / 16, thick = unit * 1.4F;
    for (const Stroke& s : strokes_of(panel)) {
        const ImVec2 a{at.x + s.ax * unit, at.y + s.ay * unit}, b{at.x + s.bx * unit, at.y + s.by * unit};
        switch (s.shape) {
            case Shape::line:
                list.AddLine(a, b, color, thick);
                break;
            case Shape::box:
                list.AddRectFilled(a, b, color, unit);
                break;
            case Shape::frame:
                list.AddRect(a, b, color, unit, 0, thick);
                break;
            case Shape::dot:
                list.AddCircleFilled(a, s.bx * unit, color);
                break;
            case Shape::ring:
                list.AddCircle(a, s.bx * unit, color, 0, thick);
                break;
        }
    }
}

}  // namespace shardscope::viewer
