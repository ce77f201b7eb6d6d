#ifndef HAWSER_RPC_WIRE_STRUCTS_TYPE_DEFINITIONS_H_
#define HAWSER_RPC_WIRE_STRUCTS_TYPE_DEFINITIONS_H_

#include <string>
#include <string_view>
#include <vector>

namespace hawser::rpc {

// The definitions that a signature contains: the fields of each user type that
// it names (rpc/wire/structs/struct_traits.h), so that workers with different
// fields find the difference before a call runs.
//
//   "Interval(Interval) where Interval{low: double, high: double}"
//
// Definitions are in the order in which a reader of the signature meets their
// types, each once.
class TypeDefinitions {
 public:
  // Stand before the first definition and between two.
  static constexpr std::string_view kBegin = " where ";
  static constexpr std::string_view kSeparator = "; ";

  // Adds a definition such as "Interval{low: double, high: double}". Returns
  // false if it was added before.
  bool Add(std::string definition);

  // The end of the signature; empty if there are no definitions.
  std::string ToString() const;

 private:
  std::vector<std::string> definitions_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_WIRE_STRUCTS_TYPE_DEFINITIONS_H_
