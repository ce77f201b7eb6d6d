#include "data/synthetic_digits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <span>
#include <vector>

namespace hawser::data {
namespace {

constexpr int kSide = 28;

struct Point {
  double x, y;
};

// Strokes as polylines in a box of width 1 and height 1.5, y downwards. A
// negative x lifts the pen.
constexpr Point kLift{-1, -1};

constexpr Point kZero[] = {{.5, 0},    {.15, .2}, {0, .6},    {0, .9},
                           {.15, 1.3}, {.5, 1.5}, {.85, 1.3}, {1, .9},
                           {1, .6},    {.85, .2}, {.5, 0}};
constexpr Point kOne[] = {{.2, .35}, {.55, 0}, {.55, 1.5}};
constexpr Point kTwo[] = {{.05, .4}, {.2, .1},  {.5, 0},  {.85, .12},
                          {.95, .4}, {.8, .75}, {0, 1.5}, {1, 1.5}};
constexpr Point kThree[] = {{.05, .15}, {.4, 0},   {.8, .1},  {.9, .4},
                            {.7, .65},  {.35, .7}, {.75, .8}, {.97, 1.1},
                            {.8, 1.4},  {.4, 1.5}, {0, 1.35}};
constexpr Point kFour[] = {{.75, 1.5}, {.75, 0}, {0, 1}, {1, 1}};
constexpr Point kFive[] = {{.9, 0},    {.15, 0},   {.1, .65},
                           {.5, .55},  {.9, .75},  {.95, 1.1},
                           {.7, 1.45}, {.35, 1.5}, {0, 1.35}};
constexpr Point kSix[] = {{.8, 0},   {.35, .3},  {.05, .8},  {.05, 1.2},
                          {.3, 1.5}, {.7, 1.48}, {.95, 1.2}, {.85, .85},
                          {.5, .75}, {.1, 1}};
constexpr Point kSeven[] = {{0, 0}, {1, 0}, {.4, 1.5}};
constexpr Point kEight[] = {{.5, .7},   {.12, .5}, {.15, .15}, {.5, 0},
                            {.85, .15}, {.88, .5}, {.5, .7},   {.05, .95},
                            {.05, 1.3}, {.5, 1.5}, {.95, 1.3}, {.95, .95},
                            {.5, .7}};
constexpr Point kNine[] = {{.9, .5},  {.55, .75}, {.15, .65},
                           {.05, .3}, {.3, .02},  {.7, .03},
                           {.92, .3}, {.88, .8},  {.6, 1.5}};
constexpr Point kSevenBar[] = {{0, 0}, {1, 0},    {.4, 1.5},
                               kLift,  {.25, .8}, {.85, .8}};

constexpr std::array<std::span<const Point>, 10> kStrokes = {
    kZero, kOne, kTwo, kThree, kFour, kFive, kSix, kSeven, kEight, kNine};

// Uniform numbers computed from the generator's bits. The standard does not
// specify the algorithms of its distributions, so they differ between
// libraries.
class Draw {
 public:
  explicit Draw(uint64_t seed) : bits_(seed) {}

  double Between(double low, double high) {
    return low + (high - low) * static_cast<double>(bits_() >> 11) * 0x1p-53;
  }
  // Uniform below `bound`; the bias is under bound / 2^64.
  uint64_t Below(uint64_t bound) { return bits_() % bound; }

