#include "rpc/identity/trace_context.h"

#include <string>

#include "gtest/gtest.h"

namespace hawser::rpc {
namespace {

constexpr char kParent[] =
    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

// Whether a context with `part` within one of its fields is valid.
bool IsValidInParent(const std::string& part) {
  return TraceContext{.traceparent = "a" + part + "b"}.IsValid();
}
bool IsValidInState(const std::string& part) {
  return TraceContext{.traceparent = kParent, .tracestate = "a" + part + "b"}
      .IsValid();
}

TEST(TraceContextTest, ParentIsRequiredAndStateIsNot) {
  EXPECT_TRUE(TraceContext{.traceparent = kParent}.IsValid());
  EXPECT_TRUE((TraceContext{.traceparent = kParent, .tracestate = "vendor=1"})
                  .IsValid());
  EXPECT_FALSE(TraceContext().IsValid());
  EXPECT_FALSE(TraceContext{.tracestate = "vendor=1"}.IsValid());
}

TEST(TraceContextTest, FieldsMayBeAsLongAsTheirLimits) {
  const std::string parent(TraceContext::kMaxParentBytes, 'p');
  const std::string state(TraceContext::kMaxStateBytes, 's');
  EXPECT_TRUE(
      (TraceContext{.traceparent = parent, .tracestate = state}).IsValid());
  EXPECT_FALSE((TraceContext{.traceparent = parent + "p", .tracestate = state})
                   .IsValid());
  EXPECT_FALSE((TraceContext{.traceparent = parent, .tracestate = state + "s"})
                   .IsValid());
}

TEST(TraceContextTest, FieldsArePrintableAscii) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string part(1, static_cast<char>(byte));
    const bool printable = byte >= ' ' && byte <= '~';
    EXPECT_EQ(IsValidInParent(part), printable) << "byte " << byte;
    EXPECT_EQ(IsValidInState(part), printable) << "byte " << byte;
  }
  EXPECT_FALSE(IsValidInParent("\xc3\xa9"));
  EXPECT_FALSE(IsValidInState("\xc3\xa9"));
}

}  // namespace
}  // namespace hawser::rpc
