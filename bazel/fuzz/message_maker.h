// Protobuf messages that a fuzz target makes from its input.

#ifndef HAWSER_BAZEL_FUZZ_MESSAGE_MAKER_H_
#define HAWSER_BAZEL_FUZZ_MESSAGE_MAKER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bazel/fuzz/fuzz_input.h"
#include "google/protobuf/message.h"

namespace hawser::fuzz {

// Fills messages of any type by choices of a FuzzInput: for each field, in the
// order of their declaration, whether it is set and its value. Every input
// stands for messages that parse, so that their meaning is tested rather than
// their syntax.
//
// A target offers values that have a meaning, such as the ids of objects that
// exist. Fields for which values are offered mostly have one of them.
//
// Fields 13 to 15 are left out: rpc/wire/message_codec.h adds them to every
// message. Not thread-safe.
class MessageMaker {
 public:
  // `input` must outlive this object.
  explicit MessageMaker(FuzzInput* input) : input_(*input) {}

  // Values of a field, named as in "hawser.v1.StreamOpenRequest.stream".
  void OfferNumbers(std::string_view field, std::vector<uint64_t> values) {
    numbers_[std::string(field)] = std::move(values);
  }
  void OfferStrings(std::string_view field, std::vector<std::string> values) {
    strings_[std::string(field)] = std::move(values);
  }
  // A value of all fields of the type of `message`. Of each type the first 12
  // are kept.
  void Offer(const google::protobuf::Message& message);

  // Fills `message`, which is empty.
  void Fill(google::protobuf::Message& message) { Fill(message, 0); }

  template <class M>
  M Make() {
    M message;
    Fill(message);
    return message;
  }

 private:
  using Field = google::protobuf::FieldDescriptor;

  void Fill(google::protobuf::Message& message, int depth);
  void FillField(const Field& field, google::protobuf::Message& message,
                 int depth);
  // Adds a value to a repeated field, or sets another.
  void AddValue(const Field& field, google::protobuf::Message& message,
                int depth);
  void FillSubmessage(google::protobuf::Message& message, int depth);
  uint64_t NumberFor(const Field& field);
  std::string StringFor(const Field& field);
  double Real();

  FuzzInput& input_;
  std::map<std::string, std::vector<uint64_t>> numbers_;
  std::map<std::string, std::vector<std::string>> strings_;
  std::map<std::string, std::vector<std::unique_ptr<google::protobuf::Message>>>
      messages_;
};

}  // namespace hawser::fuzz

#endif  // HAWSER_BAZEL_FUZZ_MESSAGE_MAKER_H_
