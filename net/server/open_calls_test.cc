#include "net/server/open_calls.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstring>
#include <string>

#include "gtest/gtest.h"

namespace hawser::net {
namespace {

sockaddr_storage V4(const char* address, int port) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET, address, &v4.sin_addr);
  sockaddr_storage peer{};
  std::memcpy(&peer, &v4, sizeof(v4));
  return peer;
}

sockaddr_storage V6(const char* address, int port) {
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET6, address, &v6.sin6_addr);
  sockaddr_storage peer{};
  std::memcpy(&peer, &v6, sizeof(v6));
  return peer;
}

TEST(OpenCallsTest, SocketOfChannelzIsRead) {
  ConnectionCalls calls;
  ASSERT_TRUE(internal::ParseSocket(
      R"({"socket":{"data":{"lastMessageReceivedTimestamp":"2026",)"
      R"("messagesReceived":"12","streamsFailed":"2","streamsStarted":"46000",)"
      R"("streamsSucceeded":"7"},"local":{"tcpip_address":{"ip_address":)"
      R"("CgAAAQ==","port":29560}},"ref":{"name":"chttp2 x","socketId":"3"},)"
      R"("remote":{"tcpip_address":{"ip_address":"fwAAAQ==","port":40590}}}})",
      calls));
  EXPECT_EQ(calls.connection, KeyOfPeer(V4("127.0.0.1", 40590)));
  EXPECT_EQ(calls.open_calls, 45991);
  EXPECT_EQ(calls.messages, 12);
}

TEST(OpenCallsTest, SocketWithoutAddressOrCountsIsRead) {
  ConnectionCalls calls;
  EXPECT_FALSE(internal::ParseSocket("", calls));
  EXPECT_FALSE(internal::ParseSocket(
      R"({"socket":{"data":{"streamsStarted":"1"},"remote":)"
      R"({"uds_address":{"filename":"unix:/x"}}}})",
      calls));
  ASSERT_TRUE(internal::ParseSocket(
      R"({"socket":{"data":{},"remote":{"tcpip_address":{"ip_address":)"
      R"("fwAAAQ==","port":1}}}})",
      calls));
  EXPECT_EQ(calls.open_calls, 0);
}

TEST(OpenCallsTest, CountsOutOfRangeDoNotOverflow) {
  ConnectionCalls calls;
  ASSERT_TRUE(internal::ParseSocket(
      R"({"data":{"streamsFailed":"9223372036854775807",)"
      R"("streamsSucceeded":"9223372036854775807","messagesReceived":"-1"},)"
      R"("remote":{"ip_address":"fwAAAQ==","port":1}})",
      calls));
  EXPECT_LT(calls.open_calls, 0);
  EXPECT_EQ(calls.messages, 0);
}

TEST(OpenCallsTest, KeysTellConnectionsApart) {
  EXPECT_NE(KeyOfPeer(V4("10.0.0.1", 1)), KeyOfPeer(V4("10.0.0.1", 2)));
  EXPECT_NE(KeyOfPeer(V4("10.0.0.1", 1)), KeyOfPeer(V4("10.0.0.2", 1)));
  EXPECT_NE(KeyOfPeer(V6("fd00::1", 1)), KeyOfPeer(V6("fd00::2", 1)));
  EXPECT_EQ(KeyOfPeer(V6("::ffff:10.0.0.1", 1)), KeyOfPeer(V4("10.0.0.1", 1)));
  sockaddr_storage local{};
  local.ss_family = AF_UNIX;
  EXPECT_EQ(KeyOfPeer(local), "");
}

}  // namespace
}  // namespace hawser::net