 private:
  std::mt19937_64 bits_;
};

std::vector<Point> Deform(std::span<const Point> strokes, Draw& draw) {
  const double height = draw.Between(11.5, 13.5);  // Pixels per unit.
  const double width = height * draw.Between(0.75, 1.15);
  const double slant = draw.Between(-0.25, 0.25);
  // A rotation by a small angle from its tangent: no libm function whose last
  // digit depends on the library.
  const double tangent = draw.Between(-0.22, 0.22);
  const double cosine = 1 / std::sqrt(1 + tangent * tangent);
  const double sine = tangent * cosine;
  const double shift_x = draw.Between(-1.8, 1.8);
  const double shift_y = draw.Between(-1.8, 1.8);
  std::vector<Point> out;
  out.reserve(strokes.size());
  for (const Point& p : strokes) {
    if (p.x < 0) {
      out.push_back(kLift);
      continue;
    }
    const double wobble_x = draw.Between(-0.06, 0.06);
    const double wobble_y = draw.Between(-0.06, 0.06);
    const double x = (p.x - 0.5 + wobble_x - slant * (p.y - 0.75)) * width;
    const double y = (p.y - 0.75 + wobble_y) * height;
    out.push_back({13.5 + shift_x + cosine * x - sine * y,
                   13.5 + shift_y + sine * x + cosine * y});
  }
  return out;
}

double SquaredDistanceToSegment(Point p, Point a, Point b) {
  const double dx = b.x - a.x, dy = b.y - a.y;
  const double length2 = dx * dx + dy * dy;
  double t = 0;
  if (length2 > 0) {
    t = std::clamp(((p.x - a.x) * dx + (p.y - a.y) * dy) / length2, 0.0, 1.0);
  }
  const double ex = a.x + t * dx - p.x, ey = a.y + t * dy - p.y;
  return ex * ex + ey * ey;
}

// Ink of a round pen: full inside its radius, fading over one pixel.
void Stroke(Point a, Point b, double radius, std::span<double> ink) {
  const double reach = radius + 1;
  const int x0 = std::max(0, static_cast<int>(std::min(a.x, b.x) - reach));
  const int x1 =
      std::min(kSide - 1, static_cast<int>(std::max(a.x, b.x) + reach) + 1);
  const int y0 = std::max(0, static_cast<int>(std::min(a.y, b.y) - reach));
  const int y1 =
      std::min(kSide - 1, static_cast<int>(std::max(a.y, b.y) + reach) + 1);
  for (int y = y0; y <= y1; ++y) {
    for (int x = x0; x <= x1; ++x) {
      const Point pixel{static_cast<double>(x), static_cast<double>(y)};
      const double distance = std::sqrt(SquaredDistanceToSegment(pixel, a, b));
      const double value = std::clamp(reach - distance, 0.0, 1.0);
      double& cell =
          ink[static_cast<size_t>(y) * kSide + static_cast<size_t>(x)];
      cell = std::max(cell, value);
    }
  }
}

void DrawDigit(int digit, Draw& draw, uint8_t* pixels) {
  std::span<const Point> strokes = kStrokes[static_cast<size_t>(digit)];
  if (digit == 7 && draw.Below(4) == 0) strokes = kSevenBar;
  const std::vector<Point> points = Deform(strokes, draw);
  const double radius = draw.Between(0.45, 1.25);
  std::array<double, size_t{kSide} * kSide> ink{};
  for (size_t i = 1; i < points.size(); ++i) {
    if (points[i].x < -0.5 && points[i].x == kLift.x) continue;
    if (points[i - 1].x == kLift.x && points[i - 1].y == kLift.y) continue;
    Stroke(points[i - 1], points[i], radius, ink);
  }
  const double strength = draw.Between(190, 255);
  for (size_t i = 0; i < ink.size(); ++i) {
    const double noise = draw.Between(-12, 12);
    pixels[i] = static_cast<uint8_t>(
        std::clamp(ink[i] * strength + (ink[i] > 0 ? noise : 0), 0.0, 255.0));
  }
}

}  // namespace

LabeledImages DrawDigits(int64_t count, uint64_t seed) {
  LabeledImages set{
      Tensor::Empty({count, kSide, kSide}, {.dtype = tensor::DType::kU8}),
      Tensor::Empty({count}, {.dtype = tensor::DType::kI64})};
  Draw draw(seed);
  int64_t* labels = set.labels.data<int64_t>();
  for (int64_t i = 0; i < count; ++i) labels[i] = i % 10;
  for (int64_t i = count - 1; i > 0; --i) {
    std::swap(labels[i], labels[draw.Below(static_cast<uint64_t>(i) + 1)]);
  }
  uint8_t* pixels = set.images.data<uint8_t>();
  for (int64_t i = 0; i < count; ++i) {
    DrawDigit(static_cast<int>(labels[i]), draw, pixels + i * kSide * kSide);
  }
  return set;
}

}  // namespace hawser::data
